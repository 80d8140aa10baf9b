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

func (m *Timeline) draw(svg bool) (*canvas.Canvas, error) {
	l := m.layout()
	c, err := canvas.New(l.width, l.height, svg)
	if err != nil {
		return nil, err
	}
	for _, line := range l.heading {
		c.Text(line, margin, margin+titleSize, titleSize, canvas.Start, ink)
	}
	l.drawPlot(c)
	l.drawMaxima(c)
	l.drawList(c)
	l.legend.draw(c)
	return c, nil
}

// drawPlot draws the run's name, axes and areas.
func (l *timelineLayout) drawPlot(c *canvas.Canvas) {
	y := margin + titleSize*lineHeight + 8
	for _, line := range l.title {
		c.Text(line, l.plot.X0, y+nameSize, nameSize, canvas.Start, ink)
		y += nameSize * lineHeight
	}
	l.drawPhases(c)
	for _, v := range l.ticks() {
		at := l.y(int64(v * l.unit.bytes))
		c.Line(l.plot.X0, at, l.plot.X1, at, 1, gridColor)
		if at+valueSize*0.36 > l.plot.Y0 {
			c.Text(tickText(v)+" "+l.unit.name, l.plot.X0-6, at+valueSize*0.36, valueSize, canvas.End, softInk)
		}
	}
	l.drawAreas(c)
	l.drawGrowth(c)
	c.Line(l.plot.X0, l.plot.Y1, l.plot.X1, l.plot.Y1, 1.5, ink)
}

// ticks returns the round values on an axis. The values are at least as far apart as their texts are high.
func (l *timelineLayout) ticks() []float64 {
	axis := panel{high: l.high, unit: l.unit, perByte: l.perByte}
	return axis.ticks(int(max(2, (l.plot.Y1-l.plot.Y0)/36)))
}

// drawPhases shades every second phase, and names each in a strip below the plot.
func (l *timelineLayout) drawPhases(c *canvas.Canvas) {
	strip := func(slots []slot, top float64, shade bool) {
		for k, s := range slots {
			b := canvas.Box{X0: s.left, Y0: top, X1: s.right, Y1: top + stripHeight - 2}
			if k%2 == 0 {
				c.Rect(b, stripColor)
			} else {
				c.Rect(b, shadeColor)
			}
			if shade && k%2 == 1 {
				c.Rect(canvas.Box{X0: s.left, Y0: l.plot.Y0, X1: s.right, Y1: l.plot.Y1}, shadeColor)
			}
			if s.name != "" {
				c.Text(s.name, (s.left+s.right)/2, top+stripSize, stripSize, canvas.Middle, ink)
			}
		}
	}
	strip(l.slots, l.plot.Y1+2, true)
	if l.steps != nil {
		strip(l.steps, l.plot.Y1+2+stripHeight, false)
	}
}

// stack has one panel's columns at its pixels: the x of each column's edge, and the stacked bytes of the categories.
type stack struct {
	x         []float64
	low, high []int64
	reserved  []int64
	parts     [][]int64 // bytes by column, then in stacking order
}

// columns maps a timeline's columns to pixels. If several columns share a pixel, the stack has the highest of their
// highs and the lowest of their lows.
func (l *timelineLayout) columns() stack {
	var st stack
	order := l.groups.stacking()
	for _, s := range l.slots {
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
	st.x = append(st.x, l.plot.X1)
	return st
}

// stacking returns a function that gives a column's bytes in the order of the legend: the categories with a colour,
// then all others together.
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

// drawAreas stacks the categories up to each column's highest value, in pale colours down to its lowest, and draws
// reserved above.
func (l *timelineLayout) drawAreas(c *canvas.Canvas) {
	st := l.columns()
	n := len(l.groups.major) + 1
	tops := make([][]float64, n)
	solid := make([][]float64, n)
	for i, parts := range st.parts {
		var sum int64
		for k, b := range parts {
			sum += b
			tops[k] = append(tops[k], l.y(sum))
			solid[k] = append(solid[k], l.y(min(sum, st.low[i])))
		}
	}
	fill := func(k int) canvas.Color {
		if k == len(l.groups.major) {
			return minorColor
		}
		return palette[l.groups.major[k]]
	}
	// Layers are drawn from the whole stack down to its lowest part: each layer covers the previous layer below its own
	// top. A part without bytes would be covered completely, so it is left out.
	layer := func(tops [][]float64, k int, fill canvas.Color) {
		if k == 0 || !slices.Equal(tops[k], tops[k-1]) {
			c.Area(st.x, tops[k], l.plot.Y1, fill)
		}
	}
	for k := n - 1; k >= 0; k-- {
		layer(tops, k, fill(k).Pale())
	}
	for k := n - 1; k >= 0; k-- {
		layer(solid, k, fill(k))
	}
	highest, atPeak := int64(0), int64(0) // highest allocated of all columns, and of the columns under the peak's mark
	for i, h := range st.high {
		highest = max(highest, h)
		if st.x[i] <= l.peakX+1 && l.peakX-1 <= st.x[i+1] {
			atPeak = max(atPeak, h)
		}
	}
	c.Shape("allocated at the peak of "+l.m.Label, canvas.Box{X0: l.peakX, Y0: l.y(atPeak), X1: l.peakX,
		Y1: l.plot.Y1}, l.plot)
	c.Shape("allocated of "+l.m.Label, canvas.Box{X0: st.x[0], Y0: l.y(highest), X1: st.x[len(st.x)-1], Y1: l.plot.Y1},
		l.plot)
	if st.reserved[0] < 0 {
		return
	}
	var reserved []float64
	for _, r := range st.reserved {
		reserved = append(reserved, l.y(r))
		highest = max(highest, r)
	}
	c.Steps(st.x, reserved, 1.2, ink)
	c.Shape("reserved of "+l.m.Label, canvas.Box{X0: st.x[0], Y0: l.y(highest), X1: st.x[len(st.x)-1], Y1: l.plot.Y1},
		l.plot)
}
