package plates

// An entry is one colour of a legend.
type entry struct {
	name   string
	colour colour
}

const swatch = 0.85 // of a legend's swatch, in multiples of the size of values

// legend lays entries out in rows, in columns of equal order, from the left edge at x to the right edge at x1, and
// reports their height. Nothing is drawn until y is known: draw does it.
func (d *Drawing) legend(entries []entry, x0, x1 float64) (height float64, draw func(y float64)) {
	if len(entries) == 0 {
		return 0, func(float64) {}
	}
	size := d.style.Value
	var columns []float64
	best := 1
	for n := len(entries); n >= 1; n-- {
		columns = columnsOf(d, entries, n)
		total := -1.2 * size // no gap after the last
		for _, w := range columns {
			total += w
		}
		if total <= x1-x0 || n == 1 {
			best = n
			break
		}
	}
	rows := (len(entries) + best - 1) / best
	best = (len(entries) + rows - 1) / rows // no row of one beside rows of many
	columns = columnsOf(d, entries, best)
	row := 1.3 * size
	return float64(rows) * row, func(y float64) {
		for i, e := range entries {
			x := x0
			for _, w := range columns[:i%best] {
				x += w
			}
			at := y + float64(i/best)*row + row/2
			side := swatch * size
			d.rect(box{x, at - 0.36*size, x + side, at + 0.36*size}, e.colour, false)
			l := d.val(e.name)
			l.dx = side + 0.35*size
			d.beside(l, point{x, at})
		}
	}
}

func columnsOf(d *Drawing, entries []entry, n int) []float64 {
	size := d.style.Value
	out := make([]float64, n)
	for i, e := range entries {
		out[i%n] = max(out[i%n], swatch*size+0.35*size+wide(d.val(e.name))+1.2*size)
	}
	return out
}
