package mask

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/dpsight/dpsight/collect/agent"
)

// rules is the document with the rules, which the agent reads too.
type rules struct {
	SecretWords         []string            `json:"secret_words"`
	PasswordWords       []string            `json:"password_words"`
	PathWords           []string            `json:"path_words"`
	Suffixes            []string            `json:"suffixes"`
	PassPrefixes        []string            `json:"pass_prefixes"`
	HarmlessBefore      map[string][]string `json:"harmless_before"`
	HarmlessInVariables map[string][]string `json:"harmless_variables_before"`
	HarmlessVariables   []string            `json:"harmless_variables"`
	Metadata            []string            `json:"metadata"`
	QueryWords          []string            `json:"query_words"`
	TextQualifiers      map[string][]string `json:"text_qualifiers"`
	TextStrong          []string            `json:"text_strong"`
	PlainValues         []string            `json:"plain_values"`
	UserFlags           []string            `json:"user_flags"`
	Stems               []string            `json:"stems"`
	Prefixes            []Pattern           `json:"prefixes"`

	Assignment, Flag, Scheme, Bearer, URL, Query string

	UnquotedEnd string `json:"unquoted_end"`
	BeginsKey   string `json:"begins_key"`
	EndsKey     string `json:"ends_key"`

	assignment, flag, scheme, bearer, url, query, beginsKey, endsKey *regexp.Regexp
}

// theRules returns the rules, which are parsed at the first call.
var theRules = sync.OnceValue(func() *rules {
	r := &rules{}
	if err := json.Unmarshal(agent.MaskingRules, r); err != nil {
		panic(err) // the document is part of the binary
	}
	r.assignment, r.flag = regexp.MustCompile(r.Assignment), regexp.MustCompile(r.Flag)
	r.scheme, r.bearer = regexp.MustCompile("^"+r.Scheme), regexp.MustCompile(r.Bearer)
	r.url, r.query = regexp.MustCompile(r.URL), regexp.MustCompile(r.Query)
	r.beginsKey, r.endsKey = regexp.MustCompile(r.BeginsKey), regexp.MustCompile(r.EndsKey)
	return r
})

// A level says how certain a name makes it that its value is secret.
type level int

const (
	open   level = iota // the name means nothing
	weak                // secret if the value looks random: --pad-token, --sort-key
	strong              // secret whatever the value is: --token, --api-key
)

// A naming is what a name says about its value.
type naming struct {
	level  level
	word   string // the word of the name that shows a secret
	before string // the word that stands before it
}

var separators = regexp.MustCompile(`[^A-Za-z0-9]+`)
var lowerUpper = regexp.MustCompile(`([a-z0-9])([A-Z])`)
var acronym = regexp.MustCompile(`([A-Z]+)([A-Z][a-z])`)

// words splits names in snake_case, kebab-case, camelCase, and dotted names.
func words(name string) []string {
	name = separators.ReplaceAllString(name, " ")
	name = acronym.ReplaceAllString(lowerUpper.ReplaceAllString(name, "$1 $2"), "$1 $2")
	return strings.Fields(strings.ToLower(name))
}

// nameFlag judges by the last word of a flag, a key or a parameter: --token and --api-key are secret, --key-dim and
// --max-tokens are not.
func nameFlag(name string) naming { return nameWords(words(name), theRules().HarmlessBefore) }

// nameVariable judges by any word (AWS_SECRET_ACCESS_KEY_ID, GITHUB_TOKEN_RW), since environment variables are seldom
// parameters of training.
func nameVariable(name string) naming {
	r := theRules()
	w := words(name)
	if len(w) == 0 || slices.Contains(r.HarmlessVariables, strings.ToLower(name)) ||
		slices.Contains(r.Metadata, w[len(w)-1]) {
		return naming{}
	}
	harmless := map[string][]string{"token": r.HarmlessBefore["token"], "key": r.HarmlessInVariables["key"],
		"pass": r.HarmlessBefore["pass"]}
	best := naming{}
	for i := range w {
		if n := nameWords(w[:i+1], harmless); n.level > best.level {
			best = n
		}
	}
	return best
}

func nameWords(w []string, harmless map[string][]string) naming {
	if len(w) == 0 {
		return naming{}
	}
	r := theRules()
	n := naming{level: strong, word: w[len(w)-1]}
	if len(w) > 1 {
		n.before = w[len(w)-2]
	}
	if !slices.Contains(r.SecretWords, n.word) && !n.splitSuffix(r) {
		return naming{}
	}
	if slices.Contains(harmless[n.word], n.before) {
		n.level = weak
	}
	return n
}

// splitSuffix splits a word such as pgpassword or hftoken into its two words.
func (n *naming) splitSuffix(r *rules) bool {
	for _, suffix := range r.Suffixes {
		before, ok := strings.CutSuffix(n.word, suffix)
		if !ok || (suffix == "pass" || suffix == "pwd") && !slices.Contains(r.PassPrefixes, before) {
			continue
		}
		n.word, n.before = suffix, before
		return true
	}
	return false
}

var number = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?$`)
var pathLike = regexp.MustCompile(
	`^(/|~/|\./|\.\./)|\.(pem|key|json|ya?ml|txt|crt|cer|pub|toml|env|pt|csv|npz|pkl|py|sh|ini|cfg|conf)$`)

// holds reports whether the value beside such a name is secret.
func (n naming) holds(value string) bool {
	r := theRules()
	value = strings.TrimSpace(value)
	switch {
	case n.level == open || value == "" || strings.HasPrefix(value, Mask) ||
		slices.Contains(r.PlainValues, strings.ToLower(value)):
		return false
	case n.level == weak:
		return random(value)
	case number.MatchString(value) && len(value) < minLength:
		return slices.Contains(r.PasswordWords, n.word)
	case pathLike.MatchString(value) && slices.Contains(r.PathWords, n.word):
		return random(value)
	}
	return n.word != "dsn" || !strings.HasPrefix(value, "sqlite:")
}

// inText returns what a name means in running text, where words such as "token: the" and "key=layer.0" are common.
func (n naming) inText() naming {
	r := theRules()
	if n.level == strong && !slices.Contains(r.TextStrong, n.word) &&
		!slices.Contains(r.TextQualifiers[n.word], n.before) {
		n.level = weak
	}
	return n
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+$`)

// evident reports whether an unquoted word of a text looks like a password, rather than like a word or code.
func evident(v string) bool {
	return len(v) >= 4 && !strings.ContainsAny(v, "([{$") && !number.MatchString(v) && !identifier.MatchString(v) &&
		(strings.ContainsAny(v, "0123456789!@#%^&*+=~?") || strings.Count(v, "-") >= 2)
}

var piece = regexp.MustCompile(`[A-Za-z0-9]+`)
var numbered = regexp.MustCompile(`^([A-Za-z]+[0-9]{1,4}|[0-9]{1,4}[A-Za-z]+|[0-9]{8}T[0-9]{6}Z?)$`)

// random reports whether a part of the value mixes letters and digits in a way in which no word, name or date does.
func random(value string) bool {
	for _, p := range piece.FindAllString(value, -1) {
		if len(p) >= 8 && strings.ContainsAny(p, "0123456789") && strings.Trim(p, "0123456789") != "" &&
			!numbered.MatchString(p) {
			return true
		}
	}
	return false
}
