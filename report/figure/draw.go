package figure

import (
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// drawPanels draws titles, grids and axes.
func (l *layout) drawPanels(c *canvas.Canvas) {
	for i, p := range []*panel{&l.peak, &l.delta} {
		for k, line := range l.titles[i] {
			c.Text(line, p.left, margin+titleSize+float64(k)*titleSize*lineHeight, titleSize, canvas.Start, ink)
		}
	}
	l.drawAxis(c, &l.peak)
	if l.m.Baseline != "" {
		l.drawAxis(c, &l.delta)
	}
	if len(l.m.Rows) == 0 {
		c.Text("there is no run to draw", l.peak.left, l.tops[0]+barHeight/2, nameSize, canvas.Start, softInk)
	} else if l.peak.perByte == 0 {
		c.Text("no run has a peak to draw", l.peak.left, l.tops[len(l.tops)-1]+18, nameSize, canvas.Start, softInk)
	}
}

func (l *layout) drawPeak(c *canvas.Canvas, i int) {
	r, p := &l.m.Rows[i], &l.peak
	textY := l.middle(i) + valueSize*0.36
	if r.PeakBytes == nil {
		c.Text(canvas.Fit(r.Failure, valueSize, p.textRight-p.left-8), p.left+8, textY, valueSize, canvas.Start,
			softInk)
		return
	}
	end := p.x(*r.PeakBytes)
	if r.Breakdown == nil {
		b := l.bar(i, p.zero, end)
		c.Rect(b, unknownColor)
		if b.X1-b.X0 > 4 {
			c.Frame(b, 1, softInk)
		}
	} else {
		bytes := map[schemas.Category]int64{}
		for _, cat := range r.Breakdown.Categories {
			bytes[cat.Category] = cat.Bytes
		}
		var sum int64
		for _, s := range l.groups.segments(bytes) {
			l.drawSegment(c, p, i, s, sum, sum+s.bytes)
			sum += s.bytes
		}
		c.Shape("categories of "+r.Label, l.bar(i, p.zero, p.x(sum)), l.within(p))
	}
	c.Shape("peak of "+r.Label, l.bar(i, p.zero, end), l.within(p))
	c.Text(table.Size(*r.PeakBytes), end+6, textY, valueSize, canvas.Start, ink)
}

func (l *layout) drawOverhead(c *canvas.Canvas, i int) {
	r, p := &l.m.Rows[i], &l.delta
	textY := l.middle(i) + valueSize*0.36
	color := ink
	if r.Baseline || r.Overhead == nil || r.Overhead.PeakDeltaBytes == nil {
		color = softInk
	}
	c.Text(r.total(), p.textRight, textY, valueSize, canvas.End, color)
	if p.perByte == 0 || r.Overhead == nil || r.Overhead.PeakDeltaBytes == nil {
		return
	}
	low, high := r.extent()
	c.Shape("overhead of "+r.Label, l.bar(i, p.x(low), p.x(high)), l.within(p))
	if len(r.Overhead.Categories) == 0 {
		if d := *r.Overhead.PeakDeltaBytes; d != 0 {
			b := l.bar(i, min(p.zero, p.x(d)), max(p.zero, p.x(d)))
			c.Rect(b, unknownColor)
			c.Frame(b, 1, softInk)
		}
		return
	}
	bytes := map[schemas.Category]int64{}
	for _, cat := range r.Overhead.Categories {
		bytes[cat.Category] = cat.DeltaBytes
	}
	var down, up int64
	for _, s := range l.groups.segments(bytes) {
		if s.bytes < 0 {
			l.drawSegment(c, p, i, s, down+s.bytes, down)
			down += s.bytes
		} else {
			l.drawSegment(c, p, i, s, up, up+s.bytes)
			up += s.bytes
		}
	}
	if l.balanced(r) {
		x := p.x(*r.Overhead.PeakDeltaBytes)
		b := l.bar(i, x, x)
		c.Diamond(x, b.Y1+3, 4, ink)
	}
}

// balanced reports whether a row's overhead is drawn on both sides of zero: then the eye needs the sum.
func (l *layout) balanced(r *Row) bool {
	down, up := r.extent()
	return r.Overhead != nil && len(r.Overhead.Categories) > 0 && float64(-down)*l.delta.perByte >= 1 &&
		float64(up)*l.delta.perByte >= 1
}

// drawSegment fills a bar between two values. It writes the size inside if there is room.
func (l *layout) drawSegment(c *canvas.Canvas, p *panel, i int, s segment, from, to int64) {
	fill := minorColor
	if s.category != "" {
		fill = palette[s.category]
	}
	drawPart(c, l.bar(i, p.x(from), p.x(to)), fill, s.bytes, p.unit)
}
