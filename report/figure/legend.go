package figure

import (
	"github.com/dpsight/dpsight/report/canvas"
)

const swatch = 12.0

type legendItem struct {
	label string
	fill  canvas.Color
	frame bool
}

// layLegend fills columns of equal width and returns the y below the last row.
func (l *layout) layLegend(top float64) float64 {
	for _, c := range l.groups.major {
		l.legend = append(l.legend, legendItem{words(c), palette[c], false})
	}
	if len(l.groups.minor) > 0 {
		l.legend = append(l.legend, legendItem{minorLabel, minorColor, false})
	}
	if l.groups.unknown {
		l.legend = append(l.legend, legendItem{"not broken down", unknownColor, true})
	}
	if len(l.legend) == 0 {
		return top
	}
	for _, it := range l.legend {
		l.legendColumn = max(l.legendColumn, swatch+6+canvas.Measure(it.label, valueSize)+20)
	}
	l.legendColumns = max(1, int((l.width-2*margin)/l.legendColumn))
	rows := (len(l.legend) + l.legendColumns - 1) / l.legendColumns
	return top + float64(rows)*18 + 4
}

func (l *layout) drawLegend(c *canvas.Canvas) {
	for k, it := range l.legend {
		x := margin + float64(k%l.legendColumns)*l.legendColumn
		y := l.legendTop + float64(k/l.legendColumns)*18
		b := canvas.Box{X0: x, Y0: y + 2, X1: x + swatch, Y1: y + 2 + swatch}
		c.Rect(b, it.fill)
		if it.frame {
			c.Frame(b, 1, softInk)
		}
		c.Text(it.label, x+swatch+6, y+swatch, valueSize, canvas.Start, ink)
	}
	for k, n := range l.notes {
		c.Text(n, margin, l.notesTop+noteSize+float64(k)*noteSize*1.35, noteSize, canvas.Start, softInk)
	}
}
