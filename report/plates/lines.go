package plates

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/schemas/units"
)

// A Quantity says which kind of values a figure shows.
type Quantity int

// The quantities.
const (
	Bytes   Quantity = iota
	Seconds          // seconds of a step
	Ratio            // a ratio to the baseline, printed with ×
	Count            // a number of samples or other things
)

// unitOf returns the unit for values up to most.
func (q Quantity) unitOf(most float64) unit {
	switch q {
	case Bytes:
		return unitOfBytes(most)
	case Seconds:
		return unitOfSeconds(most)
	case Ratio:
		return unit{"×", 1, 2}
	case Count:
	}
	return unit{"", 1, 0}
}

// titled returns an axis's title with its unit.
func (u unit) titled(axis string) string {
	if u.name == "" || axis == "" {
		return axis
	}
	return axis + " (" + u.name + ")"
}

// A Series has one method's values at the swept values.
type Series struct {
	Label  string
	Values []float64 // one for each swept value
	States []State   // nil if all values are measured
	Accent bool      // whether the finding is about this series
	Look   int       // number of the method's look in all figures: marker, dashes and colour
}

func (s Series) state(i int) State {
	if i < len(s.States) {
		return s.States[i]
	}
	return Measured
}

// A LinesPanel has the series of one combination of the other parameters.
type LinesPanel struct {
	Title  string
	X      string // the swept parameter, such as "Sequence length"
	At     []float64
	Names  []string // names of the places in At, if they are not numbers
	Series []Series
}

// Lines shows how peak or time grows with a swept parameter.
type Lines struct {
	Panels   []LinesPanel
	Axis     string // title of the values, such as "Peak over non-private"
	Quantity Quantity
}

// MostLines is the most lines in a panel.
const MostLines = 10

type linesPanel struct {
	LinesPanel
	at   []float64 // positions along the axis; logarithms if the swept values double
	axes axes
	of   unit
	fits float64 // height that the labels at the right edge need
	tail float64 // width that the labels need, and later the width that they get
}

// Draw draws the figure.
func (f Lines) Draw(s Style) (*Drawing, error) {
	d := newDrawing(s)
	var panels []*linesPanel
	low, high, least := 0.0, 0.0, math.Inf(1)
	for _, p := range f.Panels {
		q := f.panel(d, p)
		if q == nil {
			continue
		}
		if len(panels) == mostPanels(s) {
			d.LeftOut = append(d.LeftOut, p.Title)
			continue
		}
		panels = append(panels, q)
		low, high, least = min(low, q.axes.y0), max(high, q.axes.y1), min(least, q.axes.y1)
	}
	if len(panels) == 0 {
		return nil, ErrEmpty
	}
	g := gridOf(s, len(panels))
	titled := 0.0
	if len(panels) > 1 || panels[0].Title != "" {
		titled = 1.7 * s.Label
	}
	need := 0.0
	for i, p := range panels {
		own := high > 4*least // panels have their own axes if a common scale would hide the smaller values
		if own {
			p.of = f.Quantity.unitOf(max(p.axes.y1, -p.axes.y0))
		} else {
			p.axes.y0, p.axes.y1, p.of = low, high, f.Quantity.unitOf(max(high, -low))
		}
		p.axes.y0, p.axes.y1 = between(p.axes.y0/p.of.size, p.axes.y1/p.of.size)
		p.axes.xLine, p.axes.yLine, p.axes.yGrid = true, true, true
		p.axes.yTicks = ticks(p.axes.y0, p.axes.y1, 5)
		if i%g.across == 0 || own && p.of.name != panels[0].of.name {
			p.axes.yLabel = p.of.titled(f.Axis)
		}
		p.axes.xLabel = p.X
		if titled > 0 {
			p.axes.title = letter(i, len(panels), p.Title)
		}
		if p.of.digits < 2 && p.of.name != "" && max(p.axes.y1, -p.axes.y0) < 10 {
			p.of.digits = 2
		}
		p.tail = 0
		for _, r := range p.Series {
			name, value := f.end(p, r)
			p.tail = max(p.tail, wide(d.val(name+value))+4)
		}
		need = max(need, p.fits)
	}
	under := d.below(&axes{xTicks: []tick{{}}, xLabel: "x"}) + 0.5*s.Label
	tall := g.tall(s, max(need, min(Centimetres(4.2), max(Centimetres(3.4), g.width*0.6))), titled+under)
	before, after := make([]float64, len(panels)), make([]float64, len(panels))
	for i, p := range panels {
		p.tail = min(p.tail, g.width/2)
		before[i], after[i] = d.left(&p.axes), p.tail
	}
	plots, width := g.plots(before, after)
	for i, p := range panels {
		x, y := plots[i], float64(i/g.across)*(tall+titled+under)+titled
		a := &p.axes
		a.box = box{x, y, x + width, y + tall}
		from, to := x-before[i]-g.gap/2, min(s.Width, x+width+after[i]+g.gap/2)
		title := d.lab(a.title)
		title.bold = true
		a.title = fit(title, to-from-g.gap)
		a.xLabel = fit(d.lab(a.xLabel), to-from-g.gap)
		p.ticks(d, from, to)
		d.open(a)
		f.draw(d, p)
		d.open(nil)
	}
	d.height = float64(g.down)*(tall+titled+under) - 0.3*s.Label
	return d, nil
}

// panel returns what is drawn of one setting: the series that have a value, and axes that include all values. panel
// returns nil if fewer than two places were swept, or if no known value differs from 0.
func (f Lines) panel(d *Drawing, p LinesPanel) *linesPanel {
	q := &linesPanel{LinesPanel: p}
	q.Series = nil
	for _, r := range p.Series {
		known := 0
		for i, v := range r.Values {
			if i < len(p.At) && plotted(r.state(i)) && !math.IsNaN(v) {
				known++
				q.axes.y0, q.axes.y1 = min(q.axes.y0, v), max(q.axes.y1, v)
			}
		}
		switch {
		case known == 0:
		case len(q.Series) == MostLines:
			d.LeftOut = append(d.LeftOut, r.Label)
		default:
			q.Series = append(q.Series, r)
		}
	}
	if len(q.Series) == 0 || len(p.At) < 2 || q.axes.y1 == q.axes.y0 {
		return nil
	}
	q.at = slices.Clone(p.At)
	if p.Names == nil && doubles(p.At) {
		for i, v := range q.at {
			q.at[i] = math.Log2(v)
		}
	}
	first, last := slices.Min(q.at), slices.Max(q.at)
	room := (last - first) * 0.08
	q.axes.x0, q.axes.x1 = first-room, last+room
	q.fits = float64(len(q.Series)) * 1.1 * d.style.Value
	return q
}

func plotted(s State) bool { return s == Measured || s == Predicted || s == Bounded }

// doubles reports whether swept values grow by factors, and not by differences.
func doubles(at []float64) bool {
	for i := range at {
		if at[i] <= 0 || i > 0 && at[i] < 1.5*at[i-1] {
			return false
		}
	}
	return true
}

// ticks returns a tick at each swept value. A tick has no number if the number would overlap its neighbour's or extend
// beyond the edges.
func (p *linesPanel) ticks(d *Drawing, edge, last float64) {
	p.axes.xTicks = nil
	for i, v := range p.at {
		l := d.lab(amount(p.At[i]))
		if len(p.Names) == len(p.At) {
			l.text = Short(p.Names[i])
		}
		x, half := p.axes.x(v), wide(l)/2+1.5
		if x-half < edge || x+half > last {
			l.text = ""
		} else {
			edge = x + half
		}
		p.axes.xTicks = append(p.axes.xTicks, tick{v, l.text})
	}
}

// amount formats a swept value: 16,384 or 0.5.
func amount(v float64) string {
	const most = 6 // most decimals
	_, fraction, _ := strings.Cut(strings.TrimRight(strconv.FormatFloat(v, 'f', most, 64), "0"), ".")
	return units.Fixed(v, len(fraction))
}

// end returns the text at a line's right end: the series' name, and its last value.
func (f Lines) end(p *linesPanel, r Series) (name, last string) {
	if i := lastKnown(r, len(p.At)); i >= 0 {
		value := p.of.in(r.Values[i])
		switch r.state(i) {
		case Predicted:
			value = "~" + value
		case Bounded:
			value = "≥\u2009" + value
		case Measured, OOM, Failed, NotRun:
		}
		last = " " + value
	}
	if slices.Contains(r.States, OOM) {
		last += ", then OOM"
	}
	return Short(r.Label), last
}

func lastKnown(r Series, n int) int {
	for i := min(n, len(r.Values)) - 1; i >= 0; i-- {
		if plotted(r.state(i)) && !math.IsNaN(r.Values[i]) {
			return i
		}
	}
	return -1
}

// A look distinguishes lines by marker, by dashes and by colour. A method has the same look in all figures of a paper.
type look struct {
	colour colour
	dash   bool
	sides  int // the marker's number of sides; 0: a circle, -3: a triangle on its tip; [Drawing.marker] has more
	hollow bool
}

// shapes are the markers, in the order in which methods get them. There are as many as a figure names methods.
var shapes = []int{0, 4, 3, 5, -3, 6, 7, 8, 9, 10}

// lookOf returns the look with a number. The first twenty looks differ, and neighbours differ in both marker and
// dashes.
func lookOf(n int) look {
	l := look{colour: text, sides: shapes[n%len(shapes)], dash: n%2 == 1}
	if n/len(shapes)%2 == 1 {
		l.colour = soft
	}
	return l
}

func (f Lines) draw(d *Drawing, p *linesPanel) {
	a := &p.axes
	type tag struct {
		label label
		x, y  float64
	}
	var tags []tag
	for _, r := range p.Series {
		l := lookOf(r.Look)
		if r.Accent {
			l.colour, l.dash = accent, false
		}
		var line []point
		for i := range min(len(p.at), len(r.Values)) {
			if !plotted(r.state(i)) || math.IsNaN(r.Values[i]) {
				if r.state(i) == OOM {
					f.gone(d, a, p.at[i], line, l)
				}
				continue
			}
			line = append(line, point{a.x(p.at[i]), a.y(r.Values[i] / p.of.size)})
		}
		if l.dash {
			d.dashed(l.colour, d.scaled(0.9), line...)
		} else if len(line) > 1 {
			d.line(l.colour, d.scaled(0.9), line...)
		}
		for _, at := range line {
			d.marker(at, l)
		}
		name, last := f.end(p, r)
		t := d.val(name)
		t.text = fit(t, p.tail-4-wide(d.val(last))+hair) + last
		if r.Accent {
			t.colour = accent
		}
		tags = append(tags, tag{t, line[len(line)-1].x, line[len(line)-1].y})
	}
	// Names stand at the right edge, from the top down, at least a line apart.
	slices.SortStableFunc(tags, func(a, b tag) int {
		if a.y < b.y {
			return -1
		}
		if a.y > b.y {
			return 1
		}
		return 0
	})
	apart := (ascent + descent) * 1.05 * d.style.Value
	ys := make([]float64, len(tags))
	for i, t := range tags {
		ys[i] = t.y
	}
	spread(ys, apart, a.box.y0, a.box.y1-0.3*d.style.Value)
	for i, t := range tags {
		t.label.dx = 3.5
		d.beside(t.label, point{a.box.x1, ys[i]})
		if t.x < a.box.x1-hair || math.Abs(ys[i]-t.y) > 1 { // a line leads from the end to its name
			d.line(grid, 0.5, point{t.x + 2.2, t.y}, point{a.box.x1 + 2, ys[i]})
		}
	}
}

// spread moves sorted places at least apart from one another, as little as possible, within from and to.
func spread(ys []float64, apart, from, to float64) {
	for i := range ys {
		ys[i] = max(ys[i], from)
		if i > 0 {
			ys[i] = max(ys[i], ys[i-1]+apart)
		}
	}
	limit := to
	for i, y := range slices.Backward(ys) {
		ys[i] = min(y, limit)
		limit = ys[i] - apart
	}
}

// gone marks where a series ends because memory ran out: a dotted line upward, and a cross.
func (f Lines) gone(d *Drawing, a *axes, at float64, line []point, l look) {
	x, y := a.x(at), a.box.y0+2
	if len(line) > 0 {
		d.dashed(l.colour, 0.5, line[len(line)-1], point{x, y})
	}
	d.line(l.colour, 0.9, point{x - 1.8, y - 1.8}, point{x + 1.8, y + 1.8})
	d.line(l.colour, 0.9, point{x - 1.8, y + 1.8}, point{x + 1.8, y - 1.8})
}

func (d *Drawing) marker(p point, l look) {
	fill := l.colour
	if l.hollow {
		fill = page
	}
	r := d.scaled(1.6)
	corners := func(at ...point) {
		for i := range at {
			at[i] = point{p.x + r*at[i].x, p.y + r*at[i].y}
		}
		d.outlined(fill, l.colour, at...)
	}
	switch l.sides {
	case 3:
		corners(point{0, -1.2}, point{1.1, 0.8}, point{-1.1, 0.8})
	case -3:
		corners(point{0, 1.2}, point{1.1, -0.8}, point{-1.1, -0.8})
	case 4:
		corners(point{0, -1.2}, point{1.2, 0}, point{0, 1.2}, point{-1.2, 0})
	case 5:
		corners(point{-0.9, -0.9}, point{0.9, -0.9}, point{0.9, 0.9}, point{-0.9, 0.9})
	case 6: // a cross of two bars
		corners(point{-0.4, -1.2}, point{0.4, -1.2}, point{0.4, -0.4}, point{1.2, -0.4}, point{1.2, 0.4}, point{0.4, 0.4},
			point{0.4, 1.2}, point{-0.4, 1.2}, point{-0.4, 0.4}, point{-1.2, 0.4}, point{-1.2, -0.4}, point{-0.4, -0.4})
	case 7: // a triangle to the right
		corners(point{1.2, 0}, point{-0.8, 1.1}, point{-0.8, -1.1})
	case 8: // a triangle to the left
		corners(point{-1.2, 0}, point{0.8, -1.1}, point{0.8, 1.1})
	case 9: // an hourglass
		corners(point{-1, -1.1}, point{1, -1.1}, point{0.25, 0}, point{1, 1.1}, point{-1, 1.1}, point{-0.25, 0})
	case 10: // a star
		const outer, inner, points = 1.4, 0.6, 5
		var star []point
		for i := range 2 * points {
			radius, turn := outer, math.Pi*float64(i)/points
			if i%2 == 1 {
				radius = inner
			}
			star = append(star, point{radius * math.Sin(turn), -radius * math.Cos(turn)})
		}
		corners(star...)
	default:
		d.circle(p, r, fill, l.colour, d.scaled(0.6))
	}
}

// cross draws the mark of a point that is not private.
func (d *Drawing) cross(p point, stroke colour) {
	r := d.scaled(1.5)
	d.line(stroke, d.scaled(0.7), point{p.x - r, p.y - r}, point{p.x + r, p.y + r})
	d.line(stroke, d.scaled(0.7), point{p.x - r, p.y + r}, point{p.x + r, p.y - r})
}
