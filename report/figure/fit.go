package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
)

// A FitPoint is one value that a search tried.
type FitPoint struct {
	Value    int64
	Reserved int64 // highest reserved; for a value that does not fit, until the failure
	Fits     bool
}

// A FitSeries has the values tried for one method on one device.
type FitSeries struct {
	Label  string // the device's memory, in bytes
	Limit  int64  // bytes
	Margin int64  // bytes of Limit that should stay free
	Points []FitPoint
}

// A Fit is the picture named fit: memory by a parameter's value, up to the largest value that fits. Values that do not
// fit are hollow points on the line of their device's memory, since the memory that they need is not known.
type Fit struct {
	Vary   string
	Series []FitSeries
	Empty  string
	Notes  []string
}

// fitColors distinguish series. If there are more series than colours, a note names the rest, and the table has them.
var fitColors = []canvas.Color{0x204d8b, 0xe16114, 0x58b793, 0x7346a5, 0xd98cb3, 0x836700, 0x01645f, 0x7a1f3d}

type fitLayout struct {
	m             *Fit
	shown         []FitSeries
	width, height float64
	plot          canvas.Box
	x, y          tradeAxis
	limits        []fitLimit
	// awayX and awayY move the axes' numbers further away, since a point near an axis reaches over it.
	awayX, awayY float64
	legend       legend
}

// fitLimit is the line drawn at a device's memory.
type fitLimit struct {
	y     float64
	text  string
	faint bool    // the line where a margin begins
	textY float64 // y of the text's middle: at the line's end, or as near to it as other texts allow
}

func (m *Fit) layout() *fitLayout {
	l := &fitLayout{m: m, shown: m.Series[:min(len(m.Series), len(fitColors))]}
	lowX, highX, highY := math.Inf(1), 0.0, 0.0
	var notes, labels []string
	for _, s := range l.shown {
		labels = append(labels, s.Label)
		for _, p := range s.Points {
			lowX, highX = min(lowX, float64(p.Value)), max(highX, float64(p.Value))
			highY = max(highY, float64(p.Reserved))
			if !p.Fits {
				highY = max(highY, float64(s.Limit))
			}
		}
	}
	top := margin + titleSize*lineHeight + 10
	l.x, l.y = axisOver(0, highX, unit{1, ""}), axisOver(0, highY*1.05, unitOf(int64(highY)))
	left := margin + 40.0
	empty := highX == 0
	if !empty {
		for _, v := range l.y.ticks(6) {
			left = max(left, margin+canvas.Measure(tickText(v)+" "+l.y.unit.name, valueSize)+8)
		}
	}
	l.place(left, top)
	if empty {
		l.plot.Y1 = l.plot.Y0 + barHeight
	} else {
		l.awayX, l.awayY = l.beyondAxes()
		l.place(left+l.awayX, top)
		l.placeLimits()
	}
	l.width = l.plot.X1 + margin
	for _, limit := range l.limits {
		l.width = max(l.width, l.plot.X1+limitGap+canvas.Measure(limit.text, valueSize)+margin)
	}
	y := l.plot.Y1 + 48 + l.awayY
	if empty {
		y = l.plot.Y1 + 8
	}
	var items []legendItem
	hollow := false
	for i, s := range l.shown {
		items = append(items, legendItem{label: canvas.Fit(s.Label, valueSize, l.width-2*margin-swatch-30),
			fill: fitColors[i]})
		for _, p := range s.Points {
			hollow = hollow || !p.Fits
		}
	}
	notes = append(notes, missingNote(labels)...)
	if hollow {
		notes = append(notes, "hollow: does not fit; what it would take is not known, and it stands on the line of "+
			"its device's memory")
	}
	for i := range l.shown {
		if l.covers(i) > 0 {
			notes = append(notes, "a wide curve lies under narrower ones that go the same way")
			break
		}
	}
	if n := len(m.Series) - len(l.shown); n > 0 {
		notes = append(notes, fmt.Sprintf("%d more are in the table alone", n))
	}
	l.legend, y = layLegend(items, append(notes, m.Notes...), y, l.width)
	l.height = math.Ceil(y + margin)
	return l
}

// place moves the plot's top left corner to a point.
func (l *fitLayout) place(left, top float64) {
	l.plot = canvas.Box{X0: left, Y0: top, X1: left + tradeWidth, Y1: top + tradeHeight}
	l.x.from, l.x.to, l.y.from, l.y.to = l.plot.X0, l.plot.X1, l.plot.Y1, l.plot.Y0
}

// beyondAxes returns how far points reach over the axes into the numbers.
func (l *fitLayout) beyondAxes() (left, below float64) {
	const room = 5 // distance between an axis and its numbers
	for i := range l.shown {
		for k := range l.shown[i].Points {
			x, y := l.at(&l.shown[i], &l.shown[i].Points[k])
			reach := l.radius(i, x, y) - room
			left, below = max(left, reach-(x-l.plot.X0)), max(below, reach-(l.plot.Y1-y))
		}
	}
	return left, below
}

// limitGap is the distance between the plot and the memories' texts to its right.
const limitGap = 8

// placeLimits places a line for each device memory that the plot reaches, and a thin line where its margin begins. The
// lines' texts are to the right of the plot, outside the curves. Above a line inside the plot, curves and points would
// cover its text.
func (l *fitLayout) placeLimits() {
	seen := map[string]bool{}
	add := func(what string, bytes int64, faint bool) {
		y, text := l.y.at(float64(bytes)), what+" "+table.Size(bytes)
		if seen[text] || bytes <= 0 || y < l.plot.Y0 {
			return
		}
		seen[text] = true
		l.limits = append(l.limits, fitLimit{y: y, text: text, faint: faint, textY: y})
	}
	for _, s := range l.shown {
		add("memory", s.Limit, false)
		if s.Margin > 0 {
			add("less margin", s.Limit-s.Margin, true)
		}
	}
	slices.SortFunc(l.limits, func(a, b fitLimit) int { return cmp.Compare(a.y, b.y) })
	const line = valueSize * 1.4
	lowest := l.plot.Y0 + line/2
	for i := range l.limits {
		l.limits[i].textY = max(l.limits[i].textY, lowest)
		lowest = l.limits[i].textY + line
	}
	highest := l.plot.Y1 - line/2
	for i := range slices.Backward(l.limits) {
		l.limits[i].textY = min(l.limits[i].textY, highest)
		highest = l.limits[i].textY - line
	}
}

func (m *Fit) describe() string {
	var b strings.Builder
	if len(m.Series) == 0 {
		b.WriteString(m.Empty + ". ")
	}
	for _, s := range m.Series {
		b.WriteString(s.Label + ":")
		for _, p := range s.Points {
			if p.Fits {
				fmt.Fprintf(&b, " %s %d %s,", m.Vary, p.Value, table.Size(p.Reserved))
			} else {
				fmt.Fprintf(&b, " %s %d does not fit in %s,", m.Vary, p.Value, table.Size(s.Limit))
			}
		}
		b.WriteString(" ")
	}
	return strings.TrimSpace(b.String() + strings.Join(m.Notes, ". "))
}

func (m *Fit) draw(svg bool) (*canvas.Canvas, error) {
	l := m.layout()
	c, err := canvas.New(l.width, l.height, svg)
	if err != nil {
		return nil, err
	}
	c.Text(canvas.Fit("Reserved memory by "+m.Vary, titleSize, l.width-2*margin), margin, margin+titleSize, titleSize,
		canvas.Start, ink)
	l.legend.draw(c)
	if l.plot.Y1-l.plot.Y0 <= barHeight {
		c.Text(canvas.Fit(m.Empty, nameSize, l.width-2*margin), margin, l.plot.Y0+nameSize, nameSize, canvas.Start,
			softInk)
		return c, nil
	}
	(&tradePlot{cost: m.Vary, right: l.width - 4, plot: l.plot, x: l.x, y: l.y, awayX: l.awayX,
		awayY: l.awayY}).drawAxes(c)
	for _, limit := range l.limits {
		width := 1.2
		if limit.faint {
			width = 0.5
		}
		c.Line(l.plot.X0, limit.y, l.plot.X1, limit.y, width, softInk)
		if limit.textY != limit.y {
			c.Segment(l.plot.X1, limit.y, l.plot.X1+limitGap-2, limit.textY, 0.6, leadColor)
		}
		c.Text(limit.text, l.plot.X1+limitGap, limit.textY+valueSize*0.36, valueSize, canvas.Start, softInk)
	}
	for i := range l.shown {
		l.drawSeries(c, i)
	}
	return c, nil
}

// covers returns how many later curves lie on a curve or on a part of it. A curve is drawn wider by the number of
// curves that cover it, so that it stays visible. Shifting the curves apart would show wrong values.
func (l *fitLayout) covers(i int) int {
	most := 0
	for j := i + 1; j < len(l.shown); j++ {
		if l.lies(&l.shown[i], &l.shown[j]) || l.lies(&l.shown[j], &l.shown[i]) {
			most = max(most, 1+l.covers(j))
		}
	}
	return most
}

// lies reports whether a curve coincides with another one, or with a part of it, at the resolution of the picture.
func (l *fitLayout) lies(s, on *FitSeries) bool {
	fitting := 0
	for i := range s.Points {
		if !s.Points[i].Fits {
			continue
		}
		fitting++
		if x, y := l.at(s, &s.Points[i]); !l.passes(on, x, y) {
			return false
		}
	}
	return fitting > 1
}

// near is the distance, in the picture's units, at which two places look the same.
const near = 1.5

// passes reports whether a curve goes through a place.
func (l *fitLayout) passes(s *FitSeries, x, y float64) bool {
	var x0, y0 float64
	before := false
	for i := range s.Points {
		if !s.Points[i].Fits {
			continue
		}
		x1, y1 := l.at(s, &s.Points[i])
		if math.Abs(x1-x) <= near && math.Abs(y1-y) <= near {
			return true
		}
		if before && x0 < x && x < x1 && math.Abs(y0+(y1-y0)*(x-x0)/(x1-x0)-y) <= near {
			return true
		}
		x0, y0, before = x1, y1, true
	}
	return false
}

// at returns the place of a point in the picture.
func (l *fitLayout) at(s *FitSeries, p *FitPoint) (x, y float64) {
	bytes := p.Reserved
	if !p.Fits {
		bytes = s.Limit
	}
	return l.x.at(float64(p.Value)), l.y.at(float64(bytes))
}

// coversAt returns how many later curves have a point at a place of curve i.
func (l *fitLayout) coversAt(i int, x, y float64) int {
	n := 0
	for j := i + 1; j < len(l.shown); j++ {
		for k := range l.shown[j].Points {
			if atX, atY := l.at(&l.shown[j], &l.shown[j].Points[k]); math.Abs(atX-x) <= near &&
				math.Abs(atY-y) <= near {
				n++
				break
			}
		}
	}
	return n
}

// radius returns the radius of a curve's point. A point is larger than the points of later curves that lie on it.
func (l *fitLayout) radius(series int, x, y float64) float64 {
	return pointRadius + 1.6*float64(max(l.covers(series), l.coversAt(series, x, y)))
}

func (l *fitLayout) drawSeries(c *canvas.Canvas, series int) {
	s, color, covers := &l.shown[series], fitColors[series], l.covers(series)
	var before *FitPoint
	for i := range s.Points {
		if p := &s.Points[i]; p.Fits {
			if before != nil {
				x0, y0 := l.at(s, before)
				x1, y1 := l.at(s, p)
				c.Segment(x0, y0, x1, y1, 1.4+2.4*float64(covers), color)
			}
			before = p
		}
	}
	for i := range s.Points {
		p := &s.Points[i]
		x, y := l.at(s, p)
		radius := l.radius(series, x, y)
		c.Diamond(x, y, radius, color)
		if !p.Fits {
			c.Diamond(x, y, radius-2, paper)
		}
		c.Shape(fmt.Sprintf("%s %d of %s", l.m.Vary, p.Value, s.Label), canvas.Box{X0: x, Y0: y, X1: x, Y1: y}, l.plot)
	}
}
