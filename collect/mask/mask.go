// Package mask removes secrets from everything that a run leaves behind.
//
// The package finds secrets in two ways. In a program's settings (arguments, variables, parameters), names show which
// values are secret. The package then replaces the secret values of settings in all texts, except values shorter than
// minLength. In all texts the package also replaces secrets with a recognisable form (a token with its maker's prefix,
// by the rules of gitleaks; a password in a URL; a header), and values beside a name that marks them as secret. The
// package does not treat every long random word as a secret, since such a rule would mask hashes and run ids.
package mask

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Mask replaces a secret.
const Mask = "***"

// minLength is the length in bytes from which on values are masked: a shorter value is as likely an ordinary word as a
// secret.
const minLength = 6

// Secrets is a set of values to mask, in addition to the secrets that are recognised in the text itself.
type Secrets struct {
	values []string // longest first: of two secrets with the same beginning, the longer one must be masked as a whole
	// first marks the bytes with which a secret can begin.
	first [256]bool
}

// Gather finds the secrets in a command, an environment ("NAME=value") and an experiment's parameters.
func Gather(argv, environ []string, params map[string]any) *Secrets {
	found := map[string]bool{}
	add := func(v string) {
		v = strings.TrimSpace(v)
		if len(v) >= minLength && !slices.Contains(theRules().SecretWords, strings.ToLower(v)) &&
			!slices.Contains(theRules().PlainValues, strings.ToLower(v)) {
			found[v] = true
		}
	}
	for i, spans := range arguments(argv) {
		for _, s := range spans {
			add(argv[i][s.from:s.to])
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if nameVariable(name).holds(value) {
			add(value)
		}
		addFound(value, add)
	}
	gatherParams("", params, add)
	s := &Secrets{}
	for v := range found {
		s.add(v)
		for _, form := range forms(v) {
			if len(form) >= minLength && !found[form] {
				s.add(form)
			}
		}
	}
	return s
}

func addFound(text string, add func(string)) {
	for _, s := range find(text, true) {
		add(text[s.from:s.to])
	}
}

// gatherParams collects the secrets in a named value, and in the values inside it.
func gatherParams(name string, value any, add func(string)) {
	switch value := value.(type) {
	case string:
		if nameFlag(name).holds(value) {
			add(value)
		}
		addFound(value, add)
	case []any:
		for _, v := range value {
			gatherParams(name, v, add)
		}
	case map[string]any:
		for k, v := range value {
			gatherParams(k, v, add)
		}
	}
}

// jsonForms returns the forms of a value in the journal and the manifest, where quotes, backslashes and line ends are
// escaped, and by some writers also < > &.
func jsonForms(v string) []string {
	var forms []string
	for _, html := range []bool{false, true} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if e.Encode(v) == nil {
			forms = append(forms, b.String()[1:b.Len()-2]) // without quotes and line end
		}
	}
	return slices.Compact(forms)
}

func (s *Secrets) add(v string) {
	s.values = append(s.values, v)
	s.first[v[0]] = true
	slices.SortFunc(s.values, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
}

// AtLeast returns only the secrets that have n bytes or more.
func (s *Secrets) AtLeast(n int) *Secrets {
	out := &Secrets{}
	for _, v := range s.values {
		if len(v) >= n {
			out.add(v)
		}
	}
	return out
}

// String masks every secret in text.
func (s *Secrets) String(text string) string { return hide(s.known(text), false) }

// known masks the collected values.
func (s *Secrets) known(text string) string {
	if len(s.values) == 0 {
		return text
	}
	out, rest := s.replace(nil, []byte(text), true, nil)
	return string(append(out, rest...))
}

// Label masks a name that a user gave on the command line.
func (s *Secrets) Label(text string) string { return hide(s.known(text), true) }

// SameLength masks every secret in b with as many asterisks as it has bytes, so that lengths stored elsewhere in a
// binary format stay correct. SameLength masks the collected values, and other secrets only if their form shows them.
func (s *Secrets) SameLength(b []byte) []byte {
	out, _ := s.replace(nil, b, true, func(n int) string { return strings.Repeat("*", n) })
	list, _ := worth(out)
	for _, i := range list {
		patterns()[i].find(string(out), func(from, to int) {
			for ; from < to; from++ {
				out[from] = '*'
			}
		})
	}
	return out
}

// Command masks a command line: all secrets, and also values of secret flags that are too short to be masked elsewhere.
func (s *Secrets) Command(argv []string) []string {
	out := make([]string, len(argv))
	for i, spans := range arguments(argv) {
		from := 0
		var b strings.Builder
		for _, sp := range spans {
			b.WriteString(s.known(argv[i][from:sp.from]))
			b.WriteString(Mask)
			from = sp.to
		}
		b.WriteString(s.known(argv[i][from:]))
		out[i] = b.String()
	}
	return out
}

// Environment masks an environment's values.
func (s *Secrets) Environment(environment map[string]string) map[string]string {
	out := make(map[string]string, len(environment))
	for name, value := range environment {
		if out[name] = s.Label(value); nameVariable(name).holds(value) {
			out[name] = Mask
		}
	}
	return out
}

// Params masks an experiment's parameters.
func (s *Secrets) Params(params map[string]any) map[string]any {
	out := make(map[string]any, len(params))
	for name, value := range params {
		out[name] = s.param(name, value)
	}
	return out
}

// param masks a named value, and the values inside it.
func (s *Secrets) param(name string, value any) any {
	switch value := value.(type) {
	case string:
		if nameFlag(name).holds(value) {
			return Mask
		}
		return s.Label(value)
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = s.param(name, value[i])
		}
		return out
	case map[string]any:
		return s.Params(value)
	}
	return value
}

// replace appends b to out, with secrets masked. If final is false, the end of b that may be the beginning of a secret
// is returned instead.
func (s *Secrets) replace(out, b []byte, final bool, stars func(int) string) (masked, rest []byte) {
	from := 0
	for i := 0; i < len(b); {
		if !s.first[b[i]] {
			i++
			continue
		}
		n, waits := s.match(b[i:])
		switch {
		case waits && !final:
			return append(out, b[from:i]...), b[i:]
		case n == 0:
			i++
		default:
			out = append(out, b[from:i]...)
			if stars != nil {
				out = append(out, stars(n)...)
			} else {
				out = append(out, Mask...)
			}
			i += n
			from = i
		}
	}
	return append(out, b[from:]...), nil
}

// match returns the length of the longest secret that b begins with; waits is true if b ends within a longer one.
func (s *Secrets) match(b []byte) (n int, waits bool) {
	for _, v := range s.values {
		if len(v) <= len(b) {
			if string(b[:len(v)]) == v {
				return len(v), waits
			}
		} else if v[:len(b)] == string(b) {
			waits = true
		}
	}
	return 0, waits
}
