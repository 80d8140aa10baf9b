package units

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable replaces what does something to a terminal or to the order of a line instead of standing in it: control
// characters (the escapes of ANSI begin with one), the marks of text that runs from right to left, and bytes that are
// no text. Names come from scripts and files, and must not change what is shown around them.
func Printable(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) { // as most names are
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || Unprintable(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// Text is what JSON keeps of a name that is no valid UTF-8, such as a file's: each byte that is no text as Python
// writes it, \udcff for 0xff, so that no two names become the same.
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

// Texts is [Text] of each.
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

// OneLine keeps what a compiler or an interpreter said of itself from looking like several errors.
func OneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
