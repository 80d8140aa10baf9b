package plates

import "math"

// panelGrid places panels of equal size, as many side by side as fit, in rows below one another. Each panel has its own
// axes.
type panelGrid struct {
	across, down int
	width        float64 // width of one panel with its margin
	gap          float64
}

func gridOf(s Style, n int) panelGrid {
	g := panelGrid{across: min(n, s.panels()), gap: 1.4 * s.Label}
	if s.slide() {
		g.across = min(n, 3)
	}
	g.down = (n + g.across - 1) / g.across
	g.width = (s.Width - float64(g.across-1)*g.gap) / float64(g.across)
	return g
}

// tall returns the height of one panel's plot: near want, or less if the place limits the height.
func (g panelGrid) tall(s Style, want, rest float64) float64 {
	if s.slide() {
		return max(4*s.Label, (s.Height-rest*float64(g.down))/float64(g.down))
	}
	return want
}

// x returns the left edge of panel i.
func (g panelGrid) x(i int) float64 { return float64(i%g.across) * (g.width + g.gap) }

// plots returns the left edge of each panel's plot, and the width of all of them. before and after are the widths that
// each panel's texts need at the left and at the right of its plot.
func (g panelGrid) plots(before, after []float64) (left []float64, width float64) {
	lefts, rights := make([]float64, g.across), make([]float64, g.across)
	for i := range before {
		lefts[i%g.across] = max(lefts[i%g.across], before[i])
		rights[i%g.across] = max(rights[i%g.across], after[i])
	}
	width = g.width
	for c := range lefts {
		width -= (lefts[c] + rights[c]) / float64(g.across)
	}
	at := 0.0
	for c := range lefts {
		lefts[c], at = at+lefts[c], at+lefts[c]+width+rights[c]+g.gap
	}
	for i := range before {
		left = append(left, lefts[i%g.across])
	}
	return left, width
}

// mostPanels returns the most panels for which a place has room.
func mostPanels(s Style) int {
	if s.slide() {
		return 3
	}
	return 12
}

// letter returns a panel's title: "(a) name" among several panels, and only the name, or nothing, for a single panel.
func letter(i, of int, title string) string {
	if of == 1 {
		return Short(title)
	}
	s := "(" + string(rune('a'+i%26)) + ")"
	if title != "" {
		s += " " + Short(title)
	}
	return s
}

// between returns a range that includes low and high, with a little room at each end that is not 0. The range is never
// empty.
func between(low, high float64) (from, to float64) {
	if high == low {
		high = low + max(1, math.Abs(low)*0.1)
	}
	room := (high - low) * 0.06
	from, to = low-room, high+room
	if low >= 0 && from < 0 {
		from = 0
	}
	if high <= 0 && to > 0 {
		to = 0
	}
	return from, to
}
