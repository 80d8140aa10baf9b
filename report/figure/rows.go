package figure

import (
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/schemas/units"
)

// rows are the rows of a picture with bars: their labels and their places.
type rows struct {
	labels []rowLabel
	tops   []float64 // top of each row, and the bottom of the last
	under  float64   // the height of the text under each bar
}

type rowLabel struct{ name, badge []string }

func (r rowLabel) height() float64 {
	return float64(len(r.name))*nameSize*lineHeight + float64(len(r.badge))*badgeSize*lineHeight
}

// label wraps the label of the next row, for run n, and returns the width of its widest line.
func (r *rows) label(n int, label, badge string) float64 {
	rl := rowLabel{canvas.Wrap(numbered(n, label), nameSize, maxLabel, 3), canvas.Wrap(badge, badgeSize, maxLabel, 2)}
	widest := 0.0
	for _, s := range rl.name {
		widest = max(widest, canvas.Measure(s, nameSize))
	}
	for _, s := range rl.badge {
		widest = max(widest, canvas.Measure(s, badgeSize))
	}
	r.labels = append(r.labels, rl)
	return widest
}

// place gives each label a row, from y down and at least least high, and returns the y below the rows.
func (r *rows) place(y, least float64) float64 {
	for _, l := range r.labels {
		r.tops = append(r.tops, y)
		y += max(least+r.under, l.height()+10)
	}
	if len(r.labels) == 0 {
		y += barHeight
	}
	r.tops = append(r.tops, y)
	return y
}

// middle returns the vertical centre of a row.
func (r *rows) middle(i int) float64 { return (r.tops[i] + r.tops[i+1]) / 2 }

// within returns the box in which a panel's bars must stay.
func (r *rows) within(p *panel) canvas.Box {
	return canvas.Box{X0: p.left, Y0: r.tops[0], X1: p.right, Y1: r.tops[len(r.tops)-1]}
}

// bar returns the box of a bar of row i between two x. If there is text under the bar, the bar and the text together
// are centred in the row.
func (r *rows) bar(i int, x0, x1 float64) canvas.Box {
	y := r.middle(i) - r.under/2
	return canvas.Box{X0: x0, Y0: y - barHeight/2, X1: x1, Y1: y + barHeight/2}
}

// drawLabel writes a row's label beside its bar.
func (r *rows) drawLabel(c *canvas.Canvas, i int, right float64) {
	label := r.labels[i]
	y := max(r.tops[i]+2, r.middle(i)-r.under/2-label.height()/2)
	for _, s := range label.name {
		c.Text(s, right, y+nameSize*0.95, nameSize, canvas.End, ink)
		y += nameSize * lineHeight
	}
	for _, s := range label.badge {
		c.Text(s, right, y+badgeSize*0.95, badgeSize, canvas.End, softInk)
		y += badgeSize * lineHeight
	}
}

func (r *rows) drawAxis(c *canvas.Canvas, p *panel) {
	if p.perByte == 0 {
		return
	}
	top, bottom := r.tops[0], r.tops[len(r.tops)-1]
	baseline := bottom + 4 + valueSize
	c.Text(p.unit.name, p.textRight, baseline, valueSize, canvas.End, softInk)
	free := p.textRight - canvas.Measure(p.unit.name, valueSize) - 6
	last := -1e9
	for _, v := range p.ticks(5) {
		x := p.zero + v*p.unit.bytes*p.perByte
		c.Line(x, top, x, bottom, 1, gridColor)
		text := tickText(v)
		half := canvas.Measure(text, valueSize) / 2
		if x-half < last+8 || x+half > free {
			continue
		}
		c.Text(text, x, baseline, valueSize, canvas.Middle, softInk)
		last = x + half
	}
	c.Line(p.zero, top, p.zero, bottom, 1.5, ink)
}

// drawPart fills a part of a bar. If there is room, it writes the part's size into it, shortened if necessary.
func drawPart(c *canvas.Canvas, b canvas.Box, fill canvas.Color, bytes int64, u unit) {
	c.Rect(b, fill)
	if b.X1-b.X0 > 3 { // a thin gap between neighbouring parts lies inside the part, so bars keep their ends
		c.Rect(canvas.Box{X0: b.X0, Y0: b.Y0, X1: b.X0 + 0.5, Y1: b.Y1}, paper)
	}
	const room = 2
	for _, digits := range []int{2, 1, 0} {
		v := float64(max(bytes, -bytes)) / u.bytes
		text := units.Fixed(v, digits)
		if v < 10 && digits == 0 || canvas.Measure(text, insideSize)+room > b.X1-b.X0 {
			continue
		}
		c.Text(text, (b.X0+b.X1)/2, (b.Y0+b.Y1)/2+insideSize*0.36, insideSize, canvas.Middle, inkOn(fill))
		return
	}
}
