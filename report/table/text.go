package table

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// writeText aligns columns with spaces.
func writeText(w io.Writer, t *Table) error {
	widths := make([]int, len(t.Columns))
	for j, c := range t.Columns {
		widths[j] = width(c.Title)
	}
	for _, row := range t.Rows {
		for j, cell := range row {
			widths[j] = max(widths[j], width(clean(cell.Text)))
		}
	}
	var b strings.Builder
	line := func(texts func(j int) string) {
		var l strings.Builder
		for j, c := range t.Columns {
			if j > 0 {
				l.WriteString("  ")
			}
			s := clean(texts(j))
			pad := strings.Repeat(" ", widths[j]-width(s))
			if c.Right {
				s = pad + s
			} else {
				s += pad
			}
			l.WriteString(s)
		}
		b.WriteString(strings.TrimRight(l.String(), " "))
		b.WriteByte('\n')
	}
	if t.Title != "" {
		b.WriteString(clean(t.Title) + "\n")
	}
	if len(t.Columns) > 0 {
		line(func(j int) string { return t.Columns[j].Title })
		line(func(j int) string { return strings.Repeat("-", widths[j]) })
	}
	for _, row := range t.Rows {
		line(func(j int) string { return row[j].Text })
	}
	for _, n := range t.Notes {
		b.WriteString("note: " + clean(n) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// clean replaces control characters: a run's name must not move the terminal's cursor.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return '�'
		}
		return r
	}, s)
}

// width is the number of terminal cells of s: two for East Asian wide characters, none for combining ones.
func width(s string) int {
	n := 0
	for _, r := range s {
		switch {
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
