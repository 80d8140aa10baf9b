package paper

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A markup says how a language writes the lines of a table.
type markup struct {
	text    func(Text) string
	italic  func(string) string
	heading func(string) string // makes a line of its own above rows
	label   func(string) string // makes the beginning of a row
	cell    func(c *Cell, italic bool) string
	end     string // ends a row
}

// writeBody writes the lines below the heads, without rules and space, since pages have styles for them.
func (g *Grid) writeBody(b *strings.Builder, m markup) {
	for i := range g.Lines {
		l := &g.Lines[i]
		switch l.kind {
		case heading:
			b.WriteString(m.heading(m.text(l.label)))
		case row:
			label := m.text(l.label)
			if l.italic {
				label = m.italic(label)
			}
			if l.indent {
				label = "&emsp;" + label
			}
			b.WriteString(m.label(label))
			for c := range l.cells {
				b.WriteString(m.cell(&l.cells[c], l.italic))
			}
			b.WriteString(m.end)
		case ruled, thin, space:
		}
	}
}

// angles escapes the characters that would begin a tag.
var angles = strings.NewReplacer("<", "&lt;", ">", "&gt;")

// html returns a cell of an HTML table. italic says whether the cell's whole line is in italics.
func (c *Cell) html(italic bool) string {
	text, style := angles.Replace(c.shown()), ""
	if c.best {
		text = "<b>" + text + "</b>"
	}
	if c.italic || italic {
		text = "<i>" + text + "</i>"
	}
	if c.marked {
		style = ` style="background:#e2e2e2"`
	}
	return "<td" + style + ">" + text + "</td>"
}

// writeMarkdown writes a table for Markdown.
func (g *Grid) writeMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString(g.caption(Text.markdown, func(s string) string { return "**" + s + "**" }) + "\n\n")
	b.WriteString("| " + g.First.markdown() + " |")
	for c := range g.Heads {
		b.WriteString(" " + g.title(c).markdown() + g.mark(c) + " |")
	}
	b.WriteString("\n|:---|" + strings.Repeat("---:|", len(g.Heads)) + "\n")
	g.writeBody(&b, markup{
		text:    Text.markdown,
		italic:  func(s string) string { return "*" + s + "*" },
		heading: func(s string) string { return "| _" + s + "_ |" + strings.Repeat(" |", len(g.Heads)) + "\n" },
		label:   func(s string) string { return "| " + s + " |" },
		cell:    func(c *Cell, _ bool) string { return " " + angles.Replace(c.decorated("**", "*", " ←")) + " |" },
		end:     "\n",
	})
	for i, n := range g.Notes {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("- " + n.begin() + n.text.markdown() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (n note) begin() string {
	if n.letter == "" {
		return ""
	}
	return "(" + n.letter + ") "
}

// mark returns the letter of a column's note.
func (g *Grid) mark(column int) string {
	if n := g.Heads[column].note; n != "" {
		return " (" + n + ")"
	}
	return ""
}

// writeHTML writes a table for a page.
func (g *Grid) writeHTML(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<table id=\"tab-%s\">\n<caption>%s</caption>\n<thead>\n", g.Name,
		g.caption(Text.html, func(s string) string { return "<b>" + s + "</b>" }))
	if len(g.Groups) > 0 {
		b.WriteString("<tr><th></th>")
		for _, o := range g.Groups {
			fmt.Fprintf(&b, "<th colspan=\"%d\">%s</th>", o.heads, o.text.html())
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("<tr><th>" + g.First.html() + "</th>")
	for c, h := range g.Heads {
		b.WriteString("<th>" + h.text.html() + g.mark(c) + "</th>")
	}
	b.WriteString("</tr>\n</thead>\n<tbody>\n")
	g.writeBody(&b, markup{
		text:   Text.html,
		italic: func(s string) string { return "<i>" + s + "</i>" },
		heading: func(s string) string {
			return fmt.Sprintf("<tr><th colspan=\"%d\"><i>%s</i></th></tr>\n", len(g.Heads)+1, s)
		},
		label: func(s string) string { return "<tr><th>" + s + "</th>" },
		cell:  (*Cell).html,
		end:   "</tr>\n",
	})
	b.WriteString("</tbody>\n</table>\n")
	for _, n := range g.Notes {
		b.WriteString("<p>" + n.begin() + n.text.html() + "</p>\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeText writes a table for a terminal.
func (g *Grid) writeText(w io.Writer) error {
	var b strings.Builder
	b.WriteString(g.caption(Text.text, func(s string) string { return s }) + "\n\n")
	first := utf8.RuneCountInString(g.First.text())
	for i := range g.Lines {
		if l := &g.Lines[i]; l.kind == row {
			first = max(first, utf8.RuneCountInString(l.textLabel()))
		}
	}
	widths, titles := make([]int, len(g.Heads)), make([]string, len(g.Heads))
	for c := range g.Heads {
		titles[c] = g.title(c).text() + g.mark(c)
		widths[c] = utf8.RuneCountInString(titles[c])
		for i := range g.Lines {
			if g.Lines[i].kind == row {
				widths[c] = max(widths[c], utf8.RuneCountInString(g.Lines[i].cells[c].decorated("**", "~", " ←")))
			}
		}
	}
	line := func(label string, cells []string) {
		b.WriteString(label + strings.Repeat(" ", max(0, first-utf8.RuneCountInString(label))))
		for c, text := range cells {
			b.WriteString(strings.Repeat(" ", 2+widths[c]-utf8.RuneCountInString(text)) + text)
		}
		b.WriteString("\n")
	}
	rule := first
	for _, n := range widths {
		rule += 2 + n
	}
	line(g.First.text(), titles)
	b.WriteString(strings.Repeat("─", rule) + "\n")
	for i := range g.Lines {
		l := &g.Lines[i]
		switch l.kind {
		case ruled, thin:
			b.WriteString(strings.Repeat("─", rule) + "\n")
		case space:
			b.WriteString("\n")
		case heading:
			b.WriteString(l.label.text() + "\n")
		case row:
			var cells []string
			for c := range l.cells {
				cells = append(cells, l.cells[c].decorated("**", "~", " ←"))
			}
			line(l.textLabel(), cells)
		}
	}
	for i, n := range g.Notes {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(n.begin() + n.text.text() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (l *Line) textLabel() string {
	if l.indent {
		return "  " + l.label.text()
	}
	return l.label.text()
}
