package paper

import (
	"fmt"
	"strings"
)

// Sizes in points of 1/72.27 inch, which TeX calls pt.
const (
	pointsPerCM  = 72.27 / 2.54
	footnoteType = 8.0
	smallType    = 9.0
)

// fits reports whether the table's natural width is at most the width of its place in the document.
func (g *Grid) fits(widths Widths) bool {
	size, gap, place := footnoteType, 2.0, widths.Column
	if g.Wide {
		size, gap, place = smallType, 3.0, widths.Page
	}
	most := widest(append(Text{}, g.First...), size)
	for i := range g.Lines {
		if l := &g.Lines[i]; l.kind == row {
			n := widest(l.label, size)
			if l.indent {
				n += size
			}
			most = max(most, n)
		}
	}
	for c, h := range g.Heads {
		n := widest(h.text, size)
		if h.lines != nil {
			n = max(widest(h.lines[0], size), widest(h.lines[1], size))
		}
		for i := range g.Lines {
			if g.Lines[i].kind == row {
				n = max(n, widthOf(g.Lines[i].cells[c].shown())*size)
			}
		}
		most += n + 2*gap
	}
	return most <= place*pointsPerCM
}

func widest(t Text, size float64) (w float64) {
	for _, s := range t {
		switch s.kind {
		case cite:
			w += 1.6 * size // width of "[12]" and its space
		case code:
			w += 0.6 * size * float64(len(s.text))
		default:
			w += widthOf(s.text) * size
		}
	}
	return w
}

// widthOf returns an upper bound for the width of a text in a font like Times, in em. A table that fits by this bound
// fits in print.
func widthOf(text string) (em float64) {
	for _, r := range text {
		switch {
		case isCJK(r):
			em += 1
		case strings.ContainsRune("ijltfrI.,;:!|'()[]- /\u202f", r):
			em += 0.35
		case strings.ContainsRune("mwMWQO%×←…—", r):
			em += 0.9
		case r >= 'A' && r <= 'Z':
			em += 0.72
		default:
			em += 0.52
		}
	}
	return em
}

// fit fits a table to its place. fit must run before caption and notes are written, since these describe what is left
// of the table.
func (b *builder) fit(g *Grid) {
	for _, what := range g.fit(b.config.Widths) {
		b.left = append(b.left, fmt.Sprintf("table %s has no room for %s", g.Name, what))
	}
}

// fit makes a table as wide as a page if it does not fit into a column. If it does not fit onto a page either, fit
// removes its last columns or, if it is too high, its last lines. left names what was removed.
func (g *Grid) fit(widths Widths) (left []string) {
	if !g.Wide && !g.fits(widths) {
		g.Wide = true
	}
	for len(g.Heads) > 2 && !g.fits(widths) {
		left = append(left, g.dropColumn())
	}
	const mostRows = 44
	rows := 0
	for i := range g.Lines {
		if g.Lines[i].kind != row {
			continue
		}
		if rows++; rows > mostRows {
			for k := i; k < len(g.Lines); k++ {
				if g.Lines[k].kind == row {
					left = append(left, g.Lines[k].label.text())
				}
			}
			g.Lines = g.Lines[:i]
			break
		}
	}
	for n := len(g.Lines); n > 0 && g.Lines[n-1].kind != row; n-- { // a separator at the end separates nothing
		g.Lines = g.Lines[:n-1]
	}
	return left
}

// dropColumn removes the last column and returns its title.
func (g *Grid) dropColumn() string {
	last := len(g.Heads) - 1
	title := g.title(last).text()
	g.Heads = g.Heads[:last]
	for i := range g.Lines {
		if g.Lines[i].kind == row {
			g.Lines[i].cells = g.Lines[i].cells[:last]
		}
	}
	if n := len(g.Groups) - 1; n >= 0 {
		if g.Groups[n].heads--; g.Groups[n].heads == 0 {
			g.Groups = g.Groups[:n]
		}
	}
	return title
}
