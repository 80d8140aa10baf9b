package figure

import (
	"github.com/dpsight/dpsight/report/canvas"
)

func (m *Tradeoff) draw(svg bool) (*canvas.Canvas, error) {
	l := m.layout()
	c, err := canvas.New(l.width, l.height, svg)
	if err != nil {
		return nil, err
	}
	c.Text("Peak memory against "+m.Cost, margin, margin+titleSize, titleSize, canvas.Start, ink)
	l.legend.draw(c)
	for _, p := range l.panels {
		p.drawAxes(c)
		if p.title != "" {
			c.Text(p.title, p.plot.X0, p.plot.Y0-6, nameSize, canvas.Start, ink)
		}
		for _, i := range p.points {
			l.drawPoint(c, p, &m.Points[i])
		}
		for _, t := range p.labels {
			c.Text(t.text, t.x, t.y, nameSize, canvas.Start, ink)
		}
	}
	return c, nil
}

const (
	leadColor  canvas.Color = 0xb0b0b0
	pointColor canvas.Color = 0x204d8b
	errorColor canvas.Color = 0x5b9bd5
)

func (l *tradePlot) drawAxes(c *canvas.Canvas) {
	for _, v := range l.y.ticks(6) {
		y := l.y.at(v * l.y.unit.bytes)
		c.Line(l.plot.X0, y, l.plot.X1, y, 1, gridColor)
		if !l.bare {
			c.Text(tickText(v)+" "+l.y.unit.name, l.plot.X0-6-l.awayX, y+valueSize*0.36, valueSize, canvas.End, softInk)
		}
	}
	last := -1e9
	for _, v := range l.x.ticks(6) {
		x := l.x.at(v)
		c.Line(x, l.plot.Y0, x, l.plot.Y1, 1, gridColor)
		text := tickText(v)
		half := canvas.Measure(text, valueSize) / 2
		if x-half < max(last+8, l.plot.X0-10) || x+half > l.right {
			continue
		}
		c.Text(text, x, l.plot.Y1+valueSize+5+l.awayY, valueSize, canvas.Middle, softInk)
		last = x + half
	}
	if l.cost != "" {
		c.Text(l.cost, (l.plot.X0+l.plot.X1)/2, l.plot.Y1+2*valueSize+12+l.awayY, valueSize, canvas.Middle, softInk)
	}
	c.Line(l.plot.X0, l.plot.Y1, l.plot.X1, l.plot.Y1, 1.5, ink)
	c.Line(l.plot.X0, l.plot.Y0, l.plot.X0, l.plot.Y1, 1.5, ink)
}

func (l *tradeoffLayout) drawPoint(c *canvas.Canvas, in *tradePanel, p *Point) {
	x, y, bars := l.geometry(in, p)
	box := canvas.Box{X0: x, Y0: y, X1: x, Y1: y}
	for _, b := range bars {
		c.Rect(b, errorColor)
		if b.X1-b.X0 > b.Y1-b.Y0 {
			c.Line(b.X0, y-4, b.X0, y+4, 1.2, errorColor)
			c.Line(b.X1, y-4, b.X1, y+4, 1.2, errorColor)
			box.X0, box.X1 = min(box.X0, b.X0), max(box.X1, b.X1)
		} else {
			c.Line(x-4, b.Y0, x+4, b.Y0, 1.2, errorColor)
			c.Line(x-4, b.Y1, x+4, b.Y1, 1.2, errorColor)
			box.Y0, box.Y1 = min(box.Y0, b.Y0), max(box.Y1, b.Y1)
		}
	}
	c.Diamond(x, y, pointRadius, pointColor)
	if p.Baseline {
		c.Diamond(x, y, pointRadius-2, paper)
	}
	c.Shape("point of "+p.Label, box, in.plot)
}
