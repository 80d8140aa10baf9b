package figure

import (
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/canvas"
)

// growthGap is how far the text lies from the line, in logical pixels.
const growthGap = 6.0

// showsGrowth reports whether both ends of a run's growth are within what the picture shows.
func (m *MemoryTimeline) showsGrowth(r *TimelineRow) bool {
	if r.Growth == nil {
		return false
	}
	var first, last bool
	within := func(s *timeline.TimelineSegment, event int64) bool {
		return s.BeginSeq < max(event, 1) && event <= s.EndSeq
	}
	for _, s := range m.shown(r) {
		first, last = first || within(s, r.Growth.First.Event), last || within(s, r.Growth.Last.Event)
	}
	return first && last
}

// drawGrowth draws a line from the lowest allocated of the first growing step to the lowest of the last. It writes
// the slope above and left of the middle or, without room there, below and right of it: a rising line touches
// neither place.
func (l *timelineLayout) drawGrowth(c *canvas.Canvas, p *timePanel) {
	if !l.m.showsGrowth(p.row) {
		return
	}
	g := p.row.Growth
	x0, y0, x1, y1 := p.eventX(g.First.Event), p.y(g.First.Bytes), p.eventX(g.Last.Event), p.y(g.Last.Bytes)
	c.Segment(x0, y0, x1, y1, 2, ink)
	c.Shape("growth of "+p.row.Label, canvas.Box{X0: x0, Y0: y1, X1: x1, Y1: y0}, p.plot)
	width := canvas.Measure(p.row.Rate, insideSize)
	left, base := (x0+x1)/2-growthGap-width, (y0+y1)/2-growthGap
	if left < p.plot.X0 || base-insideSize < p.plot.Y0 {
		left, base = (x0+x1)/2+growthGap, (y0+y1)/2+growthGap+insideSize
	}
	c.Rect(canvas.Box{X0: left - 3, Y0: base - insideSize, X1: left + width + 3, Y1: base + 4}, 0xffffff)
	c.Text(p.row.Rate, left, base, insideSize, canvas.Start, ink)
}

// growthNote explains the line if one is drawn.
func (m *MemoryTimeline) growthNote() []string {
	for i := range m.Rows {
		if m.showsGrowth(&m.Rows[i]) {
			return []string{"slanting line: growth, from the lowest allocated of the first step (or pass) to the lowest of " +
				"the last"}
		}
	}
	return nil
}
