package mask

import (
	"encoding/json"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"github.com/zricethezav/gitleaks/v8/config"
)

// A Pattern finds secrets with a recognisable form, such as a token with its maker's prefix. A text that contains none
// of its keywords, in upper or lower case, has no such secret.
type Pattern struct {
	Keywords []string `json:"keywords"`
	Pattern  string   `json:"pattern"`
	// Digit requires a digit in the match.
	Digit bool `json:"digit,omitempty"`
}

// passedOver are rules of gitleaks that need the surrounding lines, or that match any hash.
var passedOver = []string{"curl-auth-header", "curl-auth-user", "kubernetes-secret-yaml", "private-key",
	"sourcegraph-access-token", "microsoft-teams-webhook"}

// assigns is a part of those gitleaks rules that recognise a secret by the name before it. Package mask has its own
// rules for names, since these need a service's name and are made for source code.
const assigns = `{1,3}=`

// patterns are the gitleaks rules for secrets with a recognisable form, and looser rules for the most common prefixes:
// tokens in tests may have other lengths, and a truncated token is a secret too.
var patterns = sync.OnceValue(func() []Pattern {
	var scanner struct {
		Rules []struct {
			ID, Regex string
			Keywords  []string
		}
	}
	if err := toml.Unmarshal([]byte(config.DefaultConfig), &scanner); err != nil {
		panic(err) // cannot fail, since a test parses this version's rules
	}
	list := slices.Clone(theRules().Prefixes)
	for _, rule := range scanner.Rules {
		if rule.Regex == "" || len(rule.Keywords) == 0 || strings.Contains(rule.Regex, assigns) ||
			slices.Contains(passedOver, rule.ID) {
			continue
		}
		list = append(list, Pattern{Keywords: rule.Keywords, Pattern: rule.Regex})
	}
	for i := range list {
		for j, word := range list[i].Keywords {
			list[i].Keywords[j] = strings.ToLower(word)
		}
	}
	return list
})

// compiled has the compiled regular expressions of patterns. Most are never needed.
var compiled sync.Map

func (p *Pattern) regexp() *regexp.Regexp {
	if re, ok := compiled.Load(p.Pattern); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(p.Pattern)
	compiled.Store(p.Pattern, re)
	return re
}

// borders are characters beside the secret that a rule may match too.
const borders = " \t\r\n'\"`;<>=:(),\\"

func (p *Pattern) find(text string, found func(from, to int)) {
	for _, m := range p.regexp().FindAllStringSubmatchIndex(text, -1) {
		from, to := m[0], m[1]
		for from < to && strings.IndexByte(borders, text[from]) >= 0 {
			from++
		}
		for from < to && strings.IndexByte(borders, text[to-1]) >= 0 {
			to--
		}
		if len(m) == 4 && m[2] > m[0] { // the text before the secret is kept
			from = max(from, m[2])
		}
		if from < to && (!p.Digit || strings.ContainsAny(text[from:to], "0123456789")) {
			found(from, to)
		}
	}
}

// A keyword is a text without which a pattern need not be tried.
type keyword struct {
	text    string
	pattern int // index into patterns; -1 for a stem of a name
}

// keywords has the keywords of all patterns, and the stems of names, by their first two bytes.
var keywords = sync.OnceValue(func() map[[2]byte][]keyword {
	by := map[[2]byte][]keyword{}
	add := func(text string, pattern int) {
		at := [2]byte{text[0], text[1]}
		by[at] = append(by[at], keyword{text, pattern})
	}
	for i, p := range patterns() {
		for _, word := range p.Keywords {
			add(word, i)
		}
	}
	for _, stem := range theRules().Stems {
		add(stem, -1)
	}
	return by
})

// begins has the pairs of bytes with which a keyword can begin, by first byte and then second.
var begins = sync.OnceValue(func() *[256]*[256]bool {
	table := &[256]*[256]bool{}
	for pair := range keywords() {
		for _, first := range []byte{pair[0], upper(pair[0])} {
			if table[first] == nil {
				table[first] = &[256]bool{}
			}
			table[first][pair[1]], table[first][upper(pair[1])] = true, true
		}
	}
	return table
})

func upper(b byte) byte {
	if 'a' <= b && b <= 'z' {
		return b - 'a' + 'A'
	}
	return b
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b - 'A' + 'a'
	}
	return b
}

// worth returns the patterns that may match a text, and whether the text contains the stem of a name. worth keeps
// masking fast, since most texts need no pattern.
func worth[T string | []byte](text T) (list []int, names bool) {
	table := begins()
	for i := 0; i+1 < len(text); i++ {
		if second := table[text[i]]; second == nil || !second[text[i+1]] {
			continue
		}
		for _, word := range keywords()[[2]byte{lower(text[i]), lower(text[i+1])}] {
			if len(word.text) > len(text)-i || !strings.EqualFold(string(text[i:i+len(word.text)]), word.text) {
				continue
			}
			if word.pattern < 0 {
				names = true
			} else if !slices.Contains(list, word.pattern) {
				list = append(list, word.pattern)
			}
		}
	}
	return list, names
}

// AgentFile is the name of the document with the patterns, which lies beside the agent's modules.
const AgentFile = "masking_patterns.json"

// PatternsForAgent returns the document with the patterns, in Python's syntax.
func PatternsForAgent() ([]byte, error) {
	list := slices.Clone(patterns())
	for i := range list {
		text, err := python(list[i].Pattern)
		if err != nil {
			return nil, err
		}
		list[i].Pattern = text
	}
	return json.Marshal(list)
}

var pythonSyntax = strings.NewReplacer(`\x{10FFFF}`, `\U0010FFFF`, `\z`, `\Z`, `(?-m:$)`, `\Z`)

// python translates a Go regular expression into Python's syntax: flags are moved to the parts to which they apply, and
// character classes are spelt out.
func python(pattern string) (string, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", err
	}
	return pythonSyntax.Replace(parsed.String()), nil
}
