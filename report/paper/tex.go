package paper

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

const warning = "% Written by dpsight from recorded runs: edit labels in paper.yaml, not here.\n"

// writeTeX writes a table for LaTeX, with booktabs, siunitx and threeparttable.
func (g *Grid) writeTeX(w io.Writer) error {
	var b strings.Builder
	environment, size, width, gap := "table", `\footnotesize`, `\columnwidth`, "2pt"
	if g.Wide {
		environment, size, width, gap = "table*", `\small`, `\textwidth`, "3pt"
	}
	if len(g.Heads) >= 6 && !g.Wide {
		gap = "1.5pt"
	}
	b.WriteString(warning)
	fmt.Fprintf(&b, "\\begin{%s}\\centering%s\\setlength{\\tabcolsep}{%s}\n", environment, size, gap)
	if len(g.Notes) > 0 {
		b.WriteString("\\begin{threeparttable}\n")
	}
	fmt.Fprintf(&b, "\\dpsTableSkip\\caption{%s}\n\\label{tab:%s}\n", g.caption(Text.tex, func(s string) string {
		return `\textbf{` + s + "}"
	}), g.Label)
	margin := "@{}"
	if g.anyMarked() { // a grey cell reaches over the space beside its column: the rules reach as far
		margin = ""
	}
	fmt.Fprintf(&b, "\\begin{tabular*}{%s}{@{\\extracolsep{\\fill}}l %s%s}\n\\toprule\n", width, g.columns(), margin)
	g.writeHeads(&b)
	for i := range g.Lines {
		g.writeLine(&b, &g.Lines[i])
	}
	b.WriteString("\\bottomrule\n\\end{tabular*}\n")
	if len(g.Notes) > 0 {
		b.WriteString("\\begin{tablenotes}[flushleft]\\footnotesize\n")
		for _, n := range g.Notes {
			if n.letter == "" {
				b.WriteString(`\item[]\hspace{-.65ex}` + n.text.tex() + "\n")
			} else {
				fmt.Fprintf(&b, "\\item[%s] %s\n", n.letter, n.text.tex())
			}
		}
		b.WriteString("\\end{tablenotes}\n\\end{threeparttable}\n")
	}
	fmt.Fprintf(&b, "\\end{%s}\n", environment)
	_, err := io.WriteString(w, b.String())
	return err
}

// anyMarked reports whether some cell is grey.
func (g *Grid) anyMarked() bool {
	return slices.ContainsFunc(g.Lines, func(l Line) bool {
		return slices.ContainsFunc(l.cells, func(c Cell) bool { return c.marked })
	})
}

// columns returns siunitx's column types, each with the format of the column's numbers.
func (g *Grid) columns() string {
	var specs []string
	for c := range g.Heads {
		whole, digits, sign, pre, numbers := 0, 0, false, false, false
		for i := range g.Lines {
			if g.Lines[i].kind != row {
				continue
			}
			cell := &g.Lines[i].cells[c]
			if !cell.isNumber() {
				continue
			}
			numbers = true
			pre = pre || cell.atLeast
			text := cell.text
			if text[0] == '+' || text[0] == '-' {
				sign, text = true, text[1:]
			}
			before, after, _ := strings.Cut(text, ".")
			whole, digits = max(whole, len(before)), max(digits, len(after))
		}
		if !numbers {
			specs = append(specs, "c")
			continue
		}
		format := fmt.Sprintf("%d.%d", whole, digits)
		if sign {
			format = "+" + format
		}
		if pre {
			format += ",table-space-text-pre={$\\geq$}"
		}
		specs = append(specs, "S[table-format="+format+"]")
	}
	return strings.Join(specs, " ")
}

// isNumber reports whether siunitx can read the cell, unlike "<0.01" or ">-0.01".
func (c *Cell) isNumber() bool { return !c.word && c.text[0] != '<' && c.text[0] != '>' }

func (g *Grid) writeHeads(b *strings.Builder) {
	if len(g.Groups) > 0 {
		var rules strings.Builder
		at := 2
		for i, o := range g.Groups {
			fmt.Fprintf(b, "& \\multicolumn{%d}{c}{%s} ", o.heads, o.text.tex())
			if len(o.text) > 0 {
				trim := "lr"
				if i == len(g.Groups)-1 {
					trim = "l"
				}
				fmt.Fprintf(&rules, "\\cmidrule(%s){%d-%d}", trim, at, at+o.heads-1)
			}
			at += o.heads
		}
		b.WriteString("\\\\\n" + rules.String() + "\n")
	}
	b.WriteString(g.First.tex())
	for _, h := range g.Heads {
		text := h.text.tex()
		if h.lines != nil {
			text = `\dpsHead{` + h.lines[0].tex() + `\\` + h.lines[1].tex() + "}"
		}
		if h.note != "" {
			text += `\tnote{` + h.note + "}"
		}
		b.WriteString(" & {" + text + "}")
	}
	b.WriteString(" \\\\\n\\midrule\n")
}

func (g *Grid) writeLine(b *strings.Builder, l *Line) {
	switch l.kind {
	case ruled:
		b.WriteString("\\midrule\n")
	case thin:
		b.WriteString("\\specialrule{\\cmidrulewidth}{1.5pt}{2pt}\n")
	case space:
		b.WriteString("\\addlinespace\n")
	case heading:
		fmt.Fprintf(b, "\\multicolumn{%d}{@{}l}{\\emph{%s}} \\\\\n", len(g.Heads)+1, l.label.tex())
	case row:
		label := l.label.tex()
		if l.italic {
			label = `\emph{` + label + "}"
		}
		if l.indent {
			label = `\quad ` + label
		}
		b.WriteString(label)
		for i := range l.cells {
			b.WriteString(" & " + l.cells[i].tex(l.italic))
		}
		b.WriteString(" \\\\\n")
	}
}

// tex returns a cell of a siunitx column. italic says whether the cell's whole line is in italics.
func (c *Cell) tex(italic bool) string {
	text := c.text
	switch {
	case c.word:
		text = "{" + escape(text) + "}"
	case !c.isNumber():
		text = "{" + strings.NewReplacer("<", "$<$", ">-", "$>$$-$").Replace(text) + "}"
	case c.atLeast:
		text = `{$\geq$}` + text
	}
	braced := text[0] == '{' && !c.atLeast
	switch {
	case text == "{}":
	case braced && c.best:
		text = `{\bfseries ` + text[1:]
	case braced && (c.italic || italic):
		text = `{\itshape ` + text[1:]
	case braced:
	case c.best:
		text = `\bfseries ` + text
	case c.italic || italic:
		text = `\itshape ` + text
	}
	if c.marked {
		text = `\dpsMark ` + text
	}
	return text
}
