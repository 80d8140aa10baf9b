package paper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/report/plates"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// needed are the packages that the tables and figures need, in any document.
const needed = `\usepackage{booktabs}
\usepackage[flushleft]{threeparttable}
\usepackage{siunitx}
\usepackage[table]{xcolor}
\usepackage{pgfplots}
\usetikzlibrary{arrows.meta,patterns,patterns.meta}
`

// preamble is the preamble of a document in two columns. The preamble's packages come with Debian's
// texlive-latex-extra, texlive-pictures and texlive-science, or with packages that these need.
const preamble = `\documentclass[10pt,twocolumn,a4paper]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\usepackage{mathptmx}\renewcommand{\ttdefault}{pcr}
\usepackage[textwidth=17.6cm,columnsep=.6cm,top=2.2cm,bottom=2.4cm]{geometry}
\usepackage{microtype}
` + needed + `\usepackage[font=small,labelfont=bf,skip=4pt]{caption}
\captionsetup[figure]{skip=2pt}
\usepackage{placeins}
\usepackage{stfloats}
\usepackage[hidelinks]{hyperref}
%CJK%\input{style}
\input{captions}
\setlength{\textfloatsep}{9pt plus 2pt minus 2pt}\setlength{\floatsep}{9pt plus 2pt minus 2pt}
\renewcommand{\topfraction}{.95}\renewcommand{\bottomfraction}{.9}
\renewcommand{\textfraction}{.04}\renewcommand{\floatpagefraction}{.85}
\setcounter{topnumber}{4}\setcounter{totalnumber}{6}\setcounter{dbltopnumber}{3}
\makeatletter
\renewcommand{\fps@figure}{!htbp}\renewcommand{\fps@table}{!htbp}
\setlength{\@fptop}{0pt}\setlength{\@fpsep}{10pt}
\setlength{\@dblfptop}{0pt}\setlength{\@dblfpsep}{12pt}
\makeatother
\emergencystretch=1em
\raggedbottom
`

// document returns main.tex.
func (b *builder) document() string {
	var t strings.Builder
	cjk := ""
	if b.foreign() {
		cjk = "\\IfFileExists{CJKutf8.sty}{\\IfFileExists{c70gbsn.fd}{\\usepackage{CJKutf8}}{}}{}\n"
	}
	t.WriteString("% Compiles with: " + b.commands() + "\n" + strings.Replace(preamble, "%CJK%", cjk, 1))
	title := "What the Runs Cost, and Where"
	if b.private() {
		title = "What DP-SGD Costs, and Where"
	}
	fmt.Fprintf(&t, "\\begin{document}\n\\twocolumn["+
		"\\begin{center}\\Large\\bfseries %s\\end{center}\\vspace{2mm}]\n", title)
	if early := b.early(); early != "" { // LaTeX puts a page-wide table at the foot of the page on which it reads it
		fmt.Fprintf(&t, "\\begingroup\\expandafter\\let\\csname dps-table*\\expandafter\\endcsname"+
			"\\csname table*\\endcsname\n"+
			"\\expandafter\\def\\csname table*\\endcsname{\\csname dps-table*\\endcsname[b]}\n"+
			"\\input{tables/%s}\\endgroup\n", early)
	}
	t.WriteString("\\section{Setup}\n\\input{setup}\n")
	t.WriteString("\\section{Results}\n" + b.sentences())
	for _, name := range shownTogether {
		for i := range b.plates {
			if p := &b.plates[i]; !p.aside && (p.Name == name || strings.HasPrefix(p.Name, name+"-")) {
				t.WriteString(b.float(p))
			}
		}
		for _, g := range b.tables {
			if g.Name == name && name != b.early() {
				fmt.Fprintf(&t, "\\input{tables/%s}\n", g.Name)
			}
		}
	}
	t.WriteString("\\FloatBarrier\n")
	if len(b.cited()) > 0 {
		t.WriteString("\\bibliographystyle{abbrv}\n{\\small\\bibliography{references}}\n")
	}
	t.WriteString("\\end{document}\n")
	return t.String()
}

// float returns the environment that shows a figure with its caption and label.
func (b *builder) float(p *Plate) string {
	name := b.config.Prefix + p.Name
	return fmt.Sprintf("\\begin{figure}\\centering\n\\input{figures/%s}\n\\caption[]{\\dpsCaption{%s}}\n"+
		"\\label{fig:%s}\n\\end{figure}\n", fileName(p.Name, b.config.stylesOf()[0]), name, name)
}

// early returns the main table if it is as wide as a page and low. LaTeX can put such a table only at the foot of the
// first page, and only if it reads the table before the text. For other tables it returns "".
func (b *builder) early() string {
	const mostLines = 24 // of text and space, including the text above the lines
	for _, g := range b.tables {
		high := 0
		for i := range g.Lines {
			if g.Lines[i].kind != thin {
				high++
			}
		}
		if g.Name == "main" && g.Wide && high <= mostLines {
			return g.Name
		}
	}
	return ""
}

// foreign reports whether some label needs fonts that a TeX installation may lack.
func (b *builder) foreign() bool {
	return slices.ContainsFunc(b.paper.Methods, func(key string) bool {
		l := b.labels[key]
		return hasCJK(l.Full + l.Short + l.Head)
	})
}

// shownTogether is the order of the tables and figures in the document.
var shownTogether = []string{"main", "breakdown", "waterfall", "step", "components", "roles", "ladder", "steps", "time",
	"phases", "tradeoff", "repeats", "lines", "pivot", "heatmap", "largest", "trend", "accuracy", "ablation"}

// private reports whether some run trains privately. A run that only computes norms does not.
func (b *builder) private() bool {
	return slices.ContainsFunc(b.paper.Groups, func(g exhibits.Group) bool {
		return slices.ContainsFunc(g.Entries, func(e exhibits.Entry) bool {
			_, known := methods[e.Method()]
			return known && e.Method() != "vanilla" && !e.NormsOnly()
		})
	})
}

// sentences returns the sentences that refer to each table and figure.
func (b *builder) sentences() string {
	what := map[string]string{"main": "compares what each %s costs", "components": "breaks the peaks down by component",
		"phases":  "shows " + phasesShow(exhibits.PhasesOf(b.paper.Last())),
		"pivot":   "varies " + b.sweptWords(),
		"repeats": "shows how far repeated runs lie apart", "accuracy": "holds predicted peaks beside measured ones",
		"ablation": "shows what each change saves"}
	var parts []string
	for _, g := range b.tables {
		text := what[g.Name]
		if g.Name == "main" {
			text = fmt.Sprintf(text, strings.ToLower(b.first()))
		}
		parts = append(parts, fmt.Sprintf("Table~\\ref{tab:%s} %s.\n", b.config.Prefix+g.Name, escape(text)))
	}
	drawn := map[string]string{"breakdown": "what each peak is made of", "waterfall": "what is added to the " +
		"baseline's", "time": "where the time of a step goes", "tradeoff": "time against memory",
		"lines": "the peak by " + b.sweptWords(), "lines-time": "the time by " + b.sweptWords(),
		"heatmap": "the peak of each setting", "accuracy": "predictions beside measurements",
		"largest": "the largest batches",
		"roles":   "which modules and operations hold a peak", "ladder": "what else uses the GPU's memory",
		"trend": "the peaks over revisions of the code"}
	if b.comparedAny() {
		drawn["lines"] = "the overhead in memory by " + b.sweptWords()
	}
	if slices.ContainsFunc(b.paper.Groups, func(g exhibits.Group) bool {
		return slices.ContainsFunc(g.Entries, func(e exhibits.Entry) bool { return e.Status == schemas.StatusOOM })
	}) {
		drawn["heatmap"] = "what fits"
	}
	var references []string
	for _, name := range shownTogether {
		for i := range b.plates {
			p := &b.plates[i]
			if p.aside || p.Name != name && !strings.HasPrefix(p.Name, name+"-") {
				continue
			}
			text := drawn[p.Name]
			switch {
			case text != "":
			case name == "steps":
				text = "the memory of all recorded steps"
			default:
				text = "when a step peaks"
			}
			if len(references) == 0 {
				text = "shows " + text
			}
			references = append(references, fmt.Sprintf("Figure~\\ref{fig:%s} %s", b.config.Prefix+p.Name, escape(text)))
		}
	}
	if len(references) > 0 {
		parts = append(parts, strings.Join(references, ", ")+".\n")
	}
	if b.private() {
		parts = append(parts, "The private methods compute the clipped and noisy gradient of DP-SGD~\\cite{abadi2016deep}.\n")
	}
	return strings.Join(parts, "")
}

// captions returns captions.tex, which defines the text under each figure as \dpsCaption{name}.
func (b *builder) captions() string {
	var t strings.Builder
	t.WriteString("% Written by dpsight: the captions of the figures. Tables have theirs in their own files.\n" +
		"\\providecommand{\\dpsCaption}[1]{\\csname dps@caption@#1\\endcsname}\n\\makeatletter\n")
	for i := range b.plates {
		p := &b.plates[i]
		fmt.Fprintf(&t, "\\@namedef{dps@caption@%s}{\\textbf{%s} %s}\n", b.config.Prefix+p.Name, p.Finding.tex(),
			p.Caption.tex())
	}
	t.WriteString("\\makeatother\n")
	return t.String()
}

// style returns style.tex, which a document needs for the figures and tables.
func style() string {
	tables, err := files.ReadFile("tables.tex")
	if err != nil {
		panic(err) // the style file is part of the program
	}
	return "% Written by dpsight.\n" + plates.StyleTeX() + string(tables)
}

// cited returns the keys of the references that the document cites.
func (b *builder) cited() (keys []string) {
	add := func(key string) {
		if key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if b.private() {
		add("abadi2016deep")
	}
	for _, key := range b.paper.Methods {
		add(b.labels[key].Cite)
	}
	for _, key := range setupReferences(b) {
		add(key)
	}
	return keys
}

// commands returns the commands that compile the document. BibTeX is left out if nothing is cited, since it would fail.
func (b *builder) commands() string {
	if len(b.cited()) == 0 {
		return "pdflatex main && pdflatex main"
	}
	return "pdflatex main && bibtex main && pdflatex main && pdflatex main"
}

// readme returns README.md, which says how the folder was made, what it contains, and what was left out.
func (b *builder) readme() string {
	var t strings.Builder
	t.WriteString("# Tables and figures of runs\n\nWritten by:\n\n```\n" + commandLine(b.model.Command) + "\n```\n\n" +
		"`main.tex` compiles as it is: `" + b.commands() + "`.\n\n" + b.ownPaper() + "| File | What |\n|:---|:---|\n")
	for _, line := range [][2]string{
		{"main.tex", "a document with all of it"},
		{"style.tex", "colours, type sizes and commands of tables and figures"},
		{"setup.tex", "hardware, versions, model, privacy and measurement"},
		{"captions.tex", "captions of the figures"},
		{"references.bib", "the methods' references"},
		{"tables/", "each table for LaTeX, Markdown, HTML and as text"},
		{"figures/", "each figure for LaTeX (pgfplots), as PDF, SVG and PNG"},
		{"data/", "the figures behind each figure, in bytes and seconds"},
	} {
		fmt.Fprintf(&t, "| `%s` | %s |\n", line[0], line[1])
	}
	t.WriteString("\nNumbers come from `dpsight overhead`, `breakdown` and `phases --format json`, rounded. " +
		"`" + ConfigFile + "` in this folder changes rows, columns, labels, units and digits; " +
		"`dpsight paper --init` writes one.\n")
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		t.WriteString("\n## " + title + "\n\n")
		for _, l := range lines {
			t.WriteString("- " + markdownEscaper.Replace(units.OneLine(l)) + "\n")
		}
	}
	section("Labels", b.labelLines())
	if b.foreign() {
		section("Fonts", []string{"Labels in Chinese, Japanese or Korean need LaTeX's CJKutf8 and its fonts (Debian: " +
			"texlive-lang-chinese). Without them, and in figures, the method or a number stands there; labels and short in " +
			ConfigFile + " can give others."})
	}
	section("Not shown", append(slices.Clone(b.left), b.model.Notes...))
	section("Warnings of the documents", b.model.Warnings)
	return t.String()
}

// ownPaper says how to put a table and a figure into another document.
func (b *builder) ownPaper() string {
	var t strings.Builder
	t.WriteString("For a paper of your own, these lines belong in the preamble:\n\n```latex\n" + needed +
		"\\input{style}\n\\input{captions}\n```\n\n")
	if len(b.tables) > 0 {
		fmt.Fprintf(&t, "A table has its caption and label:\n\n```latex\n\\input{tables/%s}\n```\n\n", b.tables[0].Name)
	}
	if len(b.plates) > 0 {
		t.WriteString("A figure gets them here:\n\n```latex\n" + b.float(&b.plates[0]) + "```\n\n")
	}
	t.WriteString("`widths` in `" + ConfigFile + "` adapts tables and figures to a document: `{column: 8.8, " +
		"page: 18.1}` for IEEEtran, `{column: 13.97, page: 13.97}` for NeurIPS. `prefix` gives labels and captions " +
		"other names, if a document takes tables and figures of several folders.\n\n")
	return t.String()
}

// labelLines say which runs the labels stand for, if labels differ from the runs' names.
func (b *builder) labelLines() (lines []string) {
	for _, key := range b.paper.Methods {
		l := b.labels[key]
		lines = append(lines, fmt.Sprintf("%s: %s", l.Full, key))
	}
	return lines
}

// commandLine returns a command with its words quoted for a shell.
func commandLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$&|;<>()*?[]#~`!{}") {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return units.OneLine(strings.Join(quoted, " "))
}
