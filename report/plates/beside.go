package plates

import (
	"math"
	"slices"
)

// nameBeside writes lines of text near the box around, at the first of several places within limits where the text
// covers no other text, mark or piece of a line. The text must be nearer to around than to each of others. nameBeside
// reports whether there was such a place.
func (d *Drawing) nameBeside(limits box, lines []string, around box, line []point, marks []box, others []point) bool {
	size := d.style.Value
	height := 1.1 * size * float64(len(lines))
	width := 0.0
	for _, l := range lines {
		width = max(width, wide(d.val(l)))
	}
	midX, midY := (around.x0+around.x1)/2, (around.y0+around.y1)/2
	for _, off := range []float64{2.6, 5, 9, 14} {
		right, left := around.x1+off, around.x0-off-width
		above, below := around.y0-off-height, around.y1+off
		for _, at := range []point{
			{right, midY - height/2}, {midX - width/2, above}, {midX - width/2, below}, {left, midY - height/2},
			{around.x1 + 1, above}, {around.x1 + 1, below}, {around.x0 - 1 - width, above}, {around.x0 - 1 - width, below},
			{limits.x1 - width, above}, {limits.x1 - width, below}, {limits.x0, above}, {limits.x0, below},
		} {
			b := box{at.x, at.y, at.x + width, at.y + height}
			near := b.x0 < around.x1+2*off && b.x1 > around.x0-2*off
			if !near || !b.within(limits) || crosses(b, line) || d.covers(b) ||
				slices.ContainsFunc(marks, func(m box) bool { return m.overlaps(b) }) || !nearer(b, around, others) {
				continue
			}
			for i, text := range lines {
				d.over(d.val(text), point{at.x, at.y + 1.1*size*float64(i) + ascent*size})
			}
			return true
		}
	}
	return false
}

// nearer reports whether a text is so much nearer to around than to other points that its place says whose name it is.
func nearer(b, around box, others []point) bool {
	const by = 1
	own := b.from(around)
	return !slices.ContainsFunc(others, func(p point) bool { return b.from(box{p.x, p.y, p.x, p.y}) < own+by })
}

// from returns the distance between two boxes.
func (b box) from(o box) float64 {
	return math.Hypot(max(0, b.x0-o.x1, o.x0-b.x1), max(0, b.y0-o.y1, o.y0-b.y1))
}

// crosses reports whether the box around a piece of a line touches a box.
func crosses(b box, line []point) bool {
	for i := 1; i < len(line); i++ {
		p, q := line[i-1], line[i]
		piece := box{min(p.x, q.x) - 0.5, min(p.y, q.y) - 0.5, max(p.x, q.x) + 0.5, max(p.y, q.y) + 0.5}
		if piece.overlaps(b) {
			return true
		}
	}
	return false
}

// covers reports whether a box lies over a text.
func (d *Drawing) covers(b box) bool {
	return slices.ContainsFunc(d.items, func(i item) bool { return i.label != nil && i.label.box.overlaps(b) })
}
