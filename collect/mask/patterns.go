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

// A Pattern finds secrets that are recognisable by themselves, such as a token with its maker's prefix. A text
// without any of its keywords, in any case, has no such secret.
type Pattern struct {
	Keywords []string `json:"keywords"`
	Pattern  string   `json:"pattern"`
	// Digit asks for a digit in what is found.
	Digit bool `json:"digit,omitempty"`
}

// passedOver are rules of gitleaks that say little without the lines around them, or match any hash.
var passedOver = []string{"curl-auth-header", "curl-auth-user", "kubernetes-secret-yaml", "private-key",
	"sourcegraph-access-token", "microsoft-teams-webhook"}

// assigns occurs in the gitleaks rules that recognise the name before a value. Package mask has its own rules for
// names, since the gitleaks rules need a service's name and are made for source code.
const assigns = `{1,3}=`

// patterns are the gitleaks rules for secrets with a form of their own, and looser rules for the commonest
// prefixes: a test's token may have another length, and a truncated token is a secret too.
var patterns = sync.OnceValue(func() []Pattern {
	var scanner struct {
		Rules []struct {
			ID, Regex string
			Keywords  []string
		}
	}
	if err := toml.Unmarshal([]byte(config.DefaultConfig), &scanner); err != nil {
		panic(err) // a test reads this version's rules
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

// compiled is the pattern's regular expression. Most patterns' expressions are never needed.
var compiled sync.Map

func (p *Pattern) regexp() *regexp.Regexp {
	if re, ok := compiled.Load(p.Pattern); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(p.Pattern)
	compiled.Store(p.Pattern, re)
	return re
}

// borders are what a rule may match besides the secret itself.
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
		if len(m) == 4 && m[2] > m[0] { // the text before the secret is not part of it
			from = max(from, m[2])
		}
		if from < to && (!p.Digit || strings.ContainsAny(text[from:to], "0123456789")) {
			found(from, to)
		}
	}
}

// A keyword is what makes a text worth a look.
type keyword struct {
	text    string
	pattern int // of patterns; -1 for the stems of names
}

// keywords lists the keywords of all patterns and the stems of names, by their first two bytes.
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

// begins has, by their first byte and then their second, what a keyword can begin with.
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

// worth returns the patterns that may match in a text, and whether it has the stem of a name. worth keeps masking fast,
// because most text needs no pattern.
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

// AgentFile is the name of the document of patterns, beside the agent's own modules.
const AgentFile = "masking_patterns.json"

// PatternsForAgent is the document of patterns that the agent reads, in Python's syntax.
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

// python translates a Go regular expression into Python's syntax: flags are moved to where they apply, and classes
// are spelt out.
func python(pattern string) (string, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", err
	}
	return pythonSyntax.Replace(parsed.String()), nil
}
