package mask

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// A span is the place of a secret in a text.
type span struct{ from, to int }

// A reading is a text that is being searched for secrets, by their form and by the names beside them.
type reading struct {
	text  string
	given bool // the text comes from a command line, a variable or a parameter, where names mean what they say
	spans []span
}

// find returns the places of the secrets in a text, in order and without overlaps.
func find(text string, given bool) []span {
	list, names := worth(text)
	if len(list) == 0 && !names {
		return nil
	}
	r := &reading{text: text, given: given}
	for _, i := range list {
		patterns()[i].find(text, r.add)
	}
	if names { // these expressions are slow, compared with searching for the stems that they need
		if strings.Contains(text, "://") {
			r.urls()
		}
		if strings.ContainsAny(text, ":=") {
			r.assignments()
		}
		if strings.Contains(text, "-") {
			r.flags()
			r.privateKeys()
		}
		r.bearers()
	}
	return r.merged()
}

func (r *reading) add(from, to int) { r.spans = append(r.spans, span{from, to}) }

func (r *reading) merged() []span {
	slices.SortFunc(r.spans, func(a, b span) int { return a.from - b.from })
	var out []span
	for _, s := range r.spans {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// urls finds passwords, users that are tokens, and the values of secret names in queries.
func (r *reading) urls() {
	rules := theRules()
	for _, m := range rules.url.FindAllStringSubmatchIndex(r.text, -1) {
		body, at := r.text[m[2]:m[3]], m[2]
		if n := userinfo(body); n > 0 {
			r.userinfo(at, body[:n])
		}
		for _, q := range rules.query.FindAllStringSubmatchIndex(body, -1) {
			name := nameFlag(body[q[2]:q[3]])
			if slices.Contains(rules.QueryWords, lastWord(body[q[2]:q[3]])) {
				name = naming{level: strong, word: "signature"}
			}
			if name.holds(body[q[4]:q[5]]) {
				r.add(at+q[4], at+q[5])
			}
		}
	}
}

func lastWord(name string) string {
	if w := words(name); len(w) > 0 {
		return w[len(w)-1]
	}
	return ""
}

// userinfo returns the length of the part of a URL that stands before the host. A password may contain an @ and, if the
// URL is unambiguous, a slash.
func userinfo(body string) int {
	authority := body
	if end := strings.IndexAny(body, "/?#"); end >= 0 {
		authority = body[:end]
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		return at
	}
	_, port, ok := strings.Cut(authority, ":")
	if ok && strings.Trim(port, "0123456789") != "" {
		return max(0, strings.LastIndexByte(body, '@'))
	}
	return 0
}

func (r *reading) userinfo(at int, info string) {
	user, password, both := strings.Cut(info, ":")
	switch {
	case both && password != "" && password != "x-oauth-basic":
		if !strings.HasPrefix(password, Mask) && !strings.ContainsAny(password[:1], "${<") {
			r.add(at+len(user)+1, at+len(info))
		}
	case both && len(user) >= minLength || random(user):
		r.add(at, at+len(user))
	}
}

// assignments finds the values assigned to names: name=value, "name": "value", Name: value.
func (r *reading) assignments() {
	for from := 0; from < len(r.text); {
		m := theRules().assignment.FindStringSubmatchIndex(r.text[from:])
		if m == nil {
			return
		}
		name, at := r.text[from+m[2]:from+m[3]], from+m[1]
		from = max(at, r.value(name, at))
	}
}

// flags finds "--name value" in a text that shows a command.
func (r *reading) flags() {
	for _, m := range theRules().flag.FindAllStringSubmatchIndex(r.text, -1) {
		r.value(r.text[m[2]:m[3]], m[1])
	}
}

// value masks the value of a name if the value is secret. The value begins at position at. value returns the end of the
// masked text, or the value's begin if nothing is masked.
func (r *reading) value(name string, at int) int {
	n := nameFlag(name)
	if !r.given {
		n = n.inText()
	}
	if n.level == open {
		return at
	}
	end, quoted := r.end(&at)
	if n.word == "cookie" || n.word == "authorization" {
		if from, to, ok := r.header(n, at, end, quoted); ok {
			r.add(from, to)
			return to
		}
	}
	text := r.text[at:end]
	switch {
	case !n.holds(text):
		return at
	case r.given, n.level == weak:
	case quoted && (len(text) < 4 || strings.ContainsAny(text, " \t\n") || strings.ContainsAny(text[:1], "<${%")):
		return at
	case !quoted && !evident(text):
		return at
	}
	r.add(at, end)
	return end
}

// end returns where a value ends. end moves at past the quote with which the value begins, if there is one.
func (r *reading) end(at *int) (end int, quoted bool) {
	rest := r.text[*at:]
	quote := ""
	for _, q := range []string{`\"`, `\'`, `"`, `'`, "`"} {
		if strings.HasPrefix(rest, q) {
			quote = q
			break
		}
	}
	if quote == "" {
		if n := strings.IndexAny(rest, theRules().UnquotedEnd); n >= 0 {
			return *at + n, false
		}
		return len(r.text), false
	}
	*at += len(quote)
	rest = rest[len(quote):]
	for i := 0; i < len(rest); i++ {
		if strings.HasPrefix(rest[i:], quote) {
			return *at + i, true
		}
		if rest[i] == '\\' && len(quote) == 1 {
			i++
		}
	}
	return len(r.text), true
}

// header returns the secret part of an Authorization or a Cookie header.
func (r *reading) header(n naming, at, end int, quoted bool) (from, to int, ok bool) {
	if !quoted {
		if end = strings.IndexAny(r.text[at:], "\r\n\"'`"); end < 0 {
			end = len(r.text)
		} else {
			end += at
		}
	}
	value := r.text[at:end]
	if n.word == "cookie" {
		return at, end, strings.Contains(value, "=") && !strings.HasPrefix(value, Mask)
	}
	scheme := theRules().scheme.FindString(value)
	rest := strings.TrimRight(value[len(scheme):], " \t")
	if scheme == "" || rest == "" || strings.HasPrefix(rest, Mask) {
		return 0, 0, false
	}
	if !strings.Contains(rest, "=\"") && !strings.Contains(rest, ", ") { // a single token, and no list of parameters
		rest, _, _ = strings.Cut(rest, " ")
	}
	return at + len(scheme), at + len(scheme) + len(rest), true
}

func (r *reading) bearers() {
	if !strings.Contains(r.text, "earer") && !strings.Contains(r.text, "EARER") {
		return
	}
	for _, m := range theRules().bearer.FindAllStringSubmatchIndex(r.text, -1) {
		if strings.ContainsAny(r.text[m[2]:m[3]], "0123456789") {
			r.add(m[2], m[3])
		}
	}
}

// privateKeys finds private keys in PEM format. A key without an end marker extends to the end of the text.
func (r *reading) privateKeys() {
	rules := theRules()
	for _, m := range rules.beginsKey.FindAllStringIndex(r.text, -1) {
		end := len(r.text)
		if e := rules.endsKey.FindStringIndex(r.text[m[0]:]); e != nil {
			end = m[0] + e[1]
		}
		r.add(m[0], end)
	}
}

// hide masks the secrets that find finds.
func hide(text string, given bool) string {
	spans := find(text, given)
	if len(spans) == 0 {
		return text
	}
	var b strings.Builder
	from := 0
	for _, s := range spans {
		b.WriteString(text[from:s.from])
		b.WriteString(Mask)
		from = s.to
	}
	b.WriteString(text[from:])
	return b.String()
}

// forms returns other spellings of a secret: in JSON (with quotes, backslashes and line ends escaped, and by some
// writers also < > &), in a URL, and without the escapes that the given text had.
func forms(v string) []string {
	list := append(jsonForms(v), url.QueryEscape(v), url.PathEscape(v))
	var plain string
	if json.Unmarshal([]byte(`"`+v+`"`), &plain) == nil {
		list = append(list, plain)
	}
	if plain, err := url.PathUnescape(v); err == nil {
		list = append(list, plain)
	}
	return list
}
