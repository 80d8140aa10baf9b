package figure

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/schemas"
)

// Sizes of the list beside a plot, in logical pixels.
const (
	listLetter = 14.0  // width of a letter
	listName   = 160.0 // right end of a name, from the list's left end
	listMost   = 250.0 // right end of the maximum's size
	listAtPeak = 340.0 // right end of the size at the peak
	listWidth  = 490.0
	letterSize = 10.0
	letterRow  = 24.0 // height of the strip of letters above a plot
	letterGap  = 5.0  // distance between two letters
)

// maximumPoint is one category's maximum: its point on the plot and its line in the list.
type maximumPoint struct {
	letter  string
	letterX float64 // x of the letter's middle, so that letters do not overlap
	name    string
	x, y    float64
	fill    canvas.Color
	most    string
	atPeak  string
	when    string
}

// maxima returns the maxima of the categories that the picture shows.
func (m *Timeline) maxima() []timeline.CategoryMaximum {
	switch {
	case m.Timeline == nil:
		return nil
	case m.AllSteps:
		return m.Timeline.Maxima
	}
	return m.Timeline.StepMaxima
}

// visibleMaxima returns the maxima that lie within the picture.
func (m *Timeline) visibleMaxima() (out []timeline.CategoryMaximum) {
	for _, c := range m.maxima() {
		if c.MaxBytes > 0 && float64(c.MaxBytes) >= minorShare*float64(m.Timeline.PeakBytes) {
			out = append(out, c)
		}
	}
	return out
}

// placeMaxima determines the points on the plot for the listed maxima.
func (l *timelineLayout) placeMaxima(listed []timeline.CategoryMaximum) {
	t := l.m.Timeline
	l.peakX, l.peakY = l.eventX(t.Peak.Event), l.y(t.PeakBytes)
	for i, c := range listed {
		k := maximumPoint{letter: string(rune('a' + i)), name: words(c.Category), x: l.eventX(c.At.Event),
			fill: palette[c.Category], most: l.unit.number(c.MaxBytes), atPeak: l.unit.number(c.AtPeakBytes),
			when: l.m.when(&c.At)}
		if c.AtPeakBytes == 0 {
			k.atPeak = "–"
		}
		var below int64 // bytes of the category and of the categories stacked below it
		for _, b := range l.groups.major {
			below += c.Parts[schemas.Precedence(b)]
			if b == c.Category {
				break
			}
		}
		k.y = l.y(below)
		l.maxima = append(l.maxima, k)
	}
	l.spread()
}

// spread moves the letters of nearby maxima apart, so that no two letters overlap.
func (l *timelineLayout) spread() {
	order := make([]*maximumPoint, len(l.maxima))
	for i := range l.maxima {
		order[i] = &l.maxima[i]
		order[i].letterX = order[i].x
	}
	slices.SortStableFunc(order, func(a, b *maximumPoint) int { return cmp.Compare(a.x, b.x) })
	half := func(m *maximumPoint) float64 { return (canvas.Measure(m.letter, letterSize) + letterGap) / 2 }
	// Letters that touch form a run. A run is centred over its maxima, until no two runs touch.
	type run struct {
		members []*maximumPoint
		left    float64
	}
	width := func(r run) (sum float64) {
		for _, m := range r.members {
			sum += 2 * half(m)
		}
		return sum
	}
	place := func(members []*maximumPoint) run {
		r := run{members: members}
		wide := width(r)
		middle := (members[0].x + members[len(members)-1].x) / 2
		r.left = min(max(middle-wide/2, l.plot.X0), l.plot.X1-wide)
		return r
	}
	var runs []run
	for _, m := range order {
		r := place([]*maximumPoint{m})
		for n := len(runs); n > 0 && runs[n-1].left+width(runs[n-1]) > r.left; n = len(runs) {
			r = place(slices.Concat(runs[n-1].members, r.members))
			runs = runs[:n-1]
		}
		runs = append(runs, r)
	}
	for _, r := range runs {
		x := r.left
		for _, m := range r.members {
			m.letterX = x + half(m)
			x += 2 * half(m)
		}
	}
}

// eventX returns the x at which the state just after an event is drawn.
func (l *timelineLayout) eventX(event int64) float64 {
	for _, s := range l.slots {
		if s.segment.BeginSeq < event && event <= s.segment.EndSeq {
			f := (float64(event-s.segment.BeginSeq) - 0.5) / float64(s.segment.EndSeq-s.segment.BeginSeq)
			return s.left + f*(s.right-s.left)
		}
	}
	return l.plot.X0
}

// drawMaxima marks each category's maximum and the peak.
func (l *timelineLayout) drawMaxima(c *canvas.Canvas) {
	const bend = 10 // height of the part of the strip in which a line bends from its letter to its maximum
	for _, k := range l.maxima {
		c.Segment(k.letterX, l.plot.Y0-bend, k.x, l.plot.Y0, 0.6, softInk)
		c.Line(k.x, l.plot.Y0, k.x, k.y, 0.6, softInk)
		c.Text(k.letter, k.letterX, l.plot.Y0-bend-3, letterSize, canvas.Middle, ink)
	}
	c.Diamond(l.peakX, l.peakY, 6.5, ink) // large enough to show around a maximum at the same place
	c.Shape("peak of "+l.m.Label, canvas.Box{X0: l.peakX, Y0: l.peakY, X1: l.peakX, Y1: l.peakY}, l.plot)
	for _, k := range l.maxima {
		c.Diamond(k.x, k.y, 4.5, ink)
		c.Diamond(k.x, k.y, 3.2, k.fill)
		c.Shape("maximum of "+k.name+" of "+l.m.Label, canvas.Box{X0: k.x, Y0: k.y, X1: k.x, Y1: k.y}, l.plot)
	}
}

// drawList writes each category's maximum, and its size at the peak, beside the plot, in the axis's unit.
func (l *timelineLayout) drawList(c *canvas.Canvas) {
	y := l.plot.Y0 + insideSize*0.95
	text := func(s string, from, to float64, anchor canvas.Anchor, color canvas.Color) {
		at := from
		if anchor == canvas.End {
			at = to
		}
		c.Text(canvas.Fit(s, insideSize, to-from-2), l.list+at, y, insideSize, anchor, color)
	}
	text("maximum ("+l.unit.name+")", listName-30, listMost, canvas.End, softInk)
	text("at the peak", listMost, listAtPeak, canvas.End, softInk)
	text("first reached in", listAtPeak+12, listWidth, canvas.Start, softInk)
	for _, k := range l.maxima {
		y += insideSize * lineHeight
		c.Text(k.letter, l.list, y, insideSize, canvas.Start, ink)
		b := canvas.Box{X0: l.list + listLetter, Y0: y - 8, X1: l.list + listLetter + 9, Y1: y + 1}
		c.Rect(b, k.fill)
		text(k.name, listLetter+swatch+3, listName, canvas.Start, ink)
		text(k.most, listName, listMost, canvas.End, ink)
		text(k.atPeak, listMost, listAtPeak, canvas.End, ink)
		text(k.when, listAtPeak+12, listWidth, canvas.Start, ink)
	}
	y += insideSize * lineHeight
	t := l.m.Timeline
	c.Diamond(l.list+listLetter+4.5, y-3.5, 4, ink)
	text("allocated", listLetter+swatch+3, listName, canvas.Start, ink)
	text(l.unit.number(t.PeakBytes), listName, listMost, canvas.End, ink)
	text(l.unit.number(t.PeakBytes), listMost, listAtPeak, canvas.End, ink)
	text(l.m.when(&t.Peak), listAtPeak+12, listWidth, canvas.Start, ink)
}
