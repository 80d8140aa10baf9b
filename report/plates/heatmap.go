package plates

import (
	"fmt"
	"math"

	"github.com/dpsight/dpsight/report/canvas"
)

// A Cell is a value of a heat map.
type Cell struct {
	Value float64
	State State // state of the cell; NotRun means an empty cell
}

// Heatmap shows a value for each combination of a row and a column, such as methods and swept values, or roles of
// modules and operations.
type Heatmap struct {
	Rows     []string
	Columns  []string
	Column   string // title of the columns, such as "Sequence length (tokens)"; "" for none
	Cells    [][]Cell
	Quantity Quantity
	Most     float64 // the largest value in all figures of a paper with this unit; 0 if the cells determine it
}

// MostRows and MostColumns are the most that a heat map has. A narrow place has room for fewer columns.
const (
	MostRows    = 40
	MostColumns = 24
)

// ramp returns the colour for a part of the largest value, from pale to dark.
func ramp(part float64) colour {
	percent := int(math.Round(max(0, min(1, part)) * 100))
	from, to, p := rampPale, rampMiddle, 2*percent
	if percent > 50 {
		from, to, p = rampMiddle, rampDark, 2*percent-100
	}
	var c canvas.Color
	for _, shift := range []uint{16, 8, 0} {
		a, b := float64(from.light>>shift&0xff), float64(to.light>>shift&0xff)
		c |= canvas.Color(math.Round(a+(b-a)*float64(p)/100)) << shift
	}
	return both(fmt.Sprintf("%s!%d!%s", to.name, p, from.name), c)
}

// Draw draws the figure.
func (f Heatmap) Draw(s Style) (*Drawing, error) {
	d := newDrawing(s)
	most := f.most()
	if most == 0 && !f.any(OOM) || len(f.Rows) == 0 || len(f.Columns) == 0 {
		return nil, ErrEmpty
	}
	of := f.unit()

	left := 0.0
	labels := make([][]string, len(f.Rows))
	for i, r := range f.Rows {
		labels[i] = wrapped(r)
		for _, l := range labels[i] {
			left = max(left, wide(d.lab(l))+3.5)
		}
	}
	least := 0.0 // width of a column: its widest value
	for i := range f.Rows {
		for k := range f.Columns {
			l := d.val(f.text(of, i, k))
			l.bold = f.cell(i, k).State == OOM
			least = max(least, wide(l)+4)
		}
	}
	columns := min(len(f.Columns), MostColumns, max(1, int((s.Width-left)/least)))
	d.LeftOut = append(d.LeftOut, f.Columns[columns:]...)
	each := (s.Width - left) / float64(columns)
	if widest := Centimetres(4) * s.Label / 7; each > widest { // in a wide place, cells stay near their rows' names
		each = widest
		left = (s.Width - each*float64(columns) + left) / 2
	}
	heads := make([][]string, columns)
	headLines := 1
	for k := range columns {
		heads[k] = d.narrow(f.Columns[k], each-1)
		headLines = max(headLines, len(heads[k]))
	}
	under := 3 + float64(headLines)*s.line() + 0.3*s.Label
	if f.Column != "" {
		under += 1.3 * s.Label
	}
	step := 1.85 * s.Label
	for _, l := range labels {
		if len(l) > 1 {
			step = max(step, 2*s.line()+1.5)
		}
	}
	rows := min(len(f.Rows), MostRows)
	if s.slide() {
		step = max(min(step, (s.Height-under)/float64(rows)), 1.35*s.Label)
		for _, l := range labels {
			if len(l) > 1 {
				step = max(step, 2*s.line()+1.5)
			}
		}
		rows = max(1, min(rows, int((s.Height-under)/step)))
	}
	d.LeftOut = append(d.LeftOut, f.Rows[rows:]...)
	a := &axes{x1: float64(columns), y0: float64(rows)}
	a.box = box{left, 0, left + each*a.x1, step * a.y0}
	d.open(a)
	for i := range rows {
		for k, part := range labels[i] {
			l := d.lab(part)
			l.anchor, l.dx = end, -3
			l.dy = (float64(k) - float64(len(labels[i])-1)/2) * s.line()
			d.beside(l, point{left, a.y(float64(i) + 0.5)})
		}
		for k := range columns {
			f.draw(d, a, of, most, i, k)
		}
	}
	for k, head := range heads {
		for n, part := range head {
			l := d.lab(part)
			l.anchor, l.dy = middle, 3+ascent*s.Label+float64(n)*s.line()
			d.write(l, point{a.x(float64(k) + 0.5), a.box.y1})
		}
	}
	if f.Column != "" {
		l := d.lab(fit(d.lab(f.Column), s.Width))
		l.anchor = middle
		x := max(min((a.box.x0+a.box.x1)/2, s.Width-wide(l)/2), wide(l)/2)
		d.write(l, point{x, a.box.y1 + under - 0.4*s.Label})
	}
	d.open(nil)
	d.height = a.box.y1 + under
	return d, nil
}

// most returns the largest value of the cells.
func (f Heatmap) most() (most float64) {
	for _, row := range f.Cells {
		for _, c := range row {
			if plotted(c.State) {
				most = max(most, math.Abs(c.Value))
			}
		}
	}
	return most
}

// unit returns the unit of the printed values, with one digit more if no value reaches 1.
func (f Heatmap) unit() unit {
	most := f.most()
	of := f.Quantity.unitOf(max(most, f.Most))
	if most < of.size {
		of.digits++
	}
	return of
}

// Unit returns the name of the printed values' unit. A caption has to name it, since the figure has no axis for the
// values.
func (f Heatmap) Unit() string { return f.unit().name }

// narrow wraps a heading to at most three lines of a width.
func (d *Drawing) narrow(s string, width float64) (out []string) {
	s = Short(s)
	if wide(d.lab(s)) <= width {
		return []string{s}
	}
	line := ""
	for _, word := range splitAfter(s) {
		if line != "" && wide(d.lab(line+word)) > width {
			out = append(out, line)
			line = ""
		}
		line += word
	}
	out = append(out, line)
	if len(out) > 3 {
		out = append(out[:2], out[2]+"…")
	}
	for i, l := range out {
		out[i] = fit(d.lab(l), width)
	}
	return out
}

// splitAfter divides a text after its spaces and hyphens.
func splitAfter(s string) (out []string) {
	from := 0
	for i, r := range s {
		if r == ' ' || r == '-' || r == '…' {
			out = append(out, s[from:i+len(string(r))])
			from = i + len(string(r))
		}
	}
	return append(out, s[from:])
}

func (f Heatmap) any(s State) bool {
	for _, row := range f.Cells {
		for _, c := range row {
			if c.State == s {
				return true
			}
		}
	}
	return false
}

func (f Heatmap) cell(i, k int) Cell {
	if i < len(f.Cells) && k < len(f.Cells[i]) {
		return f.Cells[i][k]
	}
	return Cell{State: NotRun}
}

func (f Heatmap) text(of unit, i, k int) string {
	c := f.cell(i, k)
	switch c.State {
	case OOM:
		return "OOM"
	case Failed:
		return "failed"
	case NotRun:
		return ""
	case Predicted:
		return "~" + of.in(c.Value)
	case Bounded:
		return "≥\u2009" + of.in(c.Value)
	case Measured:
	}
	return of.in(c.Value)
}

func (f Heatmap) draw(d *Drawing, a *axes, of unit, most float64, i, k int) {
	const gap = 0.4
	b := box{a.x(float64(k)) + gap, a.y(float64(i)) + gap, a.x(float64(k+1)) - gap, a.y(float64(i+1)) - gap}
	c := f.cell(i, k)
	l := d.val(f.text(of, i, k))
	l.anchor = middle
	at := point{(b.x0 + b.x1) / 2, (b.y0 + b.y1) / 2}
	switch c.State {
	case OOM:
		d.hatch(b, soft)
		l.bold = true
		w := wide(l)/2 + 1.5
		d.rect(box{max(at.x-w, b.x0), at.y - 0.55*l.size, min(at.x+w, b.x1), at.y + 0.55*l.size}, page, false)
	case Failed:
		l.colour = soft
	case NotRun:
		return
	case Measured, Predicted, Bounded:
		fill := ramp(math.Abs(c.Value) / most)
		d.rect(b, fill, false)
		l.colour, l.slant = inkOn(fill), c.State == Predicted
	}
	d.beside(l, at)
}
