package figure

import (
	"strings"

	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
)

func (m *CategoryTimeline) draw(svg bool) (*canvas.Canvas, error) {
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
			l.drawMaxima(c, p, &l.extra[i])
			l.drawList(c, p, &l.extra[i])
		}
	}
	if len(m.Rows) == 0 {
		c.Text("there is no run to draw", margin, l.axisY-8, nameSize, canvas.Start, softInk)
	}
	l.legend.draw(c)
	return c, nil
}

// drawMaxima marks each category's maximum, and the peak.
func (l *categoryLayout) drawMaxima(c *canvas.Canvas, p *timePanel, x *categoryPanel) {
	for _, k := range x.maxima {
		c.Line(k.x, p.plot.Y0-1, k.x, k.y, 0.6, softInk)
	}
	for _, g := range x.letters {
		c.Text(g.text, g.x, p.plot.Y0-4, letterSize, canvas.Middle, ink)
	}
	c.Diamond(p.peakX, p.peakY, 6.5, ink) // shows around a maximum at the same place
	c.Shape("peak of "+p.row.Label, canvas.Box{X0: p.peakX, Y0: p.peakY, X1: p.peakX, Y1: p.peakY}, p.plot)
	for _, k := range x.maxima {
		c.Diamond(k.x, k.y, 4.5, ink)
		c.Diamond(k.x, k.y, 3.2, k.fill)
		c.Shape("maximum of "+k.name+" of "+p.row.Label, canvas.Box{X0: k.x, Y0: k.y, X1: k.x, Y1: k.y}, p.plot)
	}
}

// drawList says beside the plot how much each category counts at most, and at the peak.
func (l *categoryLayout) drawList(c *canvas.Canvas, p *timePanel, x *categoryPanel) {
	y := p.plot.Y0 + insideSize*0.95
	text := func(s string, from, to float64, anchor canvas.Anchor, color canvas.Color) {
		at := from
		if anchor == canvas.End {
			at = to
		}
		c.Text(canvas.Fit(s, insideSize, to-from-2), x.left+at, y, insideSize, anchor, color)
	}
	text("own maximum", listName-30, listMost, canvas.End, softInk)
	text("at the peak", listMost, listAtPeak, canvas.End, softInk)
	text("first reached in", listAtPeak+12, listWidth, canvas.Start, softInk)
	for _, k := range x.maxima {
		y += insideSize * lineHeight
		c.Text(k.letter, x.left, y, insideSize, canvas.Start, ink)
		b := canvas.Box{X0: x.left + listLetter, Y0: y - 8, X1: x.left + listLetter + 9, Y1: y + 1}
		c.Rect(b, k.fill)
		text(k.name, listLetter+swatch+3, listName, canvas.Start, ink)
		text(k.most, listName, listMost, canvas.End, ink)
		text(k.atPeak, listMost, listAtPeak, canvas.End, ink)
		text(k.when, listAtPeak+12, listWidth, canvas.Start, ink)
	}
	y += insideSize * lineHeight
	t := p.row.Timeline
	c.Diamond(x.left+listLetter+4.5, y-3.5, 4, ink)
	text("allocated", listLetter+swatch+3, listName, canvas.Start, ink)
	text(table.Size(t.PeakBytes), listName, listMost, canvas.End, ink)
	text(table.Size(t.PeakBytes), listMost, listAtPeak, canvas.End, ink)
	text(l.m.when(&t.Peak), listAtPeak+12, listWidth, canvas.Start, ink)
	if x.foot != "" {
		y += insideSize * lineHeight
		text(x.foot, 0, listWidth, canvas.Start, ink)
	}
}

func (m *CategoryTimeline) describe() string {
	var b strings.Builder
	for i := range m.Rows {
		r := &m.Rows[i]
		b.WriteString(r.Label)
		if r.Badge != "" {
			b.WriteString(" [" + r.Badge + "]")
		}
		if r.Timeline == nil {
			b.WriteString(": " + r.Failure + ". ")
			continue
		}
		b.WriteString(": peak " + table.Size(r.Timeline.PeakBytes))
		for _, c := range m.maxima(r) {
			if c.MaxBytes > 0 {
				b.WriteString(", " + words(c.Category) + " at most " + table.Size(c.MaxBytes) + " in " + m.when(&c.At))
			}
		}
		b.WriteString(". ")
	}
	return strings.TrimSpace(b.String())
}
