package plates

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// TeX writes the figure as a tikzpicture of exactly its width, for pgfplots. The document must input [StyleTeX] before
// it.
func (d *Drawing) TeX(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\\begin{tikzpicture}[x=1bp, y=1bp, inner sep=0pt] %% %.2f cm wide\n", d.Width()*2.54/72)
	fmt.Fprintf(&b, "\\useasboundingbox (0,0) rectangle (%.2f,%.2f);\n", d.Width(), d.height)
	for _, a := range d.panels {
		d.texAxes(&b, a)
		for _, i := range d.items {
			if i.axes == a && !i.drawn {
				d.texItem(&b, i)
			}
		}
		b.WriteString("\\end{axis}\n")
	}
	for _, i := range d.items {
		if i.axes == nil {
			d.texItem(&b, i)
		}
	}
	b.WriteString("\\end{tikzpicture}%\n")
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the figure as TeX: %w", err)
	}
	return nil
}

// bp formats a length or a coordinate in points, as short as possible.
func bp(v float64) string { return short(v, 2) }

func short(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

func (d *Drawing) texAxes(b *bytes.Buffer, a *axes) {
	kind := "dps open"
	switch {
	case !a.yLine:
		kind = "dps bars"
	case !a.xLine:
		kind = "dps open, axis x line=none"
	}
	fmt.Fprintf(b, "\\begin{axis}[%s, at={(%sbp,%sbp)}, width=%sbp, height=%sbp,\n"+
		"  xmin=%s, xmax=%s, ymin=%s, ymax=%s,", kind,
		bp(a.box.x0), bp(d.height-a.box.y1), bp(a.box.width()), bp(a.box.height()),
		number(min(a.x0, a.x1)), number(max(a.x0, a.x1)), number(min(a.y0, a.y1)), number(max(a.y0, a.y1)))
	if a.y0 > a.y1 {
		b.WriteString(" y dir=reverse,")
	}
	if !a.xLine {
		b.WriteString(" axis x line=none,")
	}
	fmt.Fprintf(b, " xmajorgrids=%t, ymajorgrids=%t,\n", a.xGrid, a.yGrid)
	texTicks(b, "x", a.xTicks)
	if a.yLine {
		texTicks(b, "y", a.yTicks)
	}
	for _, l := range []struct{ key, text string }{{"xlabel", a.xLabel}, {"ylabel", a.yLabel}, {"title", a.title}} {
		if l.text != "" {
			fmt.Fprintf(b, "  %s={%s},", l.key, tex(l.text))
		}
	}
	b.WriteString("]\n")
}

func texTicks(b *bytes.Buffer, axis string, all []tick) {
	at, texts := make([]string, len(all)), make([]string, len(all))
	for i, t := range all {
		at[i], texts[i] = number(t.at), "{"+tex(t.text)+"}"
	}
	fmt.Fprintf(b, "  %stick={%s}, %sticklabels={%s},\n", axis, strings.Join(at, ","), axis, strings.Join(texts, ","))
}

// number formats a value along an axis with eight digits, so that one byte of a GiB is visible.
func number(v float64) string {
	if s := strconv.FormatFloat(v, 'g', 9, 64); !strings.Contains(s, "e") {
		return s
	}
	return strconv.FormatFloat(v, 'f', 9, 64)
}

// at returns a point in the coordinates of its axes or, without axes, of the picture.
func (d *Drawing) at(i item, p point) string {
	if i.axes == nil {
		return fmt.Sprintf("(%s,%s)", bp(p.x), bp(d.height-p.y))
	}
	v := i.axes.data(p)
	return fmt.Sprintf("(axis cs:%s,%s)", number(round(v.x)), number(round(v.y)))
}

// round removes the error of converting data to points and back.
func round(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 10, 64), 64)
	if r < 1e-9 && r > -1e-9 {
		return 0
	}
	return r
}

func (d *Drawing) texItem(b *bytes.Buffer, i item) {
	if i.label != nil {
		d.texLabel(b, i)
		return
	}
	var how []string
	if i.fill != nil {
		how = append(how, "fill="+i.fill.name)
	}
	if i.stroke == nil {
		how = append(how, "draw=none")
	} else {
		how = append(how, "draw="+i.stroke.name, "line width="+bp(i.width)+"bp")
	}
	if i.dash {
		how = append(how, "densely dashed")
	}
	options := strings.Join(how, ",")
	if i.radius > 0 {
		fmt.Fprintf(b, "\\path[%s] %s circle[radius=%sbp];\n", options, d.at(i, i.points[0]), bp(i.radius))
		return
	}
	if len(i.points) == 4 && i.fill != nil && i.points[0].y == i.points[1].y && i.points[0].x == i.points[3].x {
		fmt.Fprintf(b, "\\path[%s] %s rectangle %s;\n", options, d.at(i, i.points[0]), d.at(i, i.points[2]))
		return
	}
	if len(i.points) > 12 && i.axes != nil { // a series, which pgfplots reads as data
		fmt.Fprintf(b, "\\addplot[forget plot,%s] coordinates {", options)
		for k, p := range i.points {
			if k%8 == 0 {
				b.WriteString("\n ")
			}
			v := i.axes.data(p)
			fmt.Fprintf(b, " (%s,%s)", number(round(v.x)), number(round(v.y)))
		}
		b.WriteString("};\n")
		return
	}
	path := make([]string, len(i.points))
	for k, p := range i.points {
		path[k] = d.at(i, p)
	}
	closing := ""
	if i.fill != nil {
		closing = " -- cycle"
	}
	fmt.Fprintf(b, "\\path[%s] %s%s;\n", options, strings.Join(path, " -- "), closing)
}

func (d *Drawing) texLabel(b *bytes.Buffer, i item) {
	l := i.label
	font := "\\dpsLab"
	if l.value {
		font = "\\dpsVal"
	}
	if l.bold {
		font += "\\bfseries"
	}
	if l.slant {
		font += "\\itshape"
	}
	how := "font=" + font + ",text=" + l.colour.name + ",anchor=base"
	switch {
	case l.turned:
		how += ",rotate=90"
	case l.anchor == start:
		how += " west"
	case l.anchor == end:
		how += " east"
	}
	if l.dx != 0 {
		how += ",xshift=" + bp(l.dx) + "bp"
	}
	if l.dy != 0 {
		how += ",yshift=" + bp(-l.dy) + "bp"
	}
	fmt.Fprintf(b, "\\node[%s] at %s {%s};\n", how, d.at(i, i.points[0]), tex(l.text))
}

// tex escapes a text for TeX.
func tex(s string) string { return texReplacer.Replace(printable(s)) }

var texReplacer = strings.NewReplacer(`\`, `\textbackslash{}`, `{`, `\{`, `}`, `\}`, `$`, `\$`, `&`, `\&`, `#`, `\#`,
	`_`, `\_`, `%`, `\%`, `~`, `\ensuremath{\sim}`, `^`, `\textasciicircum{}`, `<`, `\ensuremath{<}`, `>`,
	`\ensuremath{>}`, "−", `\ensuremath{-}`, "+", `\ensuremath{+}`, "×", `\ensuremath{\times}`, "≥", `\ensuremath{\geq}`,
	"≤", `\ensuremath{\leq}`, "±", `\ensuremath{\pm}`, "Δ", `\ensuremath{\Delta}`, "σ", `\ensuremath{\sigma}`,
	"ε", `\ensuremath{\varepsilon}`, "δ", `\ensuremath{\delta}`, "µ", `\ensuremath{\mu}`, "…", `\ldots{}`, "–", `--`,
	"†", `\ensuremath{\dagger}`, "\u2009", `\,`, "\u202f", `\,`, "\u00a0", `~`, `"`, `''`)
