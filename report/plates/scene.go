package plates

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// ErrEmpty reports that a figure would show nothing, so that it is left out.
var ErrEmpty = errors.New("nothing to draw")

// A Figure is a figure of any kind.
type Figure interface {
	Draw(Style) (*Drawing, error)
}

// A point is a place in the figure, in points from its top left corner.
type point struct{ x, y float64 }

type box struct{ x0, y0, x1, y1 float64 }

func (b box) width() float64  { return b.x1 - b.x0 }
func (b box) height() float64 { return b.y1 - b.y0 }

// hair is a distance too small to see, which may come from rounding.
const hair = 0.01

func (b box) overlaps(o box) bool {
	return b.x0 < o.x1-hair && o.x0 < b.x1-hair && b.y0 < o.y1-hair && o.y0 < b.y1-hair
}

func (b box) within(o box) bool {
	return b.x0 >= o.x0-hair && b.y0 >= o.y0-hair && b.x1 <= o.x1+hair && b.y1 <= o.y1+hair
}

type anchor int

const (
	start anchor = iota
	middle
	end
)

// An item is one drawn thing: a shape or a label. In pgfplots source, an item within axes is placed by its data.
type item struct {
	axes   *axes // nil if outside all axes
	drawn  bool  // whether pgfplots draws the item itself: an axis with its ticks, grid and labels
	fill   *colour
	stroke *colour
	width  float64 // width of the stroke
	dash   bool
	points []point // corners of a polygon if the item is filled, else points of a line; the centre of a circle
	radius float64 // radius of a circle
	label  *label
}

// A label is a line of text, with its anchor at the item's only point, moved by (dx, dy).
type label struct {
	text   string
	size   float64
	value  bool // whether the text has the size of values
	bold   bool
	slant  bool
	turned bool // whether the text runs upward
	anchor anchor
	colour colour
	dx, dy float64
	box    box
}

// A Drawing is a figure with a finished layout.
type Drawing struct {
	LeftOut []string // labels of the parts that had no room
	style   Style
	height  float64
	items   []item
	panels  []*axes
	current *axes
}

func newDrawing(s Style) *Drawing { return &Drawing{style: s} }

// Width returns the figure's width in points.
func (d *Drawing) Width() float64 { return d.style.Width }

// Height returns the figure's height in points.
func (d *Drawing) Height() float64 { return d.height }

// axes are a rectangle of the figure with the range of data that it shows.
type axes struct {
	box            box
	x0, x1, y0, y1 float64 // data at the left, right, bottom and top edges
	xTicks, yTicks []tick
	xLabel, yLabel string
	title          string
	xLine, yLine   bool
	xGrid, yGrid   bool
}

type tick struct {
	at   float64
	text string
}

func (a *axes) x(v float64) float64 { return a.box.x0 + (v-a.x0)/(a.x1-a.x0)*a.box.width() }
func (a *axes) y(v float64) float64 { return a.box.y1 - (v-a.y0)/(a.y1-a.y0)*a.box.height() }

// data converts a place in the figure to data.
func (a *axes) data(p point) point {
	return point{a.x0 + (p.x-a.box.x0)/a.box.width()*(a.x1-a.x0), a.y0 + (a.box.y1-p.y)/a.box.height()*(a.y1-a.y0)}
}

func (d *Drawing) add(i item) {
	i.axes = d.current
	d.items = append(d.items, i)
}

// rect fills a rectangle. If parted, a line in the page's colour separates it from its neighbours. The rectangle is
// never thinner than a hairline.
func (d *Drawing) rect(b box, fill colour, parted bool) {
	const hairline = 0.25
	if b.width() < hairline {
		b.x1, parted = b.x0+hairline, false
	}
	i := item{fill: &fill, points: []point{{b.x0, b.y0}, {b.x1, b.y0}, {b.x1, b.y1}, {b.x0, b.y1}}}
	if parted {
		i.stroke, i.width = &page, hairline
	}
	d.add(i)
}

func (d *Drawing) polygon(fill colour, points ...point) { d.add(item{fill: &fill, points: points}) }

// outlined fills a polygon and strokes its edge.
func (d *Drawing) outlined(fill, stroke colour, points ...point) {
	d.add(item{fill: &fill, stroke: &stroke, width: 0.6, points: points})
}

func (d *Drawing) circle(p point, radius float64, fill, stroke colour, width float64) {
	d.add(item{fill: &fill, stroke: &stroke, width: width, points: []point{p}, radius: radius})
}

func (d *Drawing) line(stroke colour, width float64, points ...point) {
	d.add(item{stroke: &stroke, width: width, points: points})
}

func (d *Drawing) dashed(stroke colour, width float64, points ...point) {
	d.add(item{stroke: &stroke, width: width, points: points, dash: true})
}

// frame strokes a rectangle.
func (d *Drawing) frame(b box, stroke colour, width float64, dash bool) {
	d.add(item{stroke: &stroke, width: width, dash: dash,
		points: []point{{b.x0, b.y0}, {b.x1, b.y0}, {b.x1, b.y1}, {b.x0, b.y1}, {b.x0, b.y0}}})
}

// hatch fills a rectangle with slanting lines.
func (d *Drawing) hatch(b box, stroke colour) {
	const apart = 3.2
	for c := b.x0 - b.height() + apart/2; c < b.x1; c += apart { // c is the x where the line meets the bottom
		from, to := point{c, b.y1}, point{c + b.height(), b.y0}
		if from.x < b.x0 {
			from = point{b.x0, b.y1 - (b.x0 - c)}
		}
		if to.x > b.x1 {
			to = point{b.x1, b.y1 - (b.x1 - c)}
		}
		d.line(stroke, 0.35, from, to)
	}
}

// scaled scales the size of a marker or the width of a line with the size of the letters. v is the size or width for
// letters of 7 points.
func (d *Drawing) scaled(v float64) float64 { return v * d.style.Label / 7 }

// lab and val return labels in the sizes for names and for values.
func (d *Drawing) lab(s string) label { return label{text: s, size: d.style.Label, colour: text} }
func (d *Drawing) val(s string) label {
	return label{text: s, size: d.style.Value, value: true, colour: text}
}

// boxAt returns the area that a label covers if it is written at p.
func (l label) boxAt(p point) box {
	w := wide(l)
	x, y := p.x+l.dx, p.y+l.dy
	if l.turned {
		return box{x - ascent*l.size, y - w/2, x + descent*l.size, y + w/2}
	}
	switch l.anchor {
	case middle:
		x -= w / 2
	case end:
		x -= w
	case start:
	}
	under := 0.03 * l.size
	if strings.IndexFunc(l.text, descends) >= 0 {
		under = descent * l.size
	}
	return box{x, y - ascent*l.size, x + w, y + under}
}

// descends reports whether a character may reach below the line.
func descends(r rune) bool {
	return strings.ContainsRune("gjpqyQ,;()[]{}|_$@µ/\\", r) || r > 0x2ff && r != '−'
}

// write writes a label whose baseline begins at p, ends at p or has its middle at p, by the label's anchor.
func (d *Drawing) write(l label, p point) {
	if l.text == "" {
		return
	}
	l.box = l.boxAt(p)
	d.add(item{points: []point{p}, label: &l})
}

// beside writes a label that is vertically centred on p.
func (d *Drawing) beside(l label, p point) {
	l.dy += l.size * capital / 2
	d.write(l, p)
}

// besideOver is beside on a ground in the page's colour.
func (d *Drawing) besideOver(l label, p point) {
	l.dy += l.size * capital / 2
	d.over(l, p)
}

// over writes a label on a ground in the page's colour, so that no line of a grid runs through its letters.
func (d *Drawing) over(l label, p point) {
	if l.text == "" {
		return
	}
	const margin = 0.7
	b := l.boxAt(p)
	d.rect(box{max(b.x0-margin, 0), b.y0, min(b.x1+margin, d.style.Width), b.y1}, page, false)
	d.write(l, p)
}

// wide returns the largest width that a label may take in a document.
func wide(l label) float64 { return measure(l.text, l.size, l.bold) * slack }

// fit returns a label's text, shortened to a width.
func fit(l label, width float64) string {
	for all := []rune(l.text); wide(l) > width && len(all) > 0; {
		all = all[:len(all)-1]
		l.text = strings.TrimRight(strings.TrimSuffix(string(all), "…"), " ") + "…"
	}
	return l.text
}

// free reports whether a label at p would overlap no other label and stay within the drawing's width.
func (d *Drawing) free(l label, p point) bool {
	b := l.boxAt(p)
	if b.x0 < 0 || b.x1 > d.style.Width {
		return false
	}
	for _, i := range d.items {
		if i.label != nil && i.label.box.overlaps(b) {
			return false
		}
	}
	return true
}

// along writes numbers below axes with a known box: as many as fit without touching.
func (d *Drawing) along(a *axes) {
	const most = 8
	for n := most; n >= 1; n-- {
		a.xTicks = ticks(a.x0, a.x1, n)
		apart := true
		for i := 1; i < len(a.xTicks); i++ {
			half := (wide(d.lab(a.xTicks[i-1].text)) + wide(d.lab(a.xTicks[i].text))) / 2
			apart = apart && a.x(a.xTicks[i].at)-a.x(a.xTicks[i-1].at) >= half+0.9*d.style.Label
		}
		if apart {
			return
		}
	}
}

// open draws the grid of axes and places later items in them. open(nil) ends that.
func (d *Drawing) open(a *axes) {
	d.current = a
	if a == nil {
		return
	}
	d.panels = append(d.panels, a)
	from := len(d.items)
	size := d.style.Label
	const mark = 2 // length of a tick
	for _, t := range a.xTicks {
		x := a.x(t.at)
		if a.xGrid {
			d.line(grid, 0.4, point{x, a.box.y0}, point{x, a.box.y1})
		}
		if a.xLine {
			d.line(soft, 0.4, point{x, a.box.y1}, point{x, a.box.y1 + mark})
		}
		l := d.lab(t.text)
		l.anchor = middle
		d.write(l, point{x, a.box.y1 + mark + 0.3*size + capital*size})
	}
	for _, t := range a.yTicks {
		y := a.y(t.at)
		if a.yGrid {
			d.line(grid, 0.4, point{a.box.x0, y}, point{a.box.x1, y})
		}
		if a.yLine {
			d.line(soft, 0.4, point{a.box.x0 - mark, y}, point{a.box.x0, y})
		}
		l := d.lab(t.text)
		l.anchor, l.dx = end, -mark-0.3*size
		d.beside(l, point{a.box.x0, y})
	}
	if a.xLine {
		d.line(soft, 0.4, point{a.box.x0, a.box.y1}, point{a.box.x1, a.box.y1})
	}
	if a.yLine {
		d.line(soft, 0.4, point{a.box.x0, a.box.y0}, point{a.box.x0, a.box.y1})
	}
	if a.xLabel != "" {
		l := d.lab(a.xLabel)
		l.anchor = middle
		x := (a.box.x0 + a.box.x1) / 2
		half := wide(l) / 2
		x = max(min(x, d.style.Width-half), half)
		d.write(l, point{x, a.box.y1 + d.below(a) - descent*size})
	}
	if a.yLabel != "" {
		l := d.lab(a.yLabel)
		l.turned = true
		d.write(l, point{a.box.x0 - d.left(a) + ascent*size, (a.box.y0 + a.box.y1) / 2})
	}
	if a.title != "" {
		l := d.lab(a.title)
		l.bold, l.anchor = true, middle
		half := wide(l) / 2
		x := max(min((a.box.x0+a.box.x1)/2, d.style.Width-half), half)
		d.write(l, point{x, a.box.y0 - 0.6*size})
	}
	for i := range d.items[from:] {
		d.items[from+i].drawn = true
	}
}

// below returns the height of the numbers and the title under the axes.
func (d *Drawing) below(a *axes) float64 {
	size, h := d.style.Label, 2.0
	if len(a.xTicks) > 0 {
		h += 0.3*size + (capital+descent)*size
	}
	if a.xLabel != "" {
		h += 0.4*size + (ascent+descent)*size
	}
	return h
}

// left returns the width of the numbers and the title left of the axes.
func (d *Drawing) left(a *axes) float64 {
	size, w := d.style.Label, 0.0
	for _, t := range a.yTicks {
		w = max(w, wide(d.lab(t.text))+2+0.3*size)
	}
	if a.yLabel != "" {
		w += 0.4*size + (ascent+descent)*size
	}
	return w
}

// Misplaced lists the shapes and texts that stick out of the figure, the texts that overlap others, and texts smaller
// than 6 points. Tests call it for every drawing.
func (d *Drawing) Misplaced() (out []string) {
	all := box{0, 0, d.style.Width, d.height}
	for i, it := range d.items {
		if it.label == nil {
			for _, p := range it.points {
				r := it.radius
				if math.IsNaN(p.x+p.y) || !(box{p.x - r, p.y - r, p.x + r, p.y + r}).within(all) {
					out = append(out, fmt.Sprintf("a shape at %.1f leaves %.1f", p, all))
				}
			}
			continue
		}
		l := it.label
		if !l.box.within(all) {
			out = append(out, fmt.Sprintf("%q at %.1f sticks out of %.1f", l.text, l.box, all))
		}
		if l.size < 6 {
			out = append(out, fmt.Sprintf("%q has %.1f points", l.text, l.size))
		}
		for _, o := range d.items[:i] {
			if o.label != nil && l.box.overlaps(o.label.box) {
				out = append(out, fmt.Sprintf("%q at %.1f lies over %q at %.1f", l.text, l.box, o.label.text, o.label.box))
			}
		}
	}
	return out
}
