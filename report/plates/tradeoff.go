package plates

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A Point has the step time and the peak of one run.
type Point struct {
	Label             string
	Time, Peak        float64 // time of a step in seconds, and peak in bytes
	TimeLow, TimeHigh float64 // the fastest and the slowest repeat; both 0 without repeats
	State             State   // only measured, predicted and bounded points are drawn
	Base              bool    // the baseline, or a run of a paper without private runs: never on the front
	NotPrivate        bool    // drawn as a cross, with a dagger after the name; it is never on the front
	Look              int     // number of the look of the point's method, as in a [Series]
}

// A TradeoffPanel has the points of one setting.
type TradeoffPanel struct {
	Title  string
	Points []Point
}

// Tradeoff shows the step time and the peak of each method. The front joins the private methods that no other private
// method beats in both.
type Tradeoff struct {
	Panels   []TradeoffPanel
	Baseline string // label of the point from which both axes of a panel count in per cent; "" for absolute axes
}

// MostNamed is the most points of a panel that are all named. In a panel with more points, only the points on the front
// are named.
const MostNamed = 12

// spot is a point in the units of the axes.
type spot struct {
	label        string
	look         look
	x, y         float64
	low, high    float64
	front, other bool
	cross        bool // whether the run is not private
	outside      bool
	said         string // for a point outside the axes: its values as text
}

type tradeoffPanel struct {
	spots []spot
	axes  axes
	stair []point // corners of the front within the axes, in data
}

// Draw draws the figure.
func (f Tradeoff) Draw(s Style) (*Drawing, error) {
	d := newDrawing(s)
	var panels []*tradeoffPanel
	var titles []string
	bytes, seconds := f.units()
	for _, p := range f.Panels {
		if q := f.panel(p, bytes, seconds); q != nil {
			if len(panels) == mostPanels(s) {
				d.LeftOut = append(d.LeftOut, p.Title)
				continue
			}
			panels, titles = append(panels, q), append(titles, p.Title)
		}
	}
	if len(panels) == 0 {
		return nil, ErrEmpty
	}
	share(panels)
	xName, yName := "Step time ("+seconds.name+")", "Peak ("+bytes.name+")"
	if f.Baseline != "" {
		over := " over " + within(Short(f.Baseline)) + " (%)"
		xName, yName = "Step time"+over, "Peak"+over
	}
	g := gridOf(s, len(panels))
	const least = 3.5 // in cm: from this height of a panel on, the axis's title stands beside it
	if wide(d.lab(yName)) > Centimetres(least) {
		xName, yName = "Step time over the baseline (%)", "Peak over the baseline (%)"
	}
	titled := 0.0
	if len(panels) > 1 || titles[0] != "" {
		titled = 1.7 * s.Label
	}
	for i, p := range panels {
		p.axes.xLine, p.axes.yLine, p.axes.xGrid, p.axes.yGrid = true, true, true, true
		p.axes.yTicks = f.signed(ticks(p.axes.y0, p.axes.y1, 5))
		if i%g.across == 0 {
			p.axes.yLabel = yName
		}
		p.axes.title = letter(i, len(panels), titles[i])
		if titled == 0 {
			p.axes.title = ""
		}
	}
	under := d.below(&axes{xTicks: []tick{{}}, xLabel: xName}) + 0.5*s.Label
	left := 0.0
	for _, p := range panels {
		left = max(left, d.left(&p.axes))
	}
	tall := g.tall(s, min(Centimetres(4.4), max(Centimetres(least), g.width*0.7)), titled+under)
	for i, p := range panels {
		x, y := g.x(i), float64(i/g.across)*(tall+titled+under)+titled
		a := &p.axes
		a.box = box{x + left, y, x + g.width - 0.8*s.Label, y + tall}
		d.along(a)
		a.xTicks = f.signed(a.xTicks)
		if i+g.across >= len(panels) {
			a.xLabel = xName
		}
		if l := d.lab(a.xLabel); wide(l) > g.width && g.across > 1 {
			a.xLabel = ""
		}
		title := d.lab(a.title)
		title.bold = true
		a.title = fit(title, g.width)
		d.open(a)
		f.draw(d, p)
		d.open(nil)
	}
	d.height = float64(g.down)*(tall+titled+under) - 0.3*s.Label
	if panels[len(panels)-1].axes.xLabel == "" {
		l := d.lab(xName)
		l.anchor = middle
		d.write(l, point{(left + s.Width) / 2, d.height - descent*s.Label - 0.2*s.Label})
	}
	return d, nil
}

// apart reports, for times and for peaks, whether panels differ so much that a common scale would hide the smaller
// ones.
func apart(panels []*tradeoffPanel) (x, y bool) {
	const most = 4
	differ := func(of func(*tradeoffPanel) float64) bool {
		low, high := math.Inf(1), 0.0
		for _, p := range panels {
			low, high = min(low, of(p)), max(high, of(p))
		}
		return high > most*low
	}
	x = differ(func(p *tradeoffPanel) float64 { return max(p.axes.x1, -p.axes.x0) })
	y = differ(func(p *tradeoffPanel) float64 { return max(p.axes.y1, -p.axes.y0) })
	return x, y
}

// share gives all panels the same axes, unless the panels are too far apart.
func share(panels []*tradeoffPanel) {
	x, y := apart(panels)
	all := axes{x0: math.Inf(1), x1: math.Inf(-1), y0: math.Inf(1), y1: math.Inf(-1)}
	for _, p := range panels {
		all.x0, all.x1 = min(all.x0, p.axes.x0), max(all.x1, p.axes.x1)
		all.y0, all.y1 = min(all.y0, p.axes.y0), max(all.y1, p.axes.y1)
	}
	for _, p := range panels {
		if !x {
			p.axes.x0, p.axes.x1 = all.x0, all.x1
		}
		if !y {
			p.axes.y0, p.axes.y1 = all.y0, all.y1
		}
	}
}

// OwnAxes reports whether some panel has axes that differ from the other panels'.
func (f Tradeoff) OwnAxes() bool {
	bytes, seconds := f.units()
	var panels []*tradeoffPanel
	for _, p := range f.Panels {
		if q := f.panel(p, bytes, seconds); q != nil {
			panels = append(panels, q)
		}
	}
	x, y := apart(panels)
	return x || y
}

// HasRanges reports whether some point has a bar from its fastest to its slowest repeat.
func (f Tradeoff) HasRanges() bool {
	return slices.ContainsFunc(f.Panels, func(p TradeoffPanel) bool {
		return slices.ContainsFunc(p.Points, func(q Point) bool {
			return drawable(q) && q.TimeHigh > q.TimeLow && q.TimeLow > 0 && (f.Baseline == "" || q.Label != f.Baseline)
		})
	})
}

// signed adds signs to ticks that are changes from the baseline's values.
func (f Tradeoff) signed(all []tick) []tick {
	for i, t := range all {
		if f.Baseline != "" && t.at > 0 {
			all[i].text = "+" + t.text
		}
	}
	return all
}

// Outside lists the points beyond the axes with their values, since the figure shows only their names.
func (f Tradeoff) Outside() (out []string) {
	bytes, seconds := f.units()
	for _, p := range f.Panels {
		if q := f.panel(p, bytes, seconds); q != nil {
			for _, t := range q.spots {
				if t.outside {
					out = append(out, t.label+" ("+t.said+")")
				}
			}
		}
	}
	return out
}

// units returns the units of absolute axes.
func (f Tradeoff) units() (bytes, seconds unit) {
	var peak, time float64
	for _, p := range f.Panels {
		for _, q := range p.Points {
			peak, time = max(peak, q.Peak), max(time, q.Time)
		}
	}
	return unitOfBytes(peak), unitOfSeconds(time)
}

func (f Tradeoff) panel(p TradeoffPanel, bytes, seconds unit) *tradeoffPanel {
	x := func(v float64) float64 { return v / seconds.size }
	y := func(v float64) float64 { return v / bytes.size }
	var base *Point
	if f.Baseline != "" {
		i := slices.IndexFunc(p.Points, func(q Point) bool { return q.Label == f.Baseline })
		if i < 0 || !drawable(p.Points[i]) {
			return nil
		}
		base = &p.Points[i]
		x = func(v float64) float64 { return (v/base.Time - 1) * 100 }
		y = func(v float64) float64 { return (v/base.Peak - 1) * 100 }
	}
	out := &tradeoffPanel{}
	for _, q := range p.Points {
		if !drawable(q) || f.Baseline != "" && q.Label == f.Baseline {
			continue
		}
		t := spot{label: Short(q.Label), look: lookOf(q.Look), x: x(q.Time), y: y(q.Peak),
			other: q.Base || q.NotPrivate, cross: q.NotPrivate}
		t.said = seconds.in(q.Time) + " " + seconds.name + ", " + bytes.in(q.Peak) + " " + bytes.name
		if base != nil {
			t.said = percent(q.Time, base.Time) + " time, " + percent(q.Peak, base.Peak) + " memory"
		}
		if q.NotPrivate {
			t.label += Mark
		}
		t.low, t.high = t.x, t.x
		if q.TimeHigh > q.TimeLow && q.TimeLow > 0 {
			t.low, t.high = x(q.TimeLow), x(q.TimeHigh)
		}
		out.spots = append(out.spots, t)
	}
	if len(out.spots) == 0 {
		return nil
	}
	out.front()
	out.fit()
	return out
}

// shown returns a point's look: its method's, filled if the point is on the front.
func (t spot) shown() look {
	l := t.look
	l.colour, l.hollow = text, !t.front
	switch {
	case t.front:
		l.colour = accent
	case t.other:
		l.colour = soft
	}
	return l
}

func drawable(p Point) bool {
	return (p.State == Measured || p.State == Predicted || p.State == Bounded) && p.Time > 0 && p.Peak > 0
}

// front marks the private points that no other private point beats in both time and peak, and sorts them by time.
func (p *tradeoffPanel) front() {
	slices.SortStableFunc(p.spots, func(a, b spot) int { return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y)) })
	best := math.Inf(1)
	for i, t := range p.spots {
		if !t.other && t.y < best {
			best = t.y
			p.spots[i].front = true
		}
	}
}

// fit chooses the axes. A point that is far beyond all others in one direction is outside the axes, where an arrow
// names it.
func (p *tradeoffPanel) fit() {
	far := func(of func(spot) float64) float64 {
		var all []float64
		for _, t := range p.spots {
			all = append(all, math.Abs(of(t)))
		}
		slices.Sort(all)
		limit := all[len(all)-1]
		if n := len(all); n >= 5 && all[n-1] > 4*all[n-2] && all[n-2] > 0 {
			limit = all[n-2]
		}
		return limit
	}
	limitX, limitY := far(func(t spot) float64 { return t.x }), far(func(t spot) float64 { return t.y })
	var x0, x1, y0, y1 float64
	for i, t := range p.spots {
		if math.Abs(t.x) > limitX || math.Abs(t.y) > limitY {
			p.spots[i].outside = true
			continue
		}
		x0, x1 = min(x0, t.x, t.low), max(x1, t.x, min(t.high, 1.3*limitX))
		y0, y1 = min(y0, t.y), max(y1, t.y)
	}
	p.axes.x0, p.axes.x1 = between(x0, x1)
	p.axes.y0, p.axes.y1 = between(y0, y1)
	p.axes.x1 += 0.06 * (p.axes.x1 - p.axes.x0) // room for the names of the slowest points
	tall := p.axes.y1 - p.axes.y0
	p.axes.y1 += 0.1 * tall // room for the names above the highest points
	lowest := math.Inf(1)
	for _, t := range p.spots {
		if t.front && !t.outside {
			p.stair = append(p.stair, point{t.x, t.y})
			lowest = min(lowest, t.y)
		}
	}
	below := 0.13 // share of the height for the names below the front
	if p.axes.y0 < 0 {
		below = 0.25
	}
	if lowest-p.axes.y0 < below*tall && lowest < below*tall {
		p.axes.y0 = lowest - below*tall
	}
}

func (f Tradeoff) draw(d *Drawing, p *tradeoffPanel) {
	a := &p.axes
	in := func(x, y float64) point {
		return point{a.x(max(min(x, a.x1), a.x0)), a.y(max(min(y, a.y1), a.y0))}
	}
	var marks []box
	stair := []point{}
	for i, q := range p.stair {
		if i == 0 {
			stair = append(stair, in(q.x, a.y1))
		} else {
			stair = append(stair, in(q.x, p.stair[i-1].y))
		}
		stair = append(stair, in(q.x, q.y))
	}
	if n := len(p.stair); n > 0 {
		stair = append(stair, in(a.x1, p.stair[n-1].y))
		d.line(accent, d.scaled(0.8), stair...)
	}
	const half = 1.2 // height of the ends of a bar, above and below it
	for _, t := range p.spots {
		if t.high > t.low && !t.outside {
			low, high := in(t.low, t.y), in(t.high, t.y)
			d.line(soft, 0.4, low, high)
			for _, end := range []point{low, high} {
				d.line(soft, 0.4, point{end.x, end.y - half}, point{end.x, end.y + half})
			}
			marks = append(marks, box{low.x, low.y - half, high.x, high.y + half})
		}
	}
	radius := d.scaled(1.7)
	for _, t := range p.spots {
		if t.outside {
			continue
		}
		at := in(t.x, t.y)
		marks = append(marks, box{at.x - radius, at.y - radius, at.x + radius, at.y + radius})
		switch {
		case t.cross:
			d.cross(at, soft)
		default:
			d.marker(at, t.shown())
		}
	}
	for _, t := range p.spots {
		if t.outside {
			p.arrow(d, t, in, stair, marks)
		}
	}
	// At best, only points whose markers overlap share a name. Points up to two markers apart do so if their names would
	// not stand clear of other points.
	before := len(d.items)
	for _, near := range []float64{2, 3.5, 4} {
		d.items = d.items[:before]
		unnamed := p.nameAll(d, p.clusters(in, near*radius), stair, marks, in, true)
		if len(unnamed) > 0 && near == 4 {
			unnamed = p.nameAll(d, unnamed, stair, marks, in, false)
			for _, c := range unnamed {
				for _, t := range c {
					d.LeftOut = append(d.LeftOut, t.label)
				}
			}
		}
		if len(unnamed) == 0 {
			return
		}
	}
}

// nameAll names clusters, and returns those that have no place.
func (p *tradeoffPanel) nameAll(d *Drawing, all [][]spot, stair []point, marks []box, in func(x, y float64) point,
	clear bool) [][]spot {
	return slices.DeleteFunc(all, func(c []spot) bool { return p.nameCluster(d, c, stair, marks, in, clear) })
}

// clusters groups the named points that are nearer to each other than near, each cluster in the order of time. Clusters
// with points on the front come first.
func (p *tradeoffPanel) clusters(in func(x, y float64) point, near float64) (out [][]spot) {
	many := len(p.spots) > MostNamed
	spots := slices.Clone(p.spots)
	slices.SortStableFunc(spots, func(a, b spot) int {
		switch {
		case a.front == b.front:
			return 0
		case a.front:
			return -1
		}
		return 1
	})
	for _, t := range spots {
		if t.outside || many && !t.front {
			continue
		}
		at := in(t.x, t.y)
		i := slices.IndexFunc(out, func(c []spot) bool {
			return slices.ContainsFunc(c, func(o spot) bool {
				to := in(o.x, o.y)
				return math.Hypot(to.x-at.x, to.y-at.y) < near
			})
		})
		if i < 0 {
			out = append(out, []spot{t})
		} else {
			out[i] = append(out[i], t)
		}
	}
	for _, c := range out {
		slices.SortStableFunc(c, func(a, b spot) int { return cmp.Compare(a.x, b.x) })
	}
	return out
}

// nameCluster writes the names of points that lie together, in as few lines as find a place where they cover nothing.
// If clear, they must also be nearer to their own points than to others.
func (p *tradeoffPanel) nameCluster(d *Drawing, c []spot, stair []point, marks []box,
	in func(x, y float64) point, clear bool) bool {
	var names []string
	around := box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, t := range c {
		names = append(names, t.label)
		at := in(t.x, t.y)
		around = box{min(around.x0, at.x), min(around.y0, at.y), max(around.x1, at.x), max(around.y1, at.y)}
	}
	var others []point
	for _, t := range p.spots {
		if clear && !t.outside && !slices.Contains(names, t.label) {
			others = append(others, in(t.x, t.y))
		}
	}
	for lines := 1; lines <= len(names); lines++ {
		var text []string
		for part := range slices.Chunk(names, (len(names)+lines-1)/lines) {
			text = append(text, strings.Join(part, ", "))
		}
		for i := range text[:len(text)-1] {
			text[i] += ","
		}
		if d.nameBeside(p.limits(d), text, around, stair, marks, others) {
			return true
		}
	}
	return false
}

// limits returns the area in which names may stand.
func (p *tradeoffPanel) limits(d *Drawing) box {
	a := p.axes.box
	return box{a.x0 + 1, a.y0 - 1, a.x1 + hair, a.y1}
}

// arrow draws an arrow toward a point beyond the axes, with the point's name. Only the arrow to a point on the front
// has the front's colour.
func (p *tradeoffPanel) arrow(d *Drawing, t spot, in func(x, y float64) point, stair []point, marks []box) {
	colour := t.shown().colour
	a := p.axes.box
	tip := in(t.x, t.y)
	at := point{tip.x, tip.y}
	dx, dy := 0.0, 0.0
	if tip.x >= a.x1-hair {
		dx = 1
	} else if tip.x <= a.x0+hair {
		dx = -1
	}
	if tip.y >= a.y1-hair {
		dy = 1
	} else if tip.y <= a.y0+hair {
		dy = -1
	}
	length := math.Hypot(dx, dy)
	if length == 0 {
		return
	}
	dx, dy = dx/length, dy/length
	from := point{at.x - 12*dx, at.y - 12*dy}
	d.line(colour, 0.7, from, point{at.x - 2.5*dx, at.y - 2.5*dy})
	foot := point{at.x - 4*dx, at.y - 4*dy}
	d.polygon(colour, at, point{foot.x - 1.7*dy, foot.y + 1.7*dx}, point{foot.x + 1.7*dy, foot.y - 1.7*dx})
	around := box{min(from.x, at.x), min(from.y, at.y), max(from.x, at.x), max(from.y, at.y)}
	if !d.nameBeside(p.limits(d), []string{t.label}, around, stair, marks, nil) {
		d.LeftOut = append(d.LeftOut, t.label)
	}
}
