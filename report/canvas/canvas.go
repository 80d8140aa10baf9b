// Package canvas draws each figure with one layout for both PNG and SVG, with go-chart's font and drawing primitives.
//
// go-chart's own charts cannot draw dpsight's figures (its stacked bars are normalised to 100 %), but its drawing
// primitives can. All edges lie on whole pixels of the format, so each format has its own resolution: a logical pixel
// is [pngScale] pixels of a PNG, or [svgScale] of an SVG. In an SVG, text is drawn as the outlines of its glyphs. A
// font that is only named may be missing, which would move every label, and most converters to PDF ignore an embedded
// font. The SVG's description repeats the picture's content in words.
package canvas

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/golang/freetype/truetype"
)

const (
	pngScale = 2
	svgScale = 20
)

// A Color is 0xRRGGBB.
type Color uint32

// Pale returns the colour mixed with white.
func (c Color) Pale() Color {
	mix := func(shift uint) Color { return (c>>shift&0xff + 2*0xff) / 3 << shift }
	return mix(16) | mix(8) | mix(0)
}

// Luminance returns the relative luminance of the colour, from 0 to 1 (WCAG).
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

// Anchor says which point of a text is at its x: the start, the middle or the end.
type Anchor int

// The possible anchors of a text.
const (
	Start Anchor = iota
	Middle
	End
)

// A Box is a rectangle in logical pixels, y downward.
type Box struct{ X0, Y0, X1, Y1 float64 }

// Overlaps reports whether two boxes share more than an edge.
func (b Box) Overlaps(o Box) bool { return b.X0 < o.X1 && o.X0 < b.X1 && b.Y0 < o.Y1 && o.Y0 < b.Y1 }

// A Label is a drawn text and its place.
type Label struct {
	Text string
	Box  Box
}

// A Shape is a box drawn to scale, and the box of its axis, within which it must stay.
type Shape struct {
	What        string
	Box, Within Box
}

// A Canvas takes drawing calls in logical pixels and remembers where each text and each shape went.
type Canvas struct {
	Width, Height float64
	Labels        []Label
	Shapes        []Shape
	drawn         []quad // diamonds and slanting segments; see [Canvas.Covered]
	r             surface
	scale         float64
	font          *truetype.Font
}

// A surface fills paths in the pixels of its format, and is saved as a file.
type surface interface {
	moveTo(x, y int)
	lineTo(x, y int)
	curveTo(cx, cy, x, y int)
	close()
	fill(Color) // fills the path and begins a new one
	save(w io.Writer, title, description string) error
}

// New makes a canvas. svg says whether the canvas is saved as SVG or as PNG.
func New(width, height float64, svg bool) (*Canvas, error) {
	font, err := builtin()
	if err != nil {
		return nil, fmt.Errorf("loading the built-in font: %w", err)
	}
	c := &Canvas{Width: width, Height: height, font: font}
	if svg {
		c.r, c.scale = &vector{width: width, height: height}, svgScale
	} else {
		c.r, c.scale = newBitmap(pixels(width, pngScale), pixels(height, pngScale)), pngScale
	}
	c.Rect(Box{0, 0, width, height}, 0xffffff)
	return c, nil
}

func (c *Canvas) px(v float64) int { return pixels(v, c.scale) }

func pixels(v, scale float64) int { return int(math.Round(v * scale)) }

// Rect fills a rectangle. A rectangle whose width or height rounds to 0 pixels of the format is not drawn.
func (c *Canvas) Rect(b Box, fill Color) {
	x0, y0, x1, y1 := c.px(b.X0), c.px(b.Y0), c.px(b.X1), c.px(b.Y1)
	if x0 == x1 || y0 == y1 {
		return
	}
	if b, ok := c.r.(*bitmap); ok {
		b.rect(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1), fill)
		return
	}
	c.path(x0, y0, x1, y1)
	c.r.fill(fill)
}

// Frame strokes a rectangle's border on its inside.
func (c *Canvas) Frame(b Box, width float64, stroke Color) {
	c.Rect(Box{b.X0, b.Y0, b.X1, b.Y0 + width}, stroke)
	c.Rect(Box{b.X0, b.Y1 - width, b.X1, b.Y1}, stroke)
	c.Rect(Box{b.X0, b.Y0, b.X0 + width, b.Y1}, stroke)
	c.Rect(Box{b.X1 - width, b.Y0, b.X1, b.Y1}, stroke)
}

func (c *Canvas) path(x0, y0, x1, y1 int) {
	c.r.moveTo(x0, y0)
	c.r.lineTo(x1, y0)
	c.r.lineTo(x1, y1)
	c.r.lineTo(x0, y1)
	c.r.close()
}

// Line draws a horizontal or vertical line as a rectangle, since PNG and SVG draw the ends of strokes differently.
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
	c.quad(quad{{x - radius, y}, {x, y - radius}, {x + radius, y}, {x, y + radius}}, fill)
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
	if b, ok := c.r.(*bitmap); ok {
		b.glyphs(s, c.px(x), c.px(y), size*c.scale, c.font)
	} else {
		c.outline(s, x, y, size)
	}
	c.r.fill(color)
}

// TextBox returns the box of a line of text whose baseline starts at (x, y).
func TextBox(s string, x, y, size float64) Box { return textBox(x, y, Measure(s, size), size) }

func textBox(x, y, width, size float64) Box {
	return Box{x, y - capHeight*size, x + width, y + descent*size}
}

// Shape records a box in which something was drawn to scale, and the box that it must stay within.
func (c *Canvas) Shape(what string, box, within Box) {
	c.Shapes = append(c.Shapes, Shape{what, box, within})
}

// Area fills the area under a stepped line: value i holds from x[i] to x[i+1]. The area ends at y0 below.
func (c *Canvas) Area(x, y []float64, y0 float64, fill Color) {
	if len(y) == 0 {
		return
	}
	c.r.moveTo(c.px(x[0]), c.px(y0))
	for i := range y {
		if i == 0 || c.px(y[i]) != c.px(y[i-1]) { // neighbours at the same height are drawn as one
			c.r.lineTo(c.px(x[i]), c.px(y[i]))
		}
		if i == len(y)-1 || c.px(y[i+1]) != c.px(y[i]) {
			c.r.lineTo(c.px(x[i+1]), c.px(y[i]))
		}
	}
	c.r.lineTo(c.px(x[len(y)]), c.px(y0))
	c.r.close()
	c.r.fill(fill)
}

// Steps draws a stepped line as in [Canvas.Area], without the area below it.
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
	c.quad(quad{{x0 + dx, y0 - dy}, {x1 + dx, y1 - dy}, {x1 - dx, y1 + dy}, {x0 - dx, y0 + dy}}, stroke)
}

// A quad is a convex figure with four corners, listed in order around it.
type quad [4]struct{ x, y float64 }

func (c *Canvas) quad(q quad, fill Color) {
	c.drawn = append(c.drawn, q)
	c.r.moveTo(c.px(q[0].x), c.px(q[0].y))
	for _, p := range q[1:] {
		c.r.lineTo(c.px(p.x), c.px(p.y))
	}
	c.r.close()
	c.r.fill(fill)
}

// overlaps reports whether the quad and the box have a point in common. The quad and the box have no common point if a
// side of one of them separates the two.
func (q *quad) overlaps(b Box) bool {
	corners := quad{{b.X0, b.Y0}, {b.X1, b.Y0}, {b.X1, b.Y1}, {b.X0, b.Y1}}
	apart := func(dx, dy float64) bool {
		span := func(of *quad) (low, high float64) {
			low, high = math.Inf(1), math.Inf(-1)
			for _, p := range of {
				low, high = min(low, p.x*dx+p.y*dy), max(high, p.x*dx+p.y*dy)
			}
			return low, high
		}
		low, high := span(q)
		from, to := span(&corners)
		return high <= from || to <= low
	}
	if apart(1, 0) || apart(0, 1) {
		return false
	}
	for i := range q {
		next := q[(i+1)%len(q)]
		if apart(next.y-q[i].y, q[i].x-next.x) {
			return false
		}
	}
	return true
}

// Misplaced lists the texts that stick out of the canvas or overlap another text, and the shapes that reach beyond
// their axes.
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
	const hair = 0.01 // tolerance for floating point
	for _, m := range c.Shapes {
		if b, w := m.Box, m.Within; b.X0 < w.X0-hair || b.Y0 < w.Y0-hair || b.X1 > w.X1+hair || b.Y1 > w.Y1+hair {
			out = append(out, fmt.Sprintf("%s at %.1f reaches out of %.1f", m.What, b, w))
		}
	}
	return out
}

// Covered lists the texts that overlap a point or a slanting line. Misplaced does not include them, since some letters
// belong at their points.
func (c *Canvas) Covered() []string {
	var out []string
	for _, l := range c.Labels {
		if i := slices.IndexFunc(c.drawn, func(q quad) bool { return q.overlaps(l.Box) }); i >= 0 {
			out = append(out, fmt.Sprintf("%q at %.0f lies on what is drawn at %.0f", l.Text, l.Box, c.drawn[i]))
		}
	}
	return out
}

// Save writes the figure. An SVG includes title and description, for readers who cannot see the picture and for search.
func (c *Canvas) Save(w io.Writer, title, description string) error {
	return c.r.save(w, title, description)
}
