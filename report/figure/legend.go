package figure

import (
	"github.com/dpsight/dpsight/report/canvas"
)

const swatch = 12.0

type legendItem struct {
	label string
	fill  canvas.Color
	frame bool
	line  bool // the entry is a line, not an area
}

// legend is the text below a picture: colours with their meaning, and notes.
type legend struct {
	items    []legendItem
	top      float64
	columns  []float64 // left ends of the columns
	notes    []string
	notesTop float64
}

// layLegend places the items in as many columns as fit, wraps the notes below them, and returns the y of the bottom.
func layLegend(items []legendItem, notes []string, top, width float64) (legend, float64) {
	l := legend{items: items, top: top}
	y := top
	if len(items) > 0 {
		l.columns = legendColumns(items, width-2*margin)
		y += float64((len(items)+len(l.columns)-1)/len(l.columns))*18 + 4
	}
	for _, n := range notes {
		l.notes = append(l.notes, canvas.Wrap(n, noteSize, width-2*margin, 0)...)
	}
	l.notesTop = y + 4
	if len(l.notes) > 0 {
		y = l.notesTop + float64(len(l.notes))*noteSize*1.35
	}
	return l, y
}

// legendColumns returns the left ends of as many columns as fit into the width, at least one.
func legendColumns(items []legendItem, width float64) []float64 {
	for n := len(items); n > 1; n-- {
		wide := make([]float64, n)
		for k, it := range items {
			wide[k%n] = max(wide[k%n], swatch+6+canvas.Measure(it.label, valueSize)+20)
		}
		x, ends := margin, make([]float64, n)
		for k, w := range wide {
			ends[k] = x
			x += w
		}
		if x-margin <= width {
			return ends
		}
	}
	return []float64{margin}
}

func (l *legend) draw(c *canvas.Canvas) {
	for k, it := range l.items {
		x := l.columns[k%len(l.columns)]
		y := l.top + float64(k/len(l.columns))*18
		b := canvas.Box{X0: x, Y0: y + 2, X1: x + swatch, Y1: y + 2 + swatch}
		if it.line {
			c.Line(b.X0, (b.Y0+b.Y1)/2, b.X1, (b.Y0+b.Y1)/2, 1.5, it.fill)
		} else {
			c.Rect(b, it.fill)
		}
		if it.frame {
			c.Frame(b, 1, softInk)
		}
		c.Text(it.label, x+swatch+6, y+swatch, valueSize, canvas.Start, ink)
	}
	for k, n := range l.notes {
		c.Text(n, margin, l.notesTop+noteSize+float64(k)*noteSize*1.35, noteSize, canvas.Start, softInk)
	}
}

// legend lists the categories that have a colour of their own, and the small categories as one item.
func (g *grouping) legend() []legendItem {
	var items []legendItem
	for _, c := range g.major {
		items = append(items, legendItem{label: words(c), fill: palette[c]})
	}
	if len(g.minor) > 0 {
		items = append(items, legendItem{label: minorLabel, fill: minorColor})
	}
	if g.unknown {
		items = append(items, legendItem{label: "not broken down", fill: unknownColor, frame: true})
	}
	return items
}

// minorNote names the categories that have no colour of their own.
func (g *grouping) minorNote() []string {
	if len(g.minor) == 0 {
		return nil
	}
	text := minorLabel + ": "
	for i, c := range g.minor {
		if i > 0 {
			text += ", "
		}
		text += words(c)
	}
	return []string{text}
}

// missingNote explains the boxes in labels whose characters the font lacks.
func missingNote(labels []string) []string {
	for _, l := range labels {
		if canvas.Lacks(l) {
			return []string{string(canvas.Missing) + ": a character that the figure's font lacks; #n is the run's " +
				"place in tables/methods.md"}
		}
	}
	return nil
}
