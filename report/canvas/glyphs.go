package canvas

import (
	"strings"
	"sync"

	"github.com/golang/freetype/truetype"
	"github.com/wcharczuk/go-chart/v2"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"
)

// Heights of a line of text, in multiples of the font size, with room for accented capitals and for descenders.
const (
	capHeight = 0.96
	descent   = 0.24
)

// Missing replaces a character that the built-in font lacks, such as a Chinese character.
const Missing = '□'

// builtin returns the built-in font, parsed once. go-chart's own first parsing is not safe for figures that are drawn
// concurrently.
var builtin = sync.OnceValues(chart.GetDefaultFont)

// hasGlyph reports whether the built-in font can draw r.
func hasGlyph(r rune) bool {
	f, err := builtin()
	return err == nil && f.Index(r) != 0
}

// Printable replaces characters that the built-in font lacks by [Missing], which is drawn as a box. Printable replaces
// control characters by spaces.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x20 || r == 0x7f:
			return ' '
		case r == Missing || hasGlyph(r):
			return r
		}
		return Missing
	}, s)
}

// Lacks reports whether the built-in font lacks some character of s.
func Lacks(s string) bool { return strings.ContainsRune(Printable(s), Missing) }

// unit is the size in which glyphs are measured and outlined: the font's own units, so that no glyph is hinted.
func unit(f *truetype.Font) fixed.Int26_6 { return fixed.Int26_6(f.FUnitsPerEm()) }

// advance returns the kerning before a glyph and its width, in the font's units. previous is the glyph before it.
func advance(f *truetype.Font, previous, glyph truetype.Index) (kern, width float64) {
	if previous != 0 {
		kern = float64(f.Kern(unit(f), previous, glyph))
	}
	return kern, float64(f.HMetric(unit(f), glyph).AdvanceWidth)
}

// Measure returns the width of a line of text in logical pixels.
func Measure(s string, size float64) float64 {
	f, err := builtin()
	if err != nil {
		return 0
	}
	var w float64
	var previous truetype.Index
	for _, r := range Printable(s) {
		g := f.Index(r)
		kern, width := advance(f, previous, g)
		w += kern + width
		previous = g
	}
	return w * size / float64(f.FUnitsPerEm())
}

// outline adds the glyphs of s to the renderer's path.
func (c *Canvas) outline(s string, x, y, size float64) {
	scale := size / float64(c.font.FUnitsPerEm())
	var buf truetype.GlyphBuf
	var previous truetype.Index
	for _, r := range s {
		g := c.font.Index(r)
		kern, width := advance(c.font, previous, g)
		x += kern * scale
		if err := buf.Load(c.font, unit(c.font), g, font.HintingNone); err == nil {
			first := 0
			for _, end := range buf.Ends {
				c.contour(buf.Points[first:end], x, y, scale)
				first = end
			}
		}
		x += width * scale
		previous = g
	}
}

// contour adds one closed outline of quadratic curves to the path. Between two control points, TrueType implies a point
// half-way.
func (c *Canvas) contour(points []truetype.Point, x, y, scale float64) {
	if len(points) < 2 {
		return
	}
	type point struct {
		x, y float64
		on   bool
	}
	at := func(i int) point {
		p := points[i%len(points)]
		return point{x + float64(p.X)*scale, y - float64(p.Y)*scale, p.Flags&1 != 0}
	}
	half := func(a, b point) point { return point{(a.x + b.x) / 2, (a.y + b.y) / 2, true} }
	start, from := at(0), 1
	if !start.on {
		if last := at(len(points) - 1); last.on {
			start, from = last, 0
		} else {
			start, from = half(start, last), 0
		}
	}
	c.r.moveTo(c.px(start.x), c.px(start.y))
	curve := func(control, to point) { c.r.curveTo(c.px(control.x), c.px(control.y), c.px(to.x), c.px(to.y)) }
	var control *point
	for i := from; i < len(points); i++ {
		p := at(i)
		switch {
		case control == nil && p.on:
			c.r.lineTo(c.px(p.x), c.px(p.y))
		case control == nil:
			control = &p
		case p.on:
			curve(*control, p)
			control = nil
		default:
			curve(*control, half(*control, p))
			control = &p
		}
	}
	if control != nil {
		curve(*control, start)
	}
	c.r.close()
}
