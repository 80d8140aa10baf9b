package paper_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/report/paper"
)

// needsTeX skips a test that runs LaTeX, unless DPSIGHT_TEST_TEX is set. make test-paper sets it if LaTeX is installed.
func needsTeX(t *testing.T) {
	t.Helper()
	if os.Getenv("DPSIGHT_TEST_TEX") == "" {
		t.Skip("no document is compiled: make test-paper does, where LaTeX is installed")
	}
}

var overfull = regexp.MustCompile(`Overfull \\hbox \(([0-9.]+)pt too wide\)`)

// compile runs LaTeX on a document, and fails the test if LaTeX reports a problem.
func compile(t *testing.T, dir, name string) {
	t.Helper()
	run := func(program string, arguments ...string) string {
		command := exec.Command(program, arguments...)
		command.Dir = dir
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
		return string(out)
	}
	latex := func(options ...string) string {
		run("pdflatex", append(options, "-interaction=nonstopmode", "-halt-on-error", name)...)
		return strings.ReplaceAll(read(t, dir, name+".log"), "\n", " ")
	}
	latex("-draftmode")
	if aux := read(t, dir, name+".aux"); strings.Contains(aux, `\citation`) && strings.Contains(aux, `\bibdata`) {
		if out := run("bibtex", name); strings.Contains(out, "Warning") {
			t.Errorf("%s: bibtex: %s", name, out)
		}
	}
	log := latex()
	if strings.Contains(log, "Rerun to get") || strings.Contains(log, "undefined") {
		log = latex()
	}
	for _, m := range overfull.FindAllStringSubmatch(log, -1) {
		if wide, err := strconv.ParseFloat(m[1], 64); err != nil || wide > 1 {
			t.Errorf("%s: a box is %s pt too wide", name, m[1])
		}
	}
	if strings.Contains(log, "undefined") {
		t.Errorf("%s: something is undefined", name)
	}
}

// LaTeX compiles the documents of recorded stores without errors, boxes that are too wide and undefined references.
func TestDocumentsCompile(t *testing.T) {
	needsTeX(t)
	for _, example := range []string{"headline", "headline-batch", "trainers", "seq", "lora"} {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			dir, _ := write(t, example, nil)
			compile(t, dir, "main")
		})
	}
}

// A class describes a LaTeX document class in which authors write.
type class struct {
	widths   paper.Widths
	preamble string
}

// packages loads the LaTeX packages that a document needs for the tables and figures of a paper.
const packages = `\usepackage{booktabs}\usepackage[flushleft]{threeparttable}\usepackage{siunitx}
\usepackage{pgfplots}\usetikzlibrary{arrows.meta,patterns,patterns.meta}
`

// compileIn compiles a document of another class. The document has the tables and a figure of a recorded store.
func compileIn(t *testing.T, c class) {
	t.Helper()
	dir, _ := write(t, "headline", func(m *paper.Model) { m.Config.Widths = c.widths })
	text := c.preamble + packages + "\\input{style}\\input{captions}\n\\begin{document}\n" +
		"\\input{tables/main}\\input{tables/components}\\input{tables/phases}\n" +
		"\\begin{figure}[t]\\centering\\input{figures/breakdown}\\caption[]{\\dpsCaption{breakdown}}\\end{figure}\n" +
		"Text~\\cite{abadi2016deep}.\\bibliographystyle{plain}\\bibliography{references}\n\\end{document}\n"
	if err := os.WriteFile(filepath.Join(dir, "other.tex"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	compile(t, dir, "other")
}

// A document can have tables and figures of two folders, if one of them has a prefix.
func TestTwoFoldersCompile(t *testing.T) {
	needsTeX(t)
	dir := t.TempDir()
	text := "\\documentclass[twocolumn]{article}\\usepackage[margin=1.6cm,columnsep=0.44cm]{geometry}" +
		"\\usepackage[T1]{fontenc}\\usepackage[utf8]{inputenc}\\usepackage{textcomp}\\usepackage{mathptmx}" +
		"\\usepackage[table]{xcolor}\n" + packages +
		"\\input{one/style}\\input{one/captions}\\input{two/captions}\n\\begin{document}\n"
	for _, of := range [][3]string{{"one", "headline", ""}, {"two", "seq", "seq-"}} {
		m := configured(t, of[1], func(c *paper.Config) { c.Prefix = of[2] })
		if _, err := paper.Write(filepath.Join(dir, of[0]), m); err != nil {
			t.Fatal(err)
		}
		text += "\\input{" + of[0] + "/tables/main}\\begin{figure}\\input{" + of[0] + "/figures/breakdown}" +
			"\\caption[]{\\dpsCaption{" + of[2] + "breakdown}}\\label{fig:" + of[2] + "breakdown}\\end{figure}\n" +
			"Table~\\ref{tab:" + of[2] + "main}, Figure~\\ref{fig:" + of[2] + "breakdown}~\\cite{abadi2016deep}.\n"
	}
	text += "\\bibliographystyle{plain}\\bibliography{one/references}\n\\end{document}\n"
	if err := os.WriteFile(filepath.Join(dir, "both.tex"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	compile(t, dir, "both")
}

// Tables and figures fit the columns of other document classes. The settings give the widths of these columns.
func TestOtherClassesCompile(t *testing.T) {
	needsTeX(t)
	const fonts = `\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}\usepackage{textcomp}\usepackage{mathptmx}
\usepackage[table]{xcolor}
`
	for name, c := range map[string]class{
		"IEEEtran": {paper.Widths{Column: 8.8, Page: 18.1}, `\documentclass[journal]{IEEEtran}` + "\n" + fonts},
		"NeurIPS": {paper.Widths{Column: 13.97, Page: 13.97}, `\documentclass{article}` +
			`\usepackage[textwidth=13.97cm,textheight=22.86cm]{geometry}` + "\n" + fonts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compileIn(t, c)
		})
	}
}

// ACM's document class for conferences loads its own fonts and packages.
func TestACM(t *testing.T) {
	testkit.Rest(t)
	if exec.Command("kpsewhich", "acmart.cls").Run() != nil {
		t.Skip("no acmart (apt-get install texlive-publishers)")
	}
	compileIn(t, class{paper.Widths{Column: 8.47, Page: 17.78},
		`\PassOptionsToPackage{table}{xcolor}\documentclass[sigconf,nonacm]{acmart}` + "\n"})
}

// Papers of unusual stores are written and compile, whatever the runs' names and sizes are.
func TestOddPapersCompile(t *testing.T) {
	needsTeX(t)
	for name, m := range oddModels(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if _, err := paper.Write(dir, m); err != nil {
				t.Fatal(err)
			}
			compile(t, dir, "main")
		})
	}
}
