// Package canvas draws figures once, for PNG and SVG alike, on go-chart's renderers.
//
// go-chart's own charts cannot draw what dpsight shows (its stacked bars are normalised to 100 %), but its renderers can.
// They take integer coordinates only, so the canvas has a resolution of its own for each: a logical pixel is [pngScale] or
// [svgScale] of theirs. In an SVG, text is drawn as the outlines of its glyphs: a font that is named but not there moves
// every label, an embedded one is ignored by most converters to PDF. The words stand in the file's description.
package canvas

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/golang/freetype/truetype"
	"github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"
)

const (
	pngScale = 2
	svgScale = 20
)

// A Color is 0xRRGGBB.
type Color uint32

func (c Color) drawing() drawing.Color {
	return drawing.Color{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: 255}
}

// Pale is the colour mixed with white.
func (c Color) Pale() Color {
	mix := func(shift uint) Color { return (c>>shift&0xff + 2*0xff) / 3 << shift }
	return mix(16) | mix(8) | mix(0)
}

// Luminance is the relative luminance of the colour, from 0 to 1 (WCAG).
func (c Color) Luminance() float64 {
	linear := func(v uint32) float64 {
		x := float64(v&0xff) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(uint32(c)>>16) + 0.7152*linear(uint32(c)>>8) + 0.0722*linear(uint32(c))
}

// Anchor says which point of a text its x names.
type Anchor int

// The anchors.
const (
	Start Anchor = iota
	Middle
	End
)

// A Box is a rectangle in logical pixels, y downward.
type Box struct{ X0, Y0, X1, Y1 float64 }

// Overlaps reports whether two boxes share more than an edge.
func (b Box) Overlaps(o Box) bool { return b.X0 < o.X1 && o.X0 < b.X1 && b.Y0 < o.Y1 && o.Y0 < b.Y1 }

// A Label is one drawn text and where it is.
type Label struct {
	Text string
	Box  Box
}

// A Mark is something drawn to scale, and the axis that it must stay within.
type Mark struct {
	What        string
	Box, Within Box
}

// A Canvas takes drawing calls in logical pixels and remembers where each text and each mark went.
type Canvas struct {
	Width, Height float64
	Labels        []Label
	Marks         []Mark
	r             chart.Renderer
	scale         float64
	outlines      bool
	font          *truetype.Font
}

// New makes a canvas; svg says whether it is saved as SVG, else as PNG.
func New(width, height float64, svg bool) (*Canvas, error) {
	font, err := builtin()
	if err != nil {
		return nil, fmt.Errorf("loading the built-in font: %w", err)
	}
	c := &Canvas{Width: width, Height: height, scale: pngScale, outlines: svg, font: font}
	provider := chart.PNG
	if svg {
		c.scale, provider = svgScale, chart.SVG
	}
	if c.r, err = provider(c.px(width), c.px(height)); err != nil {
		return nil, fmt.Errorf("making a canvas of %v x %v: %w", width, height, err)
	}
	c.r.SetDPI(64) // go-chart takes points times DPI for 64ths of a pixel: at 64 a point is a pixel
	c.Rect(Box{0, 0, width, height}, 0xffffff)
	return c, nil
}

func (c *Canvas) px(v float64) int { return int(math.Round(v * c.scale)) }

// Rect fills a rectangle. One that is thinner than the renderer's grid is not drawn.
func (c *Canvas) Rect(b Box, fill Color) {
	x0, y0, x1, y1 := c.px(b.X0), c.px(b.Y0), c.px(b.X1), c.px(b.Y1)
	if x0 == x1 || y0 == y1 {
		return
	}
	c.r.ResetStyle()
	c.r.SetFillColor(fill.drawing())
	c.path(x0, y0, x1, y1)
	c.r.Fill()
}

// Frame strokes a rectangle's border, inside it.
func (c *Canvas) Frame(b Box, width float64, stroke Color) {
	c.Rect(Box{b.X0, b.Y0, b.X1, b.Y0 + width}, stroke)
	c.Rect(Box{b.X0, b.Y1 - width, b.X1, b.Y1}, stroke)
	c.Rect(Box{b.X0, b.Y0, b.X0 + width, b.Y1}, stroke)
	c.Rect(Box{b.X1 - width, b.Y0, b.X1, b.Y1}, stroke)
}

func (c *Canvas) path(x0, y0, x1, y1 int) {
	c.r.MoveTo(x0, y0)
	c.r.LineTo(x1, y0)
	c.r.LineTo(x1, y1)
	c.r.LineTo(x0, y1)
	c.r.Close()
}

// Line draws a horizontal or vertical line, as a rectangle: a stroke's joins differ between the renderers.
func (c *Canvas) Line(x0, y0, x1, y1, width float64, stroke Color) {
	h := width / 2
	if x0 == x1 {
		c.Rect(Box{x0 - h, min(y0, y1), x0 + h, max(y0, y1)}, stroke)
	} else {
		c.Rect(Box{min(x0, x1), y0 - h, max(x0, x1), y0 + h}, stroke)
	}
}

// Diamond fills a diamond around a point.
func (c *Canvas) Diamond(x, y, radius float64, fill Color) {
	c.r.ResetStyle()
	c.r.SetFillColor(fill.drawing())
	c.r.MoveTo(c.px(x-radius), c.px(y))
	c.r.LineTo(c.px(x), c.px(y-radius))
	c.r.LineTo(c.px(x+radius), c.px(y))
	c.r.LineTo(c.px(x), c.px(y+radius))
	c.r.Close()
	c.r.Fill()
}

// Text draws a line of text whose baseline starts, is centred or ends at (x, y).
func (c *Canvas) Text(s string, x, y, size float64, anchor Anchor, color Color) {
	s = Printable(s)
	if s == "" {
		return
	}
	w := Measure(s, size)
	switch anchor {
	case Middle:
		x -= w / 2
	case End:
		x -= w
	}
	c.Labels = append(c.Labels, Label{s, textBox(x, y, w, size)})
	c.r.ResetStyle()
	if c.outlines {
		c.r.SetFillColor(color.drawing())
		c.outline(s, x, y, size)
		c.r.Fill()
		return
	}
	c.r.SetFont(c.font)
	c.r.SetFontColor(color.drawing())
	c.r.SetFontSize(size * c.scale)
	c.r.Text(s, c.px(x), c.px(y))
}

// TextBox is the box of a line of text whose baseline starts at (x, y).
func TextBox(s string, x, y, size float64) Box { return textBox(x, y, Measure(s, size), size) }

func textBox(x, y, width, size float64) Box {
	return Box{x, y - capHeight*size, x + width, y + descent*size}
}

// Mark notes that something was drawn to scale in a box, and what it must not reach out of.
func (c *Canvas) Mark(what string, box, within Box) {
	c.Marks = append(c.Marks, Mark{what, box, within})
}

// Area fills what lies under a line of steps: value i holds from x[i] to x[i+1], down to y0.
func (c *Canvas) Area(x, y []float64, y0 float64, fill Color) {
	if len(y) == 0 {
		return
	}
	c.r.ResetStyle()
	c.r.SetFillColor(fill.drawing())
	c.r.MoveTo(c.px(x[0]), c.px(y0))
	for i := range y {
		if i == 0 || c.px(y[i]) != c.px(y[i-1]) { // equal neighbours are one step
			c.r.LineTo(c.px(x[i]), c.px(y[i]))
		}
		if i == len(y)-1 || c.px(y[i+1]) != c.px(y[i]) {
			c.r.LineTo(c.px(x[i+1]), c.px(y[i]))
		}
	}
	c.r.LineTo(c.px(x[len(y)]), c.px(y0))
	c.r.Close()
	c.r.Fill()
}

// Steps draws the line of steps itself.
func (c *Canvas) Steps(x, y []float64, width float64, stroke Color) {
	from := 0
	for i := range y {
		if i+1 < len(y) && c.px(y[i+1]) == c.px(y[i]) {
			continue
		}
		c.Line(x[from]-width/2, y[i], x[i+1]+width/2, y[i], width, stroke)
		if i+1 < len(y) {
			c.Line(x[i+1], y[i], x[i+1], y[i+1], width, stroke)
		}
		from = i + 1
	}
}

// Segment draws a straight line in any direction.
func (c *Canvas) Segment(x0, y0, x1, y1, width float64, stroke Color) {
	length := math.Hypot(x1-x0, y1-y0)
	if length == 0 {
		return
	}
	dx, dy := (y1-y0)/length*width/2, (x1-x0)/length*width/2
	c.r.ResetStyle()
	c.r.SetFillColor(stroke.drawing())
	c.r.MoveTo(c.px(x0+dx), c.px(y0-dy))
	c.r.LineTo(c.px(x1+dx), c.px(y1-dy))
	c.r.LineTo(c.px(x1-dx), c.px(y1+dy))
	c.r.LineTo(c.px(x0-dx), c.px(y0+dy))
	c.r.Close()
	c.r.Fill()
}

// Misplaced lists the texts that stick out of the canvas or lie over another, and the marks that reach beyond their axes.
func (c *Canvas) Misplaced() []string {
	var out []string
	for i, l := range c.Labels {
		if b := l.Box; b.X0 < 0 || b.Y0 < 0 || b.X1 > c.Width || b.Y1 > c.Height {
			out = append(out, fmt.Sprintf("%q at %.0f sticks out of %.0f x %.0f", l.Text, b, c.Width, c.Height))
		}
		for _, o := range c.Labels[:i] {
			if l.Box.Overlaps(o.Box) {
				out = append(out, fmt.Sprintf("%q at %.0f lies over %q at %.0f", l.Text, l.Box, o.Text, o.Box))
			}
		}
	}
	const hair = 0.01 // of floating point
	for _, m := range c.Marks {
		if b, w := m.Box, m.Within; b.X0 < w.X0-hair || b.Y0 < w.Y0-hair || b.X1 > w.X1+hair || b.Y1 > w.Y1+hair {
			out = append(out, fmt.Sprintf("%s at %.1f reaches out of %.1f", m.What, b, w))
		}
	}
	return out
}

var (
	svgHeader = regexp.MustCompile(`^<svg [^>]*>`)
	svgColor  = regexp.MustCompile(`rgba\((\d+),(\d+),(\d+),1\.0\)`)
)

// Save writes the figure. title and description go into an SVG for whoever cannot see it, and for search.
func (c *Canvas) Save(w io.Writer, title, description string) error {
	if !c.outlines {
		return c.r.Save(w)
	}
	var b bytes.Buffer
	if err := c.r.Save(&b); err != nil {
		return err
	}
	// go-chart writes no size, and colours that SVG 1.1 readers do not know.
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img"><title>%s</title><desc>%s</desc>`,
		int(c.Width), int(c.Height), c.px(c.Width), c.px(c.Height), xmlText(title), xmlText(description))
	svg := svgHeader.ReplaceAllLiteralString(b.String(), head)
	svg = svgColor.ReplaceAllStringFunc(svg, func(m string) string {
		var r, g, b int
		fmt.Sscanf(m, "rgba(%d,%d,%d", &r, &g, &b)
		return fmt.Sprintf("#%02x%02x%02x", r, g, b)
	})
	_, err := io.WriteString(w, svg+"\n")
	return err
}

// xmlText escapes markup and drops what XML 1.0 cannot hold at all.
func xmlText(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "�")))
}
