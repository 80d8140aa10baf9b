package table

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dpsight/dpsight/schemas/screen"
	"github.com/dpsight/dpsight/schemas/units"
)

func writeMarkdown(w io.Writer, t *Table) error {
	var b strings.Builder
	if t.Title != "" {
		fmt.Fprintf(&b, "**%s**\n\n", Markdown(t.Title))
	}
	for i := range t.Blocks {
		x := &t.Blocks[i]
		fmt.Fprintf(&b, "**%s**\n\n", Markdown(x.Title))
		for _, p := range x.Parts {
			b.WriteString("- " + Markdown(p.Label+": "+p.Text) + "\n")
		}
		b.WriteByte('\n')
	}
	if t.Blocks == nil && len(t.Columns) > 0 {
		t.pipes(&b)
	}
	for _, n := range t.Notes {
		b.WriteString("- " + Markdown(n) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// pipes writes the columns and rows as a Markdown table, with an empty line before notes.
func (t *Table) pipes(b *strings.Builder) {
	for _, c := range t.Columns {
		b.WriteString("| " + Markdown(c.Title) + " ")
	}
	b.WriteString("|\n")
	for _, c := range t.Columns {
		if c.Right {
			b.WriteString("|---:")
		} else {
			b.WriteString("|:---")
		}
	}
	b.WriteString("|\n")
	for _, row := range t.Rows {
		for _, cell := range row {
			b.WriteString("| " + Markdown(cell.Text) + " ")
		}
		b.WriteString("|\n")
	}
	if len(t.Notes) > 0 {
		b.WriteByte('\n')
	}
}

var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", ">",
	"&gt;", "[", `\[`,
	"]", `\]`, "#", `\#`, "&", "&amp;", "$", `\$`, "\n", " ", "\r", " ")

// Markdown escapes a text for a row of a Markdown table.
func Markdown(s string) string { return units.Printable(markdownEscapes.Replace(s)) }

// latexWidth is the number of characters, in the size of text, that fit across a page with two columns.
const latexWidth = 110

// writeLaTeX writes a tabular with booktabs' rules, ready for \input. A table wider than a page continues below, with
// its first column repeated. The paper adds a caption and a float.
func writeLaTeX(w io.Writer, t *Table) error {
	var b strings.Builder
	b.WriteString("% needs \\usepackage{booktabs}\n")
	if t.Title != "" {
		b.WriteString("% " + strings.ReplaceAll(units.Printable(t.Title), "\n", " ") + "\n")
	}
	for i := range t.Blocks {
		x := &t.Blocks[i]
		b.WriteString("\\par\\medskip\\noindent\\textbf{" + latex(x.Title) + "}\n")
		for _, p := range x.Parts {
			b.WriteString("\\par\\noindent " + latex(p.Label+": "+p.Text) + "\n")
		}
	}
	if t.Blocks == nil {
		t.tabulars(&b)
	}
	// Notes stand below the tabular: in it, a row of \linewidth would stretch the last column.
	for _, n := range t.Notes {
		b.WriteString("\\par\\smallskip\\noindent{\\footnotesize " + latex(n) + "\\par}\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tabulars writes all columns, in as many tabulars below one another as they need.
func (t *Table) tabulars(b *strings.Builder) {
	for i, columns := range t.pages(latexWidth) {
		if i > 0 {
			b.WriteString("\\par\\medskip\\noindent\n")
		}
		t.tabular(b, columns)
	}
}

// tabular writes one tabular with some of the columns.
func (t *Table) tabular(b *strings.Builder, columns []int) {
	b.WriteString("\\begin{tabular}{@{}")
	for _, j := range columns {
		if t.Columns[j].Right {
			b.WriteByte('r')
		} else {
			b.WriteByte('l')
		}
	}
	b.WriteString("@{}}\n\\toprule\n")
	line := func(text func(j int) string) {
		for i, j := range columns {
			if i > 0 {
				b.WriteString(" & ")
			}
			s := latex(text(j))
			if i == 0 && strings.HasPrefix(s, "[") { // otherwise the preceding \\ would take the text as its argument
				s = "{}" + s
			}
			b.WriteString(s)
		}
		b.WriteString(" \\\\\n")
	}
	line(func(j int) string { return t.Columns[j].Title })
	b.WriteString("\\midrule\n")
	for _, row := range t.Rows {
		line(func(j int) string { return row[j].Text })
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
}

// pages divides the columns into as few parts as possible. Each part is at most most wide, and all have about the same
// width. Columns of one subject stay together unless they are too wide.
func (t *Table) pages(most int) [][]int {
	widths := make([]int, len(t.Columns))
	var subjects [][]int
	for j, c := range t.Columns {
		widths[j] = screen.Width(c.Title)
		for _, row := range t.Rows {
			widths[j] = max(widths[j], screen.Width(row[j].Text))
		}
		widths[j] += 2 // space between columns
		if j == 1 || j > 1 && c.Begins {
			subjects = append(subjects, nil)
		}
		if n := len(subjects); n > 0 {
			subjects[n-1] = append(subjects[n-1], j)
		}
	}
	if len(widths) < 2 {
		return [][]int{{0}}[:len(widths)]
	}
	parts := divided(widths, subjects, most)
	for narrower := most - 1; narrower > 0; narrower-- {
		tighter := divided(widths, subjects, narrower)
		if len(tighter) > len(parts) {
			break
		}
		parts = tighter
	}
	return parts
}

// divided fills parts of at most most width from the left, each beginning with the first column.
func divided(widths []int, subjects [][]int, most int) (parts [][]int) {
	at := most // as if the previous part were full
	put := func(columns []int, w int) {
		if at+w > most {
			parts, at = append(parts, []int{0}), widths[0]
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], columns...)
		at += w
	}
	for _, columns := range subjects {
		all := 0
		for _, j := range columns {
			all += widths[j]
		}
		if widths[0]+all <= most {
			put(columns, all)
			continue
		}
		at = most
		for _, j := range columns {
			put([]int{j}, widths[j])
		}
	}
	return parts
}

var latexEscapes = strings.NewReplacer(`\`, `\textbackslash{}`, "{", `\{`, "}", `\}`, "$", `\$`, "&", `\&`, "#", `\#`,
	"%", `\%`,
	"_", `\_`, "^", `\textasciicircum{}`, "~", `\textasciitilde{}`, "<", `\textless{}`, ">", `\textgreater{}`, "|",
	`\textbar{}`,
	"Δ", `$\Delta$`, "×", `$\times$`, "−", `$-$`, "–", `--`, "≤", `$\le$`, "±", `$\pm$`, "\n", " ", "\r", " ")

func latex(s string) string {
	return strings.ReplaceAll(units.Printable(latexEscapes.Replace(s)), "�", "?")
}

func writeCSV(w io.Writer, t *Table) error { return writeRecords(w, t, true) }

func writeRecords(w io.Writer, t *Table, header bool) error {
	cw := csv.NewWriter(w)
	if header {
		if err := cw.Write(t.keys()); err != nil {
			return err
		}
	}
	var record []string
	for row := range t.rows() {
		record = record[:0]
		for j, cell := range row {
			switch {
			case t.Columns[j].For == People:
			case cell.Value == nil:
				record = append(record, "")
			default:
				record = append(record, csvCell(cell.Value))
			}
		}
		if err := cw.Write(record); err != nil {
			return err
		}
	}
	cw.Flush()
	return cw.Error()
}

// csvCell returns a value for a CSV file. Text that a spreadsheet would take for a formula is escaped.
func csvCell(value any) string {
	text, words := value.(string)
	if !words {
		return units.Printable(fmt.Sprint(value))
	}
	text = units.Printable(strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ").Replace(text))
	if text != "" && strings.ContainsRune("=+-@", rune(text[0])) {
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return "'" + text
		}
	}
	return text
}

func (c *Column) key() string {
	if c.Key != "" {
		return c.Key
	}
	return c.Title
}

func writeJSON(w io.Writer, t *Table) error {
	doc := t.Document
	if doc == nil {
		rows := make([]map[string]any, len(t.Rows))
		for i, row := range t.Rows {
			rows[i] = map[string]any{}
			for j, cell := range row {
				rows[i][t.Columns[j].key()] = cell.Value
			}
		}
		doc = map[string]any{"title": t.Title, "rows": rows, "notes": append([]string{}, t.Notes...)}
	}
	e := json.NewEncoder(printableJSON{w})
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(doc)
}

// printableJSON escapes the characters that [units.Printable] replaces and JSON does not escape. Only strings can
// contain such characters.
type printableJSON struct{ w io.Writer }

func (p printableJSON) Write(b []byte) (int, error) {
	out := make([]byte, 0, len(b))
	for rest := b; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if n > 1 && units.Unprintable(r) || r == 0x7f {
			out = fmt.Appendf(out, "\\u%04x", r)
		} else {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	if _, err := p.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
