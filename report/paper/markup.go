package paper

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// writeMarkdown writes a table for Markdown.
func (g *Grid) writeMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString(g.caption(Text.markdown, func(s string) string { return "**" + s + "**" }) + "\n\n")
	b.WriteString("| " + g.First.markdown() + " |")
	for c := range g.Heads {
		b.WriteString(" " + g.title(c).markdown() + g.mark(c) + " |")
	}
	b.WriteString("\n|:---|" + strings.Repeat("---:|", len(g.Heads)) + "\n")
	for i := range g.Lines {
		l := &g.Lines[i]
		switch l.kind {
		case heading:
			b.WriteString("| *" + l.label.markdown() + "* |" + strings.Repeat(" |", len(g.Heads)) + "\n")
		case row:
			label := l.label.markdown()
			if l.italic {
				label = "*" + label + "*"
			}
			if l.indent {
				label = "&emsp;" + label
			}
			b.WriteString("| " + label + " |")
			for c := range l.cells {
				text := strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(l.cells[c].decorated("**", "*", " ←"))
				b.WriteString(" " + text + " |")
			}
			b.WriteString("\n")
		case ruled, thin, space:
		}
	}
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

// mark is the letter of a column's note.
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
	for i := range g.Lines {
		l := &g.Lines[i]
		switch l.kind {
		case heading:
			fmt.Fprintf(&b, "<tr><th colspan=\"%d\"><i>%s</i></th></tr>\n", len(g.Heads)+1, l.label.html())
		case row:
			label := l.label.html()
			if l.italic {
				label = "<i>" + label + "</i>"
			}
			if l.indent {
				label = "&emsp;" + label
			}
			b.WriteString("<tr><th>" + label + "</th>")
			for c := range l.cells {
				cell := &l.cells[c]
				text := strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(cell.shown())
				style := ""
				if cell.best {
					text = "<b>" + text + "</b>"
				}
				if cell.italic || l.italic {
					text = "<i>" + text + "</i>"
				}
				if cell.marked {
					style = ` style="background:#e2e2e2"`
				}
				b.WriteString("<td" + style + ">" + text + "</td>")
			}
			b.WriteString("</tr>\n")
		case ruled, thin, space:
		}
	}
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
