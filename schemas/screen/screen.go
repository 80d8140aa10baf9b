// Package screen fits text to the width and the colours of a terminal.
package screen

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// fewest is the smallest width, in columns, to which lines are fitted. A narrower terminal breaks the lines itself.
const fewest = 40

// An Output is where results are printed. Tables are fitted to the output's columns.
type Output struct {
	io.Writer
	Columns int  // columns of the terminal; 0 = no limit
	Colours bool // the terminal shows colours, and the user wants them
}

// On returns an output that writes to w. If wide is true, lines have no limit.
func On(w io.Writer, wide bool) *Output {
	o := &Output{Writer: w, Colours: colours(w)}
	if !wide {
		o.Columns = Columns(w)
	}
	return o
}

// Of returns w as an Output. If w is no Output, the result has no limit of columns and no colours.
func Of(w io.Writer) Output {
	if o, ok := w.(*Output); ok {
		return *o
	}
	return Output{Writer: w}
}

// Columns returns how wide lines on w may be; 0 means no limit. Columns returns $COLUMNS if that is set, else the width
// of w if w is a terminal. A shell does not export COLUMNS by itself, so a user who exports it wants that width.
func Columns(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return max(n, fewest)
	}
	if file, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(file.Fd())); err == nil && n > 0 {
			return max(n, fewest)
		}
	}
	return 0
}

// colours reports whether w is a terminal that shows colours, and the user has not turned them off
// (https://no-color.org).
func colours(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// Println writes a line to w, wrapped if w is a narrow terminal. If w shows colours, the word after "dpsight: "
// (error, warning or hint) gets its colour.
func Println(w io.Writer, text string) {
	o := On(w, false)
	text = Wrap(text, o.Columns, "  ")
	if o.Colours {
		for _, c := range []struct{ word, colour string }{{"error:", "31"}, {"warning:", "33"}, {"hint:", "36"}} {
			if before, after, found := strings.Cut(text, c.word); found && before == "dpsight: " {
				text = before + "\x1b[" + c.colour + "m" + c.word + "\x1b[0m" + after
			}
		}
	}
	fmt.Fprintln(w, text)
}

// Bold returns the text in bold if the output shows colours, else unchanged.
func (o Output) Bold(text string) string {
	if !o.Colours || text == "" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// Wrap breaks the lines of a text between words, so that each has at most the given number of columns; columns ≤ 0
// means no limit. A line that continues the line before begins with indent. A word that is longer than a line, such as
// a path, is not broken, since the user could not copy a broken path.
func Wrap(text string, columns int, indent string) string {
	if columns <= 0 {
		return text
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if Width(line) <= columns {
			out = append(out, line)
			continue
		}
		out = append(out, wrapLine(line, columns, indent)...)
	}
	return strings.Join(out, "\n")
}

// WrapAfter breaks a text that follows a label, so that further lines begin below the text's first word; columns ≤ 0
// means no limit.
func WrapAfter(label, text string, columns int) string {
	if columns <= 0 {
		return label + text
	}
	indent := strings.Repeat(" ", Width(label))
	lines := wrapLine(indent+text, columns, indent)
	return label + strings.TrimPrefix(strings.Join(lines, "\n"), indent)
}

func wrapLine(line string, columns int, indent string) (lines []string) {
	words := strings.Split(line, " ")
	current := words[0]
	for _, word := range words[1:] {
		if Width(current)+1+Width(word) > columns && strings.TrimSpace(current) != "" {
			lines, current = append(lines, strings.TrimRight(current, " ")), indent+word
		} else {
			current += " " + word
		}
	}
	return append(lines, strings.TrimRight(current, " "))
}

// Width returns the number of columns that s takes: two for an East Asian wide character, none for a combining
// character.
func Width(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r < 0xad: // no combining character is below U+00AD
			n++
		case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) || unicode.Is(unicode.Cf, r):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

func wide(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) ||
		r >= 0x3000 && r <= 0x303e || r >= 0xff01 && r <= 0xff60 || r >= 0x1f300 && r <= 0x1faff
}
