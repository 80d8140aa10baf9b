// Package mask keeps secrets out of what a run leaves behind.
//
// Secrets are gathered from where programs are given them: command-line flags and environment variables whose names say
// so, and passwords in URLs. Their values are then replaced wherever they turn up. To look for patterns in the output
// instead (long random words) was rejected: it misses passwords and masks hashes.
package mask

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Mask stands for a secret.
const Mask = "***"

// minLength keeps short values, which are as likely to be words of the log as to be secret, readable.
const minLength = 6

// Secrets is a set of values to mask.
type Secrets struct {
	values []string // longest first, so that of two secrets that begin alike the longer one is masked whole
	// first has the bytes that a secret can begin with.
	first [256]bool
}

// Gather finds the secrets in a command, an environment ("NAME=value") and an experiment's parameters.
func Gather(argv, environ []string, params map[string]any) *Secrets {
	found := map[string]bool{}
	add := func(v string) {
		if v = strings.TrimSpace(v); len(v) >= minLength {
			found[v] = true
		}
	}
	flagValues(argv, add)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if secretVariable(name) {
			add(value)
		}
		urlPasswords(value, add)
	}
	for _, arg := range argv {
		urlPasswords(arg, add)
	}
	for name, value := range params {
		if s, ok := value.(string); ok {
			if secretFlag(name) {
				add(s)
			}
			urlPasswords(s, add)
		}
	}
	s := &Secrets{}
	for v := range found {
		s.add(v)
		for _, form := range jsonForms(v) {
			if form != v && !found[form] {
				s.add(form)
			}
		}
	}
	return s
}

// jsonForms is how a value may look in the journal and the manifest, where quotes, backslashes and line ends are
// escaped, and < > & by some writers.
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

// AtLeast is the secrets of n bytes or more.
func (s *Secrets) AtLeast(n int) *Secrets {
	out := &Secrets{}
	for _, v := range s.values {
		if len(v) >= n {
			out.add(v)
		}
	}
	return out
}

// Empty reports whether there is nothing to mask.
func (s *Secrets) Empty() bool { return len(s.values) == 0 }

// String masks every secret in text.
func (s *Secrets) String(text string) string {
	out, rest := s.replace(nil, []byte(text), true, nil)
	return string(append(out, rest...))
}

// Bytes masks every secret in b.
func (s *Secrets) Bytes(b []byte) []byte {
	out, _ := s.replace(nil, b, true, nil)
	return out
}

// SameLength masks every secret in b with as many asterisks as it has bytes, so that lengths written elsewhere in a
// binary format stay true.
func (s *Secrets) SameLength(b []byte) []byte {
	out, _ := s.replace(nil, b, true, func(n int) string { return strings.Repeat("*", n) })
	return out
}

// Command masks a command line: every secret, and the values of secret flags that are too short to be looked for
// elsewhere.
func (s *Secrets) Command(argv []string) []string {
	out := make([]string, len(argv))
	secret := false
	for i, arg := range argv {
		name, _, joined := strings.Cut(arg, "=")
		isFlag := strings.HasPrefix(arg, "-")
		switch {
		case secret && !isFlag:
			out[i] = Mask
		case isFlag && joined && secretFlag(name):
			out[i] = name + "=" + Mask
		default:
			out[i] = s.String(arg)
		}
		secret = isFlag && !joined && secretFlag(name)
	}
	return out
}

// Params masks an experiment's parameters.
func (s *Secrets) Params(params map[string]any) map[string]any {
	out := make(map[string]any, len(params))
	for name, value := range params {
		if text, ok := value.(string); ok {
			value = s.String(text)
			if secretFlag(name) {
				value = Mask
			}
		}
		out[name] = value
	}
	return out
}

// replace appends b with its secrets masked to out. With final unset the end of b that may be the beginning of a secret
// is not written but returned.
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

// match is the length of the longest secret that b begins with; waits says that b ends inside a longer one.
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

// secretWords are the last words of names whose values are secret.
var secretWords = map[string]bool{
	"token": true, "key": true, "apikey": true, "secret": true, "password": true, "passwd": true, "passphrase": true,
	"credential": true, "credentials": true, "auth": true, "authorization": true, "bearer": true, "cookie": true,
}

// harmless are flags of training scripts that end in one of the words and hold no secret.
var harmless = regexp.MustCompile(
	`^((pad|eos|bos|unk|mask|sep|cls|image|special|start|end|stop)_token|(sort|metric|text|label|input|output|image|batch|group|data|dataset|state_dict|monitor)_key)$`)

func words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
}

// secretFlag goes by the last word: --token and --api-key, not --key-dim or --token-dropout.
func secretFlag(name string) bool {
	w := words(name)
	return len(w) > 0 && secretWords[w[len(w)-1]] && !harmless.MatchString(strings.Join(w, "_"))
}

// secretVariable goes by any word (AWS_SECRET_ACCESS_KEY_ID, GITHUB_TOKEN_RW): the environment holds no parameters.
func secretVariable(name string) bool {
	w := words(name)
	return slices.ContainsFunc(w, func(w string) bool { return secretWords[w] }) &&
		!harmless.MatchString(strings.Join(w, "_"))
}

func flagValues(argv []string, add func(string)) {
	for i, arg := range argv {
		name, value, joined := strings.Cut(arg, "=")
		// NAME=value is how env, and Hydra's overrides, take what others take as a flag.
		if !secretFlag(name) || !strings.HasPrefix(arg, "-") && !joined {
			continue
		}
		switch {
		case joined:
			add(value)
		case i+1 < len(argv) && !strings.HasPrefix(argv[i+1], "-"):
			add(argv[i+1])
		}
	}
}

var urlPassword = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]*:([^/\s@]+)@`)

func urlPasswords(text string, add func(string)) {
	for _, m := range urlPassword.FindAllStringSubmatch(text, -1) {
		add(m[1])
	}
}

// In reports whether b holds a secret.
func (s *Secrets) In(b []byte) bool {
	return slices.ContainsFunc(s.values, func(v string) bool { return bytes.Contains(b, []byte(v)) })
}
