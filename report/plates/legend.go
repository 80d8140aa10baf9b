package plates

// An entry is one colour of a legend.
type entry struct {
	name   string
	colour colour
}

const swatch = 0.85 // width of a legend's colour field, in multiples of the size of values

// MostLegendRows is the most rows of a legend. Keys for which these rows have no room get no entry.
const MostLegendRows = 3

// legend lays entries out in rows, from the left edge at x0 to the right edge at x1, and reports their height. legend
// draws nothing: the caller calls draw once y is known.
func (d *Drawing) legend(entries []entry, x0, x1 float64) (height float64, draw func(y float64)) {
	if len(entries) == 0 {
		return 0, func(float64) {}
	}
	at, rows := d.legendPlaces(entries, x1-x0)
	size := d.style.Value
	row := 1.3 * size
	return float64(rows) * row, func(y float64) {
		for i, e := range entries {
			x, middle := x0+at[i].x, y+at[i].y*row+row/2
			side := swatch * size
			d.rect(box{x, middle - 0.36*size, x + side, middle + 0.36*size}, e.colour, false)
			l := d.val(e.name)
			l.dx = side + 0.35*size
			l.text = fit(l, x1-x-l.dx)
			d.beside(l, point{x, middle})
		}
	}
}

// legendPlaces returns the places of entries within a width: their distance from the left, and their row. Entries stand
// in columns, or directly after one another if that takes fewer rows.
func (d *Drawing) legendPlaces(entries []entry, width float64) (at []point, rows int) {
	gap := 1.2 * d.style.Value
	n := len(entries)
	for ; n > 1; n-- {
		total := -gap // there is no gap after the last entry
		for _, w := range d.legendColumns(entries, n) {
			total += w
		}
		if total <= width {
			break
		}
	}
	n = max(n, 1)
	inColumns := (len(entries) + n - 1) / n
	row, x := 0, 0.0
	for _, e := range entries {
		w := d.legendWidth(e)
		if x > 0 && x+w-gap > width {
			row, x = row+1, 0
		}
		at = append(at, point{x, float64(row)})
		x += w
	}
	if row+1 < inColumns {
		return at, row + 1
	}
	n = (len(entries) + inColumns - 1) / inColumns // avoids a row with one entry among fuller rows
	columns := d.legendColumns(entries, n)
	for i := range entries {
		at[i] = point{0, float64(i / n)}
		for _, w := range columns[:i%n] {
			at[i].x += w
		}
	}
	return at, inColumns
}

// legendWidth returns the width of an entry and of the gap after it.
func (d *Drawing) legendWidth(e entry) float64 {
	return (swatch+0.35+1.2)*d.style.Value + wide(d.val(e.name))
}

func (d *Drawing) legendColumns(entries []entry, n int) []float64 {
	out := make([]float64, n)
	for i, e := range entries {
		out[i%n] = max(out[i%n], d.legendWidth(e))
	}
	return out
}
