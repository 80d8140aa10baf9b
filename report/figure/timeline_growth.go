package figure

import (
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/canvas"
)

// growthGap is the distance between the growth line and its text, in logical pixels.
const growthGap = 6.0

// showsGrowth reports whether the picture shows both ends of the run's growth.
func (m *Timeline) showsGrowth() bool {
	if m.Growth == nil {
		return false
	}
	var first, last bool
	within := func(s *timeline.TimelineSegment, event int64) bool {
		return s.BeginSeq < max(event, 1) && event <= s.EndSeq
	}
	for _, s := range m.shown() {
		first, last = first || within(s, m.Growth.First.Event), last || within(s, m.Growth.Last.Event)
	}
	return first && last
}

// drawGrowth draws a line from the lowest allocated of the first growing step to the lowest of the last. drawGrowth
// writes the slope to the upper left of the line's middle or, without room there, to the lower right: a rising line
// passes through neither place.
func (l *timelineLayout) drawGrowth(c *canvas.Canvas) {
	if !l.m.showsGrowth() {
		return
	}
	g := l.m.Growth
	x0, y0, x1, y1 := l.eventX(g.First.Event), l.y(g.First.Bytes), l.eventX(g.Last.Event), l.y(g.Last.Bytes)
	c.Segment(x0, y0, x1, y1, 2, ink)
	c.Shape("growth of "+l.m.Label, canvas.Box{X0: x0, Y0: y1, X1: x1, Y1: y0}, l.plot)
	width := canvas.Measure(l.m.Rate, insideSize)
	left, base := (x0+x1)/2-growthGap-width, (y0+y1)/2-growthGap
	if left < l.plot.X0 || base-insideSize < l.plot.Y0 {
		left, base = (x0+x1)/2+growthGap, (y0+y1)/2+growthGap+insideSize
	}
	c.Rect(canvas.Box{X0: left - 3, Y0: base - insideSize, X1: left + width + 3, Y1: base + 4}, 0xffffff)
	c.Text(l.m.Rate, left, base, insideSize, canvas.Start, ink)
}

// growthNote explains the growth line if it is drawn.
func (m *Timeline) growthNote() []string {
	if !m.showsGrowth() {
		return nil
	}
	return []string{"slanting line: growth, from the lowest allocated of the first step (or pass) to the lowest of " +
		"the last"}
}
