package figure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
)

// A Point is one run of a [Tradeoff]: its peak, and its cost with the range of the cost over steps or repeats.
type Point struct {
	Label             string // label, which is unique in the picture
	Panel, Short      string // the point's setting, and what distinguishes it from the other points of that setting
	Badge             string
	Cost, Low, High   float64 // cost and its range, in the picture's unit of cost
	Peak              int64   // peak in bytes
	PeakLow, PeakHigh int64
	Baseline          bool
}

// A Tradeoff is the picture named tradeoff: peak memory against the cost of a step. Each run is a point with an error
// bar. If there are many points, each setting has a panel.
type Tradeoff struct {
	Points []Point // points of the picture, at least one
	Cost   string  // title of the horizontal axis, with its unit
	Notes  []string
}

// Sizes in logical pixels.
const (
	tradeWidth    = 560.0
	tradeHeight   = 380.0
	manyPoints    = 12 // with more points than this, each setting has a panel
	settingWidth  = 330.0
	settingHeight = 230.0
	betweenPanels = 24.0
	pointRadius   = 4.5
)

// tradeAxis maps values to pixels.
type tradeAxis struct {
	low, high float64 // values at the ends
	from, to  float64 // pixels at the ends
	unit      unit    // the unit of bytes; for costs {1, ""}
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

// axisOver returns an axis for values from low to high, with some space around them. The axis begins at zero unless all
// values are far from zero, where an axis from zero would make their differences too small to see.
func axisOver(low, high float64, u unit) tradeAxis {
	a := tradeAxis{low: 0, high: high * 1.08, unit: u}
	if low > 0.6*high {
		air := max((high-low)*0.2, high*0.02) // differences of a thousandth are noise and must not fill the plot
		a.low, a.high = max(0, low-air), high+air
	}
	if a.high <= a.low {
		a.high = a.low + 1
	}
	return a
}

// farApart is the ratio of the largest cost to the median from which on a linear axis would crowd the other costs.
const farApart = 6

// costAxis returns the axis of the costs. The axis is logarithmic if the highest cost is far above most others.
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

// logTicks returns the powers of ten between low and high. logTicks adds two and five times these powers if there is
// room, and leaves some powers out if there is no room.
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

// A tradePlot is the place of a plot with its axes.
type tradePlot struct {
	plot         canvas.Box
	x, y         tradeAxis
	awayX, awayY float64 // extra distance of the axes' numbers
	cost         string  // title of the horizontal axis; "" for a panel that is not the lowest
	right        float64 // x that no number may reach
	bare         bool    // without numbers on the vertical axis: the panel to the left has them
}

// A tradePanel has the points of one setting, or all points.
type tradePanel struct {
	tradePlot
	title  string
	short  bool  // labels are the short ones within a setting
	points []int // indices of the picture's points
	labels []placed
}

type tradeoffLayout struct {
	m             *Tradeoff
	width, height float64
	panels        []*tradePanel
	legend        legend
}

// panels divides the points into panels.
func (m *Tradeoff) panels() (out []*tradePanel) {
	at := map[string]*tradePanel{}
	for i, p := range m.Points {
		if at[p.Panel] == nil {
			at[p.Panel] = &tradePanel{title: p.Panel, short: true}
			out = append(out, at[p.Panel])
		}
		at[p.Panel].points = append(at[p.Panel].points, i)
	}
	if len(out) > 1 && len(m.Points) > manyPoints {
		return out
	}
	all := &tradePanel{}
	for i := range m.Points {
		all.points = append(all.points, i)
	}
	return []*tradePanel{all}
}

func (m *Tradeoff) layout() *tradeoffLayout {
	l := &tradeoffLayout{m: m}
	var lowX, highX, lowY, highY = math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, p := range m.Points {
		lowX, highX = min(lowX, p.Low, p.Cost), max(highX, p.High, p.Cost)
		lowY, highY = min(lowY, float64(p.PeakLow), float64(p.Peak)), max(highY, float64(p.PeakHigh), float64(p.Peak))
	}
	x, y := costAxis(m.Points, lowX, highX), axisOver(lowY, highY, unitOf(int64(highY)))
	left := margin + 40.0
	for _, v := range y.ticks(6) {
		left = max(left, margin+canvas.Measure(tickText(v)+" "+y.unit.name, valueSize)+8)
	}
	l.panels = m.panels()
	bottom := l.arrange(x, y, left)
	notes := l.nameAll()
	y0 := bottom + 48
	var labels []string
	for _, p := range m.Points {
		labels = append(labels, p.Label)
	}
	notes = append(notes, missingNote(labels)...)
	if x.log {
		notes = append(notes, "the horizontal axis is logarithmic")
	}
	switch x, y := x.low > 0 && !x.log, y.low > 0; {
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
	l.legend, y0 = layLegend(nil, append(notes, m.Notes...), y0, l.width)
	l.height = math.Ceil(y0 + margin)
	return l
}

// arrange gives each panel its place and the axes, which all panels share. arrange returns the bottom of the lowest
// panel.
func (l *tradeoffLayout) arrange(x, y tradeAxis, left float64) (bottom float64) {
	width, height, across, titled := tradeWidth, tradeHeight, 1, 0.0
	if n := len(l.panels); n > 1 {
		width, height, across, titled = settingWidth, settingHeight, min(3, n), nameSize*lineHeight
		if n == 4 {
			across = 2
		}
	}
	const numbers = 34.0 // height of the numbers under a panel
	top := margin + titleSize*lineHeight + 10 + titled
	l.width = left + float64(across)*(width+betweenPanels) - betweenPanels + margin
	for i, p := range l.panels {
		p.x, p.y = x, y
		p.plot.X0 = left + float64(i%across)*(width+betweenPanels)
		p.plot.Y0 = top + float64(i/across)*(height+numbers+titled)
		p.plot.X1, p.plot.Y1 = p.plot.X0+width, p.plot.Y0+height
		p.x.from, p.x.to, p.y.from, p.y.to = p.plot.X0, p.plot.X1, p.plot.Y1, p.plot.Y0
		p.bare, p.right = i%across > 0, p.plot.X1+betweenPanels/2
		if i+across >= len(l.panels) {
			p.cost = l.m.Cost
		}
		p.title = canvas.Fit(p.title, nameSize, width)
		bottom = max(bottom, p.plot.Y1)
	}
	return bottom
}

// nameAll places the labels of all panels. nameAll returns notes with the names of points that had no room for a name.
func (l *tradeoffLayout) nameAll() (notes []string) {
	var key []string
	for _, p := range l.panels {
		for _, i := range l.name(p) {
			key = append(key, strconv.Itoa(i+1)+" "+l.m.text(i, false, math.Inf(1)))
		}
	}
	if len(key) > 0 {
		notes = append(notes, "numbers: "+strings.Join(key, "; "))
	}
	return notes
}

// text returns a point's label in one line, or its short label.
func (m *Tradeoff) text(i int, short bool, width float64) string {
	p := &m.Points[i]
	text := p.Label
	if short && p.Short != "" {
		text = p.Short
	}
	text = numbered(i, text)
	if p.Badge != "" {
		text += " [" + p.Badge + "]"
	}
	return canvas.Fit(text, nameSize, width)
}

// geometry returns the place of a point and of its error bars.
func (l *tradeoffLayout) geometry(in *tradePanel, p *Point) (x, y float64, bars []canvas.Box) {
	x, y = in.x.at(p.Cost), in.y.at(float64(p.Peak))
	if p.High > p.Low {
		bars = append(bars, canvas.Box{X0: in.x.at(p.Low), Y0: y - 0.6, X1: in.x.at(p.High), Y1: y + 0.6})
	}
	if p.PeakHigh > p.PeakLow {
		bars = append(bars, canvas.Box{X0: x - 0.6, Y0: in.y.at(float64(p.PeakHigh)), X1: x + 0.6,
			Y1: in.y.at(float64(p.PeakLow))})
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
