package mask

import (
	"regexp"
	"slices"
	"strings"
)

// arguments returns the secrets' places in a command line, by argument.
func arguments(argv []string) [][]span {
	out := make([][]span, len(argv))
	for i, arg := range argv {
		r := &reading{text: arg, spans: find(arg, !code(arg))}
		name, value, joined := strings.Cut(arg, "=")
		flag := strings.HasPrefix(arg, "-")
		// env, and Hydra's overrides, have NAME=value where other programs have flags.
		if joined && (flag || assignable.MatchString(name)) && nameFlag(name).holds(value) {
			r.add(len(name)+1, len(arg))
		}
		if joined && userFlag(name) {
			r.credentials(len(name) + 1)
		}
		if i > 0 && !flagLike(arg) {
			r.valueOf(argv[i-1])
		}
		out[i] = r.merged()
	}
	return out
}

var assignable = regexp.MustCompile(`^[+~]*[A-Za-z_][A-Za-z0-9_.-]*$`)

// code reports whether an argument is a program, as after python -c: names in it are variables.
func code(arg string) bool { return strings.ContainsAny(arg, "(\n") && !strings.HasPrefix(arg, "{") }

// valueOf masks an argument that is the value of the flag before it.
func (r *reading) valueOf(flag string) {
	if !strings.HasPrefix(flag, "-") || strings.Contains(flag, "=") {
		return
	}
	switch {
	case nameFlag(flag).holds(r.text):
		r.add(0, len(r.text))
	case flag == "-p" && password(r.text):
		r.add(0, len(r.text))
	case userFlag(flag):
		r.credentials(0)
	}
}

var shortFlag = regexp.MustCompile(`^-[A-Za-z]$`)
var longFlag = regexp.MustCompile(`^--?[A-Za-z][A-Za-z0-9]*([-_.][A-Za-z0-9]+)*(=.*)?$`)

// flagLike reports whether the argument after a flag is another flag, rather than the flag's value. A value may begin
// with a dash too: a single dash with several letters after it, or an argument that looks random, is a value.
func flagLike(arg string) bool {
	name, _, joined := strings.Cut(arg, "=")
	return shortFlag.MatchString(arg) || longFlag.MatchString(arg) && !random(name) &&
		(joined || strings.HasPrefix(arg, "--"))
}

func userFlag(name string) bool {
	return strings.HasPrefix(name, "-") && slices.Contains(theRules().UserFlags, strings.Trim(name, "-"))
}

// credentials masks the password in user:password, which begins at a position. credentials leaves 1000:1000, which is a
// user's and a group's number.
func (r *reading) credentials(at int) {
	user, secret, ok := strings.Cut(r.text[at:], ":")
	if ok && user != "" && secret != "" && !strings.HasPrefix(secret, "//") && strings.Trim(secret, "0123456789") != "" {
		r.add(at+len(user)+1, len(r.text))
	}
}

var precision = regexp.MustCompile(`^(bf|fp|float|int|uint|tf)[0-9]+$`)

// password reports whether the value of -p is a password, and not a port, a path, a precision or a plugin.
func password(v string) bool {
	return len(v) >= 4 && evident(v) && !strings.ContainsAny(v, "/=") && strings.Trim(v, "0123456789.:-,") != "" &&
		!pathLike.MatchString(v) && !precision.MatchString(v)
}
