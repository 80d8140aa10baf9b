package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
)

// A Point is one run of a [Tradeoff]: the middle of its cost and its peak, and how far each reaches over steps or
// repeats.
type Point struct {
	Label             string // unique in the picture
	Badge             string
	Cost, Low, High   float64 // in the picture's unit of cost
	Peak              int64   // bytes
	PeakLow, PeakHigh int64
	Baseline          bool
}

// A Tradeoff is the picture tradeoff: peak memory against what a step costs, a point a run with error bars.
type Tradeoff struct {
	Points []Point // one at least
	Cost   string  // what the horizontal axis shows, with its unit
	Notes  []string
}

// Sizes in logical pixels.
const (
	tradeWidth  = 560.0
	tradeHeight = 380.0
	keyWidth    = 460.0 // at most
	keyLine     = nameSize * 1.4
	keyGap      = 30.0
	manyPoints  = 15 // with more points, labels form a column
	pointRadius = 4.5
)

// tradeAxis maps values to pixels.
type tradeAxis struct {
	low, high float64 // values at the ends
	from, to  float64 // pixels at the ends
	unit      unit    // of bytes; of cost it is {1, ""}
	log       bool
}

func (a *tradeAxis) at(v float64) float64 {
	if a.log {
		return a.from + math.Log(v/a.low)/math.Log(a.high/a.low)*(a.to-a.from)
	}
	return a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from)
}

func (a *tradeAxis) ticks(most int) []float64 {
	if a.log {
		return logTicks(a.low, a.high, most)
	}
	return ticksBetween(a.low/a.unit.bytes, a.high/a.unit.bytes, most, 0)
}

// axisOver spans the values with some air. It begins at zero unless all of them are far from it, when differences would
// be lost in the distance.
func axisOver(low, high float64, u unit) tradeAxis {
	a := tradeAxis{low: 0, high: high * 1.08, unit: u}
	if low > 0.6*high {
		air := max((high-low)*0.2, high*0.02) // noise of a thousandth is not to fill the plot
		a.low, a.high = max(0, low-air), high+air
	}
	if a.high <= a.low {
		a.high = a.low + 1
	}
	return a
}

// farApart is how many times the median the largest cost may be before a linear axis would press the others together.
const farApart = 6

// costAxis spans the costs: on a logarithmic scale if one is far from most.
func costAxis(points []Point, low, high float64) tradeAxis {
	var costs []float64
	for i := range points {
		costs = append(costs, points[i].Cost)
	}
	slices.Sort(costs)
	if n := len(costs); n > 2 && low > 0 && high > farApart*costs[n/2] {
		return tradeAxis{low: low / 1.25, high: high * 1.25, unit: unit{1, ""}, log: true}
	}
	return axisOver(low, high, unit{1, ""})
}

// logTicks returns the powers of ten between low and high. It adds two and five times these if there is room, and
// leaves some out if there is not.
func logTicks(low, high float64, most int) (ticks []float64) {
	first, last := int(math.Floor(math.Log10(low))), int(math.Ceil(math.Log10(high)))
	step := 1
	for factors := []float64{1, 2, 5}; ; factors = factors[:1] {
		ticks = ticks[:0]
		for k := first; k <= last; k += step {
			for _, f := range factors {
				if v := f * math.Pow10(k); v >= low && v <= high {
					ticks = append(ticks, v)
				}
			}
		}
		if len(ticks) <= most {
			return ticks
		}
		if len(factors) == 1 {
			step++
		}
	}
}

// leadGap and leadRise are how far before a label's text, and above its baseline, the line to its point ends.
const (
	leadGap  = 6
	leadRise = 4.5
)

type tradeoffLayout struct {
	m             *Tradeoff
	width, height float64
	plot          canvas.Box
	x, y          tradeAxis
	awayX, awayY  float64 // extra distance of the numbers
	labels        []placed
	legend        legend
}

// placed is a point's label: where its text begins, and where a line to its point begins, if it needs one.
type placed struct {
	text  string
	x, y  float64 // of the baseline's start
	lead  bool
	leadX float64
	leadY float64
}

func (m *Tradeoff) layout() *tradeoffLayout {
	l := &tradeoffLayout{m: m}
	var lowX, highX, lowY, highY = math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, p := range m.Points {
		lowX, highX = min(lowX, p.Low, p.Cost), max(highX, p.High, p.Cost)
		lowY, highY = min(lowY, float64(p.PeakLow), float64(p.Peak)), max(highY, float64(p.PeakHigh), float64(p.Peak))
	}
	top := margin + titleSize*lineHeight + 10
	height := tradeHeight
	if len(m.Points) > manyPoints { // as high as the column of labels
		height = max(height, float64(len(m.Points))*keyLine+nameSize)
	}
	l.x, l.y = costAxis(m.Points, lowX, highX), axisOver(lowY, highY, unitOf(int64(highY)))
	left := margin + 40.0
	for _, v := range l.y.ticks(6) {
		left = max(left, margin+canvas.Measure(tickText(v)+" "+l.y.unit.name, valueSize)+8)
	}
	l.plot = canvas.Box{X0: left, Y0: top, X1: left + tradeWidth, Y1: top + height}
	l.x.from, l.x.to, l.y.from, l.y.to = l.plot.X0, l.plot.X1, l.plot.Y1, l.plot.Y0
	l.width = l.plot.X1 + margin
	if !l.placeBeside() {
		l.width += l.placeInKey()
	}
	y := l.plot.Y1 + 48
	var labels []string
	for _, p := range m.Points {
		labels = append(labels, p.Label)
	}
	notes := missingNote(labels)
	if l.x.log {
		notes = append(notes, "the horizontal axis is logarithmic")
	}
	switch x, y := l.x.low > 0 && !l.x.log, l.y.low > 0; {
	case x && y:
		notes = append(notes, "axes do not begin at zero")
	case x:
		notes = append(notes, "the horizontal axis does not begin at zero")
	case y:
		notes = append(notes, "the vertical axis does not begin at zero")
	}
	for _, p := range m.Points {
		if p.Baseline {
			notes = append(notes, "hollow: what the others are compared with")
			break
		}
	}
	l.legend, y = layLegend(nil, append(notes, m.Notes...), y, l.width)
	l.height = math.Ceil(y + margin)
	return l
}

// text is a point's label in one line.
func (m *Tradeoff) text(i int, width float64) string {
	p := &m.Points[i]
	text := numbered(i, p.Label)
	if p.Badge != "" {
		text += " [" + p.Badge + "]"
	}
	return canvas.Fit(text, nameSize, width)
}

// placeBeside tries to put each label next to its point, over no other label, point, error bar or edge.
func (l *tradeoffLayout) placeBeside() bool {
	if len(l.m.Points) > manyPoints {
		return false
	}
	var taken []canvas.Box
	for i := range l.m.Points {
		x, y, bars := l.geometry(&l.m.Points[i])
		taken = append(taken, canvas.Box{X0: x - pointRadius - 2, Y0: y - pointRadius - 2, X1: x + pointRadius + 2,
			Y1: y + pointRadius + 2})
		for _, b := range bars {
			taken = append(taken, canvas.Box{X0: b.X0 - 5, Y0: b.Y0 - 5, X1: b.X1 + 5, Y1: b.Y1 + 5})
		}
	}
	free := func(b canvas.Box) bool {
		if b.X0 < l.plot.X0+2 || b.X1 > l.plot.X1-2 || b.Y0 < l.plot.Y0+2 || b.Y1 > l.plot.Y1-2 {
			return false
		}
		for _, o := range taken {
			if b.Overlaps(o) {
				return false
			}
		}
		return true
	}
	labels := make([]placed, len(l.m.Points))
	for i := range l.m.Points {
		text := l.m.text(i, tradeWidth/2)
		w := canvas.Measure(text, nameSize)
		x, y, bars := l.geometry(&l.m.Points[i])
		box := canvas.Box{X0: x, Y0: y, X1: x, Y1: y}
		for _, b := range bars {
			box = canvas.Box{X0: min(box.X0, b.X0), Y0: min(box.Y0, b.Y0), X1: max(box.X1, b.X1), Y1: max(box.Y1, b.Y1)}
		}
		right, left, above, below := box.X1+9, box.X0-9-w, box.Y0-10, box.Y1+20
		found := false
		for _, at := range [][2]float64{{right, y + 4.5}, {left, y + 4.5}, {x - w/2, above}, {x - w/2, below},
			{right, above + 2}, {right, below - 2}, {left, above + 2}, {left, below - 2}} {
			b := canvas.TextBox(text, at[0], at[1], nameSize)
			if free(b) {
				labels[i] = placed{text: text, x: at[0], y: at[1]}
				taken = append(taken, b)
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	l.labels = labels
	return true
}

// placeInKey lists the labels beside the plot, near the heights of their points. Each has a line to its point, and
// no two lines cross. It returns the width that the labels take.
func (l *tradeoffLayout) placeInKey() float64 {
	n := len(l.m.Points)
	order := make([]int, 0, n)
	for i := range l.m.Points {
		at := len(order)
		for at > 0 && l.m.Points[order[at-1]].Peak < l.m.Points[i].Peak {
			at--
		}
		order = append(order[:at], append([]int{i}, order[at:]...)...)
	}
	widest := 0.0
	wanted := make([]float64, n)
	for rank, i := range order {
		x, y, _ := l.geometry(&l.m.Points[i])
		text := l.m.text(i, keyWidth)
		widest = max(widest, canvas.Measure(text, nameSize))
		l.labels = append(l.labels, placed{text: text, x: l.plot.X1 + keyGap, lead: true, leadX: x, leadY: y})
		wanted[rank] = y + leadRise
	}
	for rank, at := range spaced(wanted, keyLine, l.plot.Y0+nameSize, l.plot.Y1) {
		l.labels[rank].y = at
	}
	untangle(l.labels)
	return keyGap + widest
}

// spaced moves heights, which are in order from the top, apart by at least gap and between top and bottom, each as
// little as possible. Heights that would overlap spread around the middle of their wanted places.
func spaced(wanted []float64, gap, top, bottom float64) []float64 {
	type group struct {
		sum float64 // sum of the heights minus the gaps before them
		n   int
	}
	var groups []group
	for i, y := range wanted {
		g := group{y - float64(i)*gap, 1}
		for k := len(groups) - 1; k >= 0 && groups[k].sum/float64(groups[k].n) > g.sum/float64(g.n); k-- {
			g = group{g.sum + groups[k].sum, g.n + groups[k].n}
			groups = groups[:k]
		}
		groups = append(groups, g)
	}
	var out []float64
	for _, g := range groups {
		at := max(top, min(g.sum/float64(g.n), bottom-float64(len(wanted)-1)*gap))
		for range g.n {
			out = append(out, at+float64(len(out))*gap)
		}
	}
	return out
}

// untangle exchanges the places of labels whose lines cross. Each exchange makes the lines shorter together, so that it
// ends.
func untangle(labels []placed) {
	for crossed := true; crossed; {
		crossed = false
		for i := range labels {
			for k := i + 1; k < len(labels); k++ {
				a, b := &labels[i], &labels[k]
				length := func(p *placed, y float64) float64 {
					return math.Hypot(p.x-leadGap-p.leadX, y-leadRise-p.leadY)
				}
				if length(a, b.y)+length(b, a.y) < length(a, a.y)+length(b, b.y)-1e-6 && crossing(a, b) {
					a.y, b.y, crossed = b.y, a.y, true
				}
			}
		}
	}
}

// crossing reports whether the lines of two labels cross. Both end at the same x.
func crossing(a, b *placed) bool {
	if a.leadX > b.leadX {
		a, b = b, a
	}
	end := a.x - leadGap
	// Where a's line is when b's begins, and whether b's point and its label lie on other sides of a's line.
	at := a.leadY + (a.y-leadRise-a.leadY)*(b.leadX-a.leadX)/(end-a.leadX)
	return (b.leadY-at)*(b.y-a.y) < 0
}

// geometry is where a point and its error bars are.
func (l *tradeoffLayout) geometry(p *Point) (x, y float64, bars []canvas.Box) {
	x, y = l.x.at(p.Cost), l.y.at(float64(p.Peak))
	if p.High > p.Low {
		bars = append(bars, canvas.Box{X0: l.x.at(p.Low), Y0: y - 0.6, X1: l.x.at(p.High), Y1: y + 0.6})
	}
	if p.PeakHigh > p.PeakLow {
		bars = append(bars, canvas.Box{X0: x - 0.6, Y0: l.y.at(float64(p.PeakHigh)), X1: x + 0.6,
			Y1: l.y.at(float64(p.PeakLow))})
	}
	return x, y, bars
}

func (m *Tradeoff) describe() string {
	var b strings.Builder
	for _, p := range m.Points {
		b.WriteString(p.Label)
		if p.Badge != "" {
			b.WriteString(" [" + p.Badge + "]")
		}
		fmt.Fprintf(&b, ": peak %s, %s %s. ", table.Size(p.Peak), m.Cost, tickText(p.Cost))
	}
	return b.String() + strings.Join(m.Notes, ". ")
}
