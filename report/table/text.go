package table

import (
	"io"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas/screen"
	"github.com/dpsight/dpsight/schemas/units"
)

// mostNotes is the most notes of a table on a terminal. Elsewhere, and with --wide, a table has all notes.
const mostNotes = 3

// withoutRepeats removes a note that all tables have from all tables except the last.
func withoutRepeats(tables []Table) []Table {
	shared := func(note string) bool {
		return !slices.ContainsFunc(tables, func(t Table) bool { return !slices.Contains(t.Notes, note) })
	}
	out := slices.Clone(tables)
	for i := range max(0, len(out)-1) {
		out[i].Notes = slices.DeleteFunc(slices.Clone(out[i].Notes), shared)
	}
	return out
}

// writeText aligns columns with spaces. On a terminal, it keeps to the terminal's width.
func writeText(w io.Writer, t *Table) error {
	out := screen.Of(w)
	l := layoutFor(t, out.Columns)
	var b strings.Builder
	if t.Title != "" {
		b.WriteString(out.Bold(screen.Wrap(units.Printable(t.Title), out.Columns, "  ")) + "\n")
	}
	if t.Blocks != nil {
		t.writeBlocks(&b, out)
	} else if len(t.Columns) > 0 {
		l.line(&b, t, func(j int) string { return t.Columns[j].Title }, out.Bold)
		l.line(&b, t, func(j int) string { return strings.Repeat("-", l.widthOf(j)) }, nil)
	}
	if t.Blocks == nil {
		for _, row := range t.Rows {
			l.line(&b, t, func(j int) string { return row[j].Text }, nil)
		}
	}
	notes := t.Notes
	if more := len(notes) - mostNotes; more > 0 && out.Columns > 0 {
		notes = append(slices.Clone(notes[:mostNotes]), units.Plural(more, "more note", "more notes")+": --wide")
	}
	if hidden := l.note(t); hidden != "" && t.Blocks == nil {
		notes = append([]string{hidden}, notes...)
	}
	if len(t.Blocks) > 0 && len(notes) > 0 {
		b.WriteByte('\n')
	}
	for _, n := range notes {
		b.WriteString(screen.Wrap("note: "+units.Printable(n), out.Columns, "      ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeBlocks writes each block with its parts indented below its title, and an empty line before the next.
func (t *Table) writeBlocks(b *strings.Builder, out screen.Output) {
	const before = "   "
	widest := 0
	for i := range t.Blocks {
		for _, p := range t.Blocks[i].Parts {
			widest = max(widest, screen.Width(p.Label))
		}
	}
	for i := range t.Blocks {
		if i > 0 {
			b.WriteByte('\n')
		}
		x := &t.Blocks[i]
		b.WriteString(out.Bold(screen.Wrap(units.Printable(x.Title), out.Columns, before)) + "\n")
		for _, p := range x.Parts {
			label := before + p.Label + strings.Repeat(" ", widest-screen.Width(p.Label)+gap)
			b.WriteString(screen.WrapAfter(label, units.Printable(p.Text), out.Columns) + "\n")
		}
	}
}

// line writes one row, in as many lines as its highest cell. A heading ends on the line just above its column.
func (l *layout) line(b *strings.Builder, t *Table, text func(j int) string, heading func(string) string) {
	cells, height := make([][]string, len(l.columns)), 1
	for i, j := range l.columns {
		cells[i] = broken(units.Printable(text(j)), l.widths[i])
		height = max(height, len(cells[i]))
	}
	for y := range height {
		var line strings.Builder
		for i, j := range l.columns {
			at := y
			if heading != nil {
				at -= height - len(cells[i])
			}
			s := ""
			if at >= 0 && at < len(cells[i]) {
				s = cells[i][at]
			}
			if i > 0 {
				line.WriteString(strings.Repeat(" ", gap))
			}
			pad := strings.Repeat(" ", max(0, l.widths[i]-screen.Width(s)))
			if t.Columns[j].Right {
				s = pad + s
			} else {
				s += pad
			}
			line.WriteString(s)
		}
		s := strings.TrimRight(line.String(), " ")
		if heading != nil {
			s = heading(s)
		}
		b.WriteString(s + "\n")
	}
}

// widthOf returns the width of shown column j.
func (l *layout) widthOf(j int) int {
	for i := range l.columns {
		if l.columns[i] == j {
			return l.widths[i]
		}
	}
	return 0
}
