package figure

import (
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/schemas"
)

func (b *band) draw(c *canvas.Canvas, g *grouping) {
	b.drawAxis(c, &b.panel)
	b.drawBaselines(c)
	for i := range b.runs {
		b.drawLabel(c, i, b.panel.left-10)
		b.drawPeak(c, i, g)
	}
	if b.panel.perByte == 0 {
		c.Text("no run has a peak to draw", b.panel.left, b.tops[len(b.tops)-1]+18, nameSize, canvas.Start, softInk)
	}
}

// drawBaselines draws a dashed line at the baseline's peak, behind the bars of the rows that share the baseline.
func (b *band) drawBaselines(c *canvas.Canvas) {
	const dash, pause = 4.0, 3.0
	for i := 0; i < len(b.runs); {
		over, next := b.runs[i].Over, i+1
		for next < len(b.runs) && over != nil && b.runs[next].Over != nil && *b.runs[next].Over == *over {
			next++
		}
		if over != nil && *over <= b.panel.high && next-i > 1 {
			x := b.panel.x(*over)
			for y := b.tops[i]; y < b.tops[next]; y += dash + pause {
				c.Line(x, y, x, min(y+dash, b.tops[next]), 1, ink)
			}
		}
		i = next
	}
}

func (b *band) drawPeak(c *canvas.Canvas, i int, g *grouping) {
	r, p := b.runs[i], &b.panel
	textY := b.middle(i) + valueSize*0.36
	if r.PeakBytes == nil {
		c.Text(canvas.Fit(r.Failure, valueSize, p.textRight-p.left-8), p.left+8, textY, valueSize, canvas.Start,
			softInk)
		return
	}
	end := p.x(*r.PeakBytes)
	if r.Breakdown == nil {
		bar := b.bar(i, p.zero, end)
		c.Rect(bar, unknownColor)
		if bar.X1-bar.X0 > 4 {
			c.Frame(bar, 1, softInk)
		}
	} else {
		bytes := map[schemas.Category]int64{}
		for _, cat := range r.Breakdown.Categories {
			bytes[cat.Category] = cat.Bytes
		}
		var sum int64
		for _, s := range g.segments(bytes) {
			fill := minorColor
			if s.category != "" {
				fill = palette[s.category]
			}
			drawPart(c, b.bar(i, p.x(sum), p.x(sum+s.bytes)), fill, s.bytes, p.unit)
			sum += s.bytes
		}
		c.Shape("categories of "+r.Label, b.bar(i, p.zero, p.x(sum)), b.within(p))
	}
	c.Shape("peak of "+r.Label, b.bar(i, p.zero, end), b.within(p))
	total, change := b.total(r), r.change()
	if r.Over != nil { // the dashed line must not cross the text
		wide := canvas.Measure(total, valueSize) + changeGap + canvas.Measure(change, valueSize) + 6
		if x := p.x(*r.Over); *r.Over <= p.high && x > end-2 && x < end+wide {
			end = x
		}
	}
	c.Text(total, end+6, textY, valueSize, canvas.Start, ink)
	c.Text(change, end+6+canvas.Measure(total, valueSize)+changeGap, textY, valueSize, canvas.Start, softInk)
}
