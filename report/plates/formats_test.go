package plates

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/xml"
	"flag"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

func drawn(t *testing.T, f Figure, s Style) *Drawing {
	t.Helper()
	d, err := f.Draw(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func written(t *testing.T, d *Drawing, name string) string {
	t.Helper()
	var b bytes.Buffer
	for _, f := range formats(d) {
		if f.name == name {
			if err := f.write(&b); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.String()
}

// texts returns the texts of a figure, in the order in which they are drawn.
func texts(d *Drawing) (out []string) {
	for _, i := range d.items {
		if i.label != nil {
			out = append(out, i.label.text)
		}
	}
	return out
}

// The numbers in a figure are the given numbers, rounded once.
func TestNumbers(t *testing.T) {
	bars := []Bar{{Label: "Base", Segments: []Segment{{"parameters", 10 * gib}, {"activations", 30.25 * gib}}},
		{Label: "Other", Segments: []Segment{{"parameters", 10 * gib}, {"activations", 40.35 * gib}}}}
	small := []Bar{{Label: "Base", Segments: []Segment{{"parameters", 512 << 20}}}, {Label: "One byte",
		Segments: []Segment{{"parameters", 1}}}}
	for _, c := range []struct {
		name string
		f    Figure
		want []string
	}{
		{"GiB", Breakdown{Bars: bars, Baseline: "Base"}, []string{"10.0", "30.2", "40.2", "40.4", "50.4", "+25.1\u2009%",
			"Allocated at the peak (GiB)"}},
		{"MiB", Breakdown{Bars: small, Baseline: "Base"}, []string{"512.0", "<0.1", "−100.0\u2009%",
			"Allocated at the peak (MiB)"}},
		{"slowdown", Time{Bars: times(), Baseline: "Non-private", Digits: 2}, []string{"4.1", "19.1", "4.70×",
			"Time of a step (s)"}},
		{"slowdown of one digit", Time{Bars: times(), Baseline: "Non-private", Digits: 1}, []string{"4.7×", "1.2×"}},
		{"milliseconds", Time{Bars: []Bar{{Label: "a", Segments: seconds("forward", 0.25)}}}, []string{"250",
			"Time of a step (ms)"}},
		{"net", figures()["waterfall"], []string{"+4.37", "−1.83", "+6.49 (+10.9\u2009%)"}},
		{"peak", figures()["step"], []string{"Peak 63.6 GiB"}},
		{"last of a line", figures()["lines"], []string{"Ghost 2.22", "Per-sample 41.4"}},
		{"cells", figures()["heatmap"], []string{"11.0", "~74.0", "≥\u200968.0", "OOM", "failed"}},
		{"largest", figures()["largest"], []string{"≥\u2009512", "OOM", "~96"}},
	} {
		got := texts(drawn(t, c.f, Column))
		for _, want := range c.want {
			if !slices.ContainsFunc(got, func(s string) bool { return s == want || strings.HasSuffix(s, " "+want) }) {
				t.Errorf("%s: no %q in %q", c.name, want, got)
			}
		}
	}
}

var update = flag.Bool("update", false, "rewrite the golden figures")

// The two golden figures must not change, even by a hundredth of a point.
func TestGoldenFigures(t *testing.T) {
	for _, name := range []string{"breakdown", "waterfall"} {
		got, path := written(t, drawn(t, figures()[name], Column), "svg"), filepath.Join("testdata", name+".svg")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs from %s: look at both; -update rewrites it", name, path)
		}
	}
}

// For any number of events, the figure of a step is drawn in few pieces, and it shows the peak.
func TestStepKeepsItsPeak(t *testing.T) {
	for _, n := range []int{1, 299, 300, 301, 100_003} {
		s := Step{At: []float64{0}, Bands: []Band{{"parameters", nil}, {"activations", nil}}}
		for i := range n {
			s.At = append(s.At, float64(i+1))
			s.Bands[0].Values = append(s.Bands[0].Values, 5)
			s.Bands[1].Values = append(s.Bands[1].Values, float64(i%7))
		}
		at := n * 2 / 3
		s.Bands[1].Values[at] = 1000
		r := s.reduce()
		if len(r.at) > MostStretches+1 || r.event != float64(at) || r.tops[1][r.peak] != 1005 || r.here[1] != 1000 {
			t.Errorf("%d events: %d pieces, the peak of %v at %v", n, len(r.at)-1, r.tops[1][r.peak], r.event)
		}
	}
}

// The SVG of a figure is XML of the figure's width. Each text of the figure is text in the SVG.
func TestSVGHasText(t *testing.T) {
	for name, f := range figures() {
		d := drawn(t, f, Column)
		var got []string
		x := xml.NewDecoder(strings.NewReader(written(t, d, "svg")))
		inText := false
		for {
			token, err := x.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			switch e := token.(type) {
			case xml.StartElement:
				inText = e.Name.Local == "text"
				if e.Name.Local == "svg" && e.Attr[1].Value != "240.94pt" {
					t.Errorf("%s: the width is %v", name, e.Attr)
				}
			case xml.CharData:
				if inText {
					got = append(got, string(e))
				}
			case xml.EndElement:
				inText = false
			}
		}
		if want := texts(d); !slices.Equal(got, want) {
			t.Errorf("%s: the texts are %q, not %q", name, got, want)
		}
	}
}

// The PNG of a figure has 300 dots an inch, and its header states this.
func TestPNGHas300Dots(t *testing.T) {
	for _, s := range []Style{Column, Slide.OnDark()} {
		d := drawn(t, figures()["breakdown"], s)
		file := written(t, d, "png")
		img, err := png.Decode(strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := img.Bounds().Dx(), int(math.Round(s.Width/72*300)); got != want {
			t.Errorf("%d dots wide, not %d", got, want)
		}
		at := strings.Index(file, "pHYs")
		if at < 0 || binary.BigEndian.Uint32([]byte(file[at+4:])) != 11811 || file[at+12] != 1 {
			t.Error("the resolution is not noted")
		}
		r, _, _, _ := img.At(img.Bounds().Dx()-1, img.Bounds().Dy()-1).RGBA()
		if dark := r < 0x4000; dark != s.Dark {
			t.Errorf("the page is dark: %t", dark)
		}
	}
}

// The PDF of a figure has one page of the figure's size with embedded fonts. Writing the same figure again gives the
// same file.
func TestPDF(t *testing.T) {
	d := drawn(t, figures()["breakdown"], Column)
	file := written(t, d, "pdf")
	if written(t, d, "pdf") != file {
		t.Error("two writings differ")
	}
	box := regexp.MustCompile(`/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]`).FindStringSubmatch(file)
	if box == nil || box[1] != "240.94" || box[2] != fmt.Sprintf("%.2f", d.Height()) {
		t.Errorf("the page is %q, the figure %.2f x %.2f", box, d.Width(), d.Height())
	}
	if n := strings.Count(file, "/FontFile2"); n != 2 {
		t.Errorf("%d fonts are embedded, not the two that are used", n)
	}
	if strings.Count(file, "/ToUnicode") != 2 {
		t.Error("its text cannot be copied")
	}
	shows := 0
	for _, s := range regexp.MustCompile(`(?s)stream\n(.*?)\nendstream`).FindAllStringSubmatch(file, -1) {
		z, err := zlib.NewReader(strings.NewReader(s[1]))
		if err != nil {
			continue // only compressed streams are page content
		}
		content, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		shows += len(regexp.MustCompile(`\bT[jJ]\b`).FindAll(content, -1))
	}
	if want := len(texts(d)); shows < want {
		t.Errorf("%d texts are shown, not %d", shows, want)
	}
	if len(file) > 100_000 {
		t.Errorf("%d bytes: the fonts are not cut to what is used", len(file))
	}
}

// If pdftotext is installed, it reads the figure's text from the PDF. pdftotext does not read Chinese words, since
// these are drawn as shapes.
func TestPDFIsRead(t *testing.T) {
	program, err := exec.LookPath("pdftotext")
	if err != nil {
		t.Skip("no pdftotext")
	}
	for _, name := range []string{"breakdown", "heatmap", "waterfall"} {
		d := drawn(t, figures()[name], Column)
		path := filepath.Join(t.TempDir(), "figure.pdf")
		if err := os.WriteFile(path, []byte(written(t, d, "pdf")), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(program, path, "-").CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		got := strings.Join(strings.Fields(string(out)), "")
		for _, s := range texts(d) {
			if !strings.Contains(got, strings.Join(strings.Fields(s), "")) {
				t.Errorf("%s: pdftotext found no %q in\n%s", name, s, out)
			}
		}
	}
}

// A Chinese label is drawn with a system font. If there is no such font, it is drawn as boxes.
func TestCharactersThatTheFontLacks(t *testing.T) {
	if Lacks("Ghost ×≥−…%") {
		t.Error("the built-in font lacks what figures write")
	}
	if !Lacks("\U0010ffff") {
		t.Error("a character that no font has is not lacking")
	}
	for _, label := range []string{"逐样本", "\U0010ffff"} {
		d := drawn(t, Breakdown{Bars: []Bar{{Label: label, Segments: gibs("parameters", 1.0)}}}, Column)
		if len(d.Misplaced()) > 0 {
			t.Error(d.Misplaced())
		}
		img, err := png.Decode(strings.NewReader(written(t, d, "png")))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(d.items, func(i item) bool { return i.label != nil && i.label.text == label })
		inked := 0
		b := d.items[i].label.box
		for x := int(b.x0 * dots / 72); x < int(b.x1*dots/72); x++ {
			for y := int(b.y0 * dots / 72); y < int(b.y1*dots/72); y++ {
				if r, _, _, _ := img.At(x, y).RGBA(); r < 0x8000 {
					inked++
				}
			}
		}
		if inked < 20 {
			t.Errorf("%q: %d dots have ink", label, inked)
		}
		if pdf := written(t, d, "pdf"); !strings.HasPrefix(pdf, "%PDF") {
			t.Error("no PDF")
		}
	}
}

// texDocument returns a LaTeX document that inputs every figure of a style. The document puts each figure into a box of
// the style's width, and prints the width and height of the figure.
func texDocument(t *testing.T, s Style, names []string, preamble string) string {
	var b strings.Builder
	b.WriteString("\\documentclass[10pt]{article}\n\\usepackage[T1]{fontenc}\n\\usepackage{xcolor,pgfplots}\n" + preamble +
		StyleTeX() + "\\begin{document}\\parindent0pt\n\\newsavebox{\\plate}\n")
	all := figures()
	for _, name := range names {
		d := drawn(t, all[name], s)
		fmt.Fprintf(&b, "\\sbox{\\plate}{%%\n%s}", written(t, d, "tex"))
		fmt.Fprintf(&b, "\\typeout{PLATE %s \\the\\wd\\plate\\space\\the\\ht\\plate}\\usebox{\\plate}\\par\n", name)
	}
	return b.String() + "\\end{document}\n"
}

// If LaTeX is installed, it compiles each figure without an error, and the figure has exactly its width.
func TestTeXCompiles(t *testing.T) {
	program, err := exec.LookPath("pdflatex")
	if err != nil {
		t.Skip("no pdflatex")
	}
	if exec.Command("kpsewhich", "pgfplots.sty").Run() != nil {
		t.Skip("no pgfplots")
	}
	var plain []string // figures without characters that LaTeX's fonts lack
	for name, f := range figures() {
		if !strings.ContainsFunc(strings.Join(texts(drawn(t, f, Column)), ""), func(r rune) bool { return r >= 0x2e80 }) {
			plain = append(plain, name)
		}
	}
	slices.Sort(plain)
	if len(plain) < 20 {
		t.Fatalf("only %q", plain)
	}
	few := []string{"breakdown", "breakdown-special", "waterfall", "step", "tradeoff", "lines-oom", "heatmap", "accuracy"}
	for _, c := range []struct {
		name     string
		style    Style
		figures  []string
		preamble string
		rest     bool
	}{
		{"column", Column, few, "", false},
		{"all in a column", Column, plain, "", true},
		{"on a page", Page, few, "\\usepackage{mathptmx}\n", true},
		{"on a dark slide", Slide.OnDark(), few, "\\newcommand{\\dpsTheme}{dark}\\usepackage{helvet}" +
			"\\renewcommand{\\familydefault}{\\sfdefault}\n\\newcommand{\\dpsLab}{\\fontsize{11}{12.5}\\selectfont}" +
			"\\newcommand{\\dpsVal}{\\fontsize{10}{11.5}\\selectfont}\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.rest {
				testkit.Rest(t)
			}
			dir := t.TempDir()
			source := texDocument(t, c.style, c.figures, c.preamble)
			if err := os.WriteFile(filepath.Join(dir, "plates.tex"), []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(program, "-interaction=nonstopmode", "-halt-on-error", "plates.tex")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "max_print_line=1000")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out[max(0, len(out)-3000):])
			}
			sizes := regexp.MustCompile(`PLATE (\S+) ([\d.]+)pt ([\d.]+)pt`).FindAllStringSubmatch(string(out), -1)
			if len(sizes) != len(c.figures) {
				t.Fatalf("%d of %d figures", len(sizes), len(c.figures))
			}
			for _, m := range sizes {
				d := drawn(t, figures()[m[1]], c.style)
				wide, _ := strconv.ParseFloat(m[2], 64)
				tall, _ := strconv.ParseFloat(m[3], 64)
				const point = 72.27 / 72
				if math.Abs(wide-d.Width()*point) > 0.1 || math.Abs(tall-d.Height()*point) > 0.1 {
					t.Errorf("%s is %s x %s pt, not %.2f x %.2f bp", m[1], m[2], m[3], d.Width(), d.Height())
				}
			}
		})
	}
}
