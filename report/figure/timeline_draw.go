package figure

import (
	"math"
	"slices"

	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/schemas"
)

const (
	shadeColor canvas.Color = 0xf1f3f6
	stripColor canvas.Color = 0xdde2ea
)

func (m *MemoryTimeline) draw(svg bool) (*canvas.Canvas, error) {
	l := m.layout()
	c, err := canvas.New(l.width, l.height, svg)
	if err != nil {
		return nil, err
	}
	for _, line := range l.heading {
		c.Text(line, margin, margin+titleSize, titleSize, canvas.Start, ink)
	}
	for i := range l.panels {
		if p := &l.panels[i]; l.drawPlot(c, p) {
			l.drawPeak(c, p)
		}
	}
	if len(m.Rows) == 0 {
		c.Text("there is no run to draw", margin, l.axisY-8, nameSize, canvas.Start, softInk)
	}
	l.legend.draw(c)
	return c, nil
}

// drawPlot draws a panel's title, axes and areas, and reports whether it has any.
func (l *timelineLayout) drawPlot(c *canvas.Canvas, p *timePanel) bool {
	left := p.plot.X0
	if len(p.slots) == 0 {
		left = margin
	}
	y := p.top
	for _, line := range p.title {
		c.Text(line, left, y+nameSize, nameSize, canvas.Start, ink)
		y += nameSize * lineHeight
	}
	if len(p.slots) == 0 {
		why := p.row.Failure
		if p.row.Timeline != nil {
			why = "nothing was allocated"
		}
		c.Text(canvas.Fit(why, valueSize, l.width-2*margin), margin, y+4+valueSize, valueSize, canvas.Start, softInk)
		return false
	}
	l.drawPhases(c, p)
	for _, v := range l.ticks(p) {
		at := p.y(int64(v * p.unit.bytes))
		c.Line(p.plot.X0, at, p.plot.X1, at, 1, gridColor)
		if at+valueSize*0.36 > p.plot.Y0 {
			c.Text(tickText(v)+" "+p.unit.name, p.plot.X0-6, at+valueSize*0.36, valueSize, canvas.End, softInk)
		}
	}
	l.drawAreas(c, p)
	l.drawGrowth(c, p)
	c.Line(p.plot.X0, p.plot.Y1, p.plot.X1, p.plot.Y1, 1.5, ink)
	return true
}

// ticks are an axis' round values, no closer than their texts are high.
func (l *timelineLayout) ticks(p *timePanel) []float64 {
	axis := panel{high: p.high, unit: p.unit, perByte: p.perByte}
	return axis.ticks(int(max(2, (p.plot.Y1-p.plot.Y0)/36)))
}

// drawPhases shades every second phase, and names each in a strip below the plot.
func (l *timelineLayout) drawPhases(c *canvas.Canvas, p *timePanel) {
	strip := func(slots []slot, top float64, shade bool) {
		for k, s := range slots {
			b := canvas.Box{X0: s.left, Y0: top, X1: s.right, Y1: top + stripHeight - 2}
			if k%2 == 0 {
				c.Rect(b, stripColor)
			} else {
				c.Rect(b, shadeColor)
			}
			if shade && k%2 == 1 {
				c.Rect(canvas.Box{X0: s.left, Y0: p.plot.Y0, X1: s.right, Y1: p.plot.Y1}, shadeColor)
			}
			if s.name != "" {
				c.Text(s.name, (s.left+s.right)/2, top+stripSize, stripSize, canvas.Middle, ink)
			}
		}
	}
	strip(p.slots, p.plot.Y1+2, true)
	if p.steps != nil {
		strip(p.steps, p.plot.Y1+2+stripHeight, false)
	}
}

// stack is one panel's columns on its pixels: the x of each edge, and above it the tops of the stacked categories.
type stack struct {
	x         []float64
	low, high []int64
	reserved  []int64
	parts     [][]int64 // by column, then by place in the order of stacking
}

// columns maps a timeline's columns to pixels. Where several share one, it shows the highest of them, and the lowest
// low.
func (l *timelineLayout) columns(p *timePanel) stack {
	var st stack
	order := l.groups.stacking()
	for _, s := range p.slots {
		all := s.segment.Columns
		n := min(len(all), int(math.Ceil(s.right-s.left)))
		for k := range n {
			st.x = append(st.x, s.left+(s.right-s.left)*float64(k)/float64(n))
			group := all[len(all)*k/n : len(all)*(k+1)/n]
			top := &group[0]
			low, reserved := top.LowBytes, top.ReservedBytes
			for j := range group {
				if g := &group[j]; g.HighBytes > top.HighBytes {
					top = g
				}
				low, reserved = min(low, group[j].LowBytes), max(reserved, group[j].ReservedBytes)
			}
			st.low, st.high, st.reserved = append(st.low, low), append(st.high, top.HighBytes),
				append(st.reserved, reserved)
			st.parts = append(st.parts, order(top))
		}
	}
	st.x = append(st.x, p.plot.X1)
	return st
}

// stacking returns a column's bytes in the order of the legend: the categories with a colour, then all others
// together.
func (g *grouping) stacking() func(*timeline.TimelineColumn) []int64 {
	var major []int
	for _, c := range g.major {
		major = append(major, schemas.Precedence(c))
	}
	return func(c *timeline.TimelineColumn) []int64 {
		out, rest := make([]int64, len(major)+1), c.HighBytes
		for k, place := range major {
			out[k] = c.Parts[place]
			rest -= out[k]
		}
		out[len(major)] = rest
		return out
	}
}

// drawAreas stacks the categories up to the highest of each column, pale down to the lowest, and draws reserved above.
func (l *timelineLayout) drawAreas(c *canvas.Canvas, p *timePanel) {
	st := l.columns(p)
	n := len(l.groups.major) + 1
	tops := make([][]float64, n)
	solid := make([][]float64, n)
	for i, parts := range st.parts {
		var sum int64
		for k, b := range parts {
			sum += b
			tops[k] = append(tops[k], p.y(sum))
			solid[k] = append(solid[k], p.y(min(sum, st.low[i])))
		}
	}
	fill := func(k int) canvas.Color {
		if k == len(l.groups.major) {
			return minorColor
		}
		return palette[l.groups.major[k]]
	}
	// From the whole stack down to its lowest part: each layer covers the previous one below its own top. A part
	// without bytes anywhere would be covered completely.
	layer := func(tops [][]float64, k int, fill canvas.Color) {
		if k == 0 || !slices.Equal(tops[k], tops[k-1]) {
			c.Area(st.x, tops[k], p.plot.Y1, fill)
		}
	}
	for k := n - 1; k >= 0; k-- {
		layer(tops, k, fill(k).Pale())
	}
	for k := n - 1; k >= 0; k-- {
		layer(solid, k, fill(k))
	}
	highest, atPeak := int64(0), int64(0) // of all columns, and of the columns under the peak's mark
	for i, h := range st.high {
		highest = max(highest, h)
		if st.x[i] <= p.peakX+1 && p.peakX-1 <= st.x[i+1] {
			atPeak = max(atPeak, h)
		}
	}
	c.Shape("allocated at the peak of "+p.row.Label, canvas.Box{X0: p.peakX, Y0: p.y(atPeak), X1: p.peakX,
		Y1: p.plot.Y1}, p.plot)
	c.Shape("allocated of "+p.row.Label, canvas.Box{X0: st.x[0], Y0: p.y(highest), X1: st.x[len(st.x)-1], Y1: p.plot.Y1},
		p.plot)
	if st.reserved[0] < 0 {
		return
	}
	var reserved []float64
	for _, r := range st.reserved {
		reserved = append(reserved, p.y(r))
		highest = max(highest, r)
	}
	c.Steps(st.x, reserved, 1.2, ink)
	c.Shape("reserved of "+p.row.Label, canvas.Box{X0: st.x[0], Y0: p.y(highest), X1: st.x[len(st.x)-1], Y1: p.plot.Y1},
		p.plot)
}

// drawPeak marks the peak and lists its composition beside the plot.
func (l *timelineLayout) drawPeak(c *canvas.Canvas, p *timePanel) {
	x := p.plot.X1 + peakGap
	c.Line(p.peakX, p.peakY, x-4, p.peakY, 0.6, softInk)
	c.Diamond(p.peakX, p.peakY, 4, ink)
	c.Shape("peak of "+p.row.Label, canvas.Box{X0: p.peakX, Y0: p.peakY, X1: p.peakX, Y1: p.peakY}, p.plot)
	y := p.plot.Y0
	for _, line := range p.peak {
		at := x
		if line.shown {
			b := canvas.Box{X0: x, Y0: y + 2.5, X1: x + 9, Y1: y + 11.5}
			c.Rect(b, line.fill)
			at += swatch + 3
		}
		c.Text(line.text, at, y+insideSize*0.95, insideSize, canvas.Start, ink)
		y += insideSize * lineHeight
	}
}
