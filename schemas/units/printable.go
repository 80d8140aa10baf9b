package units

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable replaces characters that would affect a terminal or the order of a line: control characters (ANSI escapes
// begin with one), right-to-left marks, and invalid bytes. Names come from scripts and files, and must not affect the
// text around them.
func Printable(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) { // most names have only such characters
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || Unprintable(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// Text returns a name as valid UTF-8 that JSON can hold, since a file's name may be invalid UTF-8. Text writes each
// invalid byte as Python does, \udcff for 0xff, so that different names stay different.
func Text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\udc%02x`, s[i])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// Texts returns [Text] of each name.
func Texts(names []string) (out []string) {
	for _, name := range names {
		out = append(out, Text(name))
	}
	return out
}

// Unprintable reports whether a character is one that [Printable] replaces.
func Unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// OneLine returns the output of a compiler or an interpreter as one line, so that it does not look like several errors.
func OneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
