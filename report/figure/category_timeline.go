package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// A CategoryTimeline is the picture memory_timeline_categories. It has the panels of [MemoryTimeline]. Each
// category's own maximum is marked where it is reached. A list beside them has its size, its moment, and its size
// at the peak. A category's maximum is seldom at the peak, so a peak's breakdown does not show it.
type CategoryTimeline struct{ MemoryTimeline }

// The list beside a panel, in logical pixels.
const (
	listLetter = 14.0  // width of a letter
	listName   = 160.0 // right end of a name, from the list's left
	listMost   = 232.0 // right end of the maximum
	listAtPeak = 302.0 // right end of the column for the peak
	listWidth  = 452.0
	letterSize = 10.0
	letterRow  = 14.0 // the strip of letters above a plot
)

// maximumPoint is one category's maximum on the plot, and its line in the list.
type maximumPoint struct {
	letter string
	name   string
	x, y   float64
	fill   canvas.Color
	most   string
	atPeak string
	when   string
}

// letters name the maxima that are above one place of the plot.
type letters struct {
	text string
	x    float64 // of its middle
}

// categoryPanel is a panel with its maxima.
type categoryPanel struct {
	maxima  []maximumPoint
	letters []letters
	left    float64 // of the list
	foot    string  // below the list
}

type categoryLayout struct {
	timelineLayout
	extra []categoryPanel // of each panel
}

// maxima returns the maxima of what the picture shows of a run.
func (m *CategoryTimeline) maxima(r *TimelineRow) []timeline.CategoryMaximum {
	switch {
	case r.Timeline == nil:
		return nil
	case m.AllSteps:
		return r.Timeline.Maxima
	}
	return r.Timeline.StepMaxima
}

// group gives a colour to each category that is large enough at its own maximum in some run.
func (m *CategoryTimeline) group() grouping {
	var g grouping
	present, major := map[schemas.Category]bool{}, map[schemas.Category]bool{}
	for i := range m.Rows {
		for _, c := range m.maxima(&m.Rows[i]) {
			present[c.Category] = present[c.Category] || c.MaxBytes > 0
		}
		for _, c := range m.visibleMaxima(&m.Rows[i]) {
			major[c.Category] = true
		}
	}
	for _, c := range schemas.Categories {
		switch {
		case major[c]:
			g.major = append(g.major, c)
		case present[c]:
			g.minor = append(g.minor, c)
		}
	}
	return g
}

func (m *CategoryTimeline) layout() *categoryLayout {
	l := &categoryLayout{timelineLayout: timelineLayout{m: &m.MemoryTimeline, groups: m.group()}}
	highs, highest := m.highs()
	left := margin + axisWidth(highs) + 8
	l.width = math.Ceil(left + plotWidth + peakGap + listWidth + margin)
	what := "Memory by category over the step of the peak, with each category's own maximum"
	if m.AllSteps {
		what = "Memory by category over the whole recording, with each category's own maximum"
	}
	l.heading = canvas.Wrap(what, titleSize, l.width-2*margin, 1)
	y := margin + titleSize*lineHeight + 8
	named, all := true, true
	for i := range m.Rows {
		p := timePanel{row: &m.Rows[i], top: y, high: highs[i]}
		var x categoryPanel
		p.title = m.title(i, l.width-left-margin)
		y += float64(len(p.title))*nameSize*lineHeight + 4
		if segments := m.shown(p.row); len(segments) > 0 && p.high > 0 {
			y += letterRow
			listed := m.listedMaxima(p.row)
			all = all && len(listed) == len(m.visibleMaxima(p.row))
			height := max(plotLow, float64(len(listed)+3)*insideSize*lineHeight)
			if len(m.Rows) <= manyPanels {
				height = max(height, plotHeight)
			}
			p.plot = canvas.Box{X0: left, Y0: y, X1: left + plotWidth, Y1: y + height}
			p.unit, p.perByte = unitOf(p.high), height/float64(p.high)
			p.lay(segments, m.AllSteps)
			named = named && !p.unnamed
			x = m.placeMaxima(&p, &l.groups, listed)
			y += height + stripHeight
			if m.AllSteps {
				y += stripHeight
			}
		} else {
			y += valueSize * lineHeight
		}
		l.panels, l.extra = append(l.panels, p), append(l.extra, x)
		y += panelSpacing
	}
	if len(m.Rows) == 0 {
		y += barHeight
	}
	l.axisY = y
	items := l.groups.legend()
	if len(items) > 0 {
		items = append(items, legendItem{label: "reserved", fill: ink, line: true})
	}
	l.legend, y = layLegend(items, m.footnotes(&l.groups, highest > 0, named, all), y, l.width)
	l.height = math.Ceil(y + margin)
	return l
}

// highs returns the tops of the rows' axes. All rows share one scale, except runs that would be only a line on it.
func (m *MemoryTimeline) highs() (highs []int64, highest int64) {
	highs = make([]int64, len(m.Rows))
	for i := range m.Rows {
		highs[i] = m.high(&m.Rows[i])
		highest = max(highest, highs[i])
	}
	for i := range highs {
		if float64(highs[i]) >= float64(highest)/50 {
			highs[i] = highest
		}
	}
	return highs, highest
}

// axisWidth is what the axes' numbers take.
func axisWidth(highs []int64) float64 {
	width := 30.0
	for _, high := range highs {
		p := panel{high: high, unit: unitOf(high), perByte: 1}
		for _, v := range p.ticks(4) {
			width = max(width, canvas.Measure(tickText(v)+" "+p.unit.name, valueSize))
		}
	}
	return width
}

// visibleMaxima are the maxima of a run that can be seen in it.
func (m *CategoryTimeline) visibleMaxima(r *TimelineRow) (out []timeline.CategoryMaximum) {
	for _, c := range m.maxima(r) {
		if c.MaxBytes > 0 && float64(c.MaxBytes) >= minorShare*float64(r.Timeline.PeakBytes) {
			out = append(out, c)
		}
	}
	return out
}

// fewMaxima is the number of marked maxima if there are many panels.
const fewMaxima = 4

// listedMaxima are the maxima that are marked, in the order of precedence; of many runs, the largest.
func (m *CategoryTimeline) listedMaxima(r *TimelineRow) []timeline.CategoryMaximum {
	out := m.visibleMaxima(r)
	for len(m.Rows) > manyPanels && len(out) > fewMaxima {
		least := 0
		for k := range out {
			if out[k].MaxBytes <= out[least].MaxBytes {
				least = k
			}
		}
		out = slices.Delete(out, least, least+1)
	}
	return out
}

// placeMaxima places the maxima of one panel.
func (m *CategoryTimeline) placeMaxima(p *timePanel, g *grouping, listed []timeline.CategoryMaximum) categoryPanel {
	x := categoryPanel{left: p.plot.X1 + peakGap}
	t := p.row.Timeline
	p.peakX, p.peakY = p.eventX(t.Peak.Event), p.y(t.PeakBytes)
	for i, c := range listed {
		k := maximumPoint{letter: string(rune('a' + i)), name: words(c.Category), x: p.eventX(c.At.Event),
			fill: palette[c.Category],
			most: table.Size(c.MaxBytes), atPeak: table.Size(c.AtPeakBytes), when: m.when(&c.At)}
		if c.AtPeakBytes == 0 {
			k.atPeak = "–"
		}
		var below int64 // and the category itself, in the order of stacking
		for _, b := range g.major {
			below += c.Parts[schemas.Precedence(b)]
			if b == c.Category {
				break
			}
		}
		k.y = p.y(below)
		x.maxima = append(x.maxima, k)
	}
	x.letters = gather(x.maxima, p.plot)
	if r := p.row; r.PeakBytes != nil && *r.PeakBytes > t.PeakBytes {
		x.foot = "peak " + table.Size(*r.PeakBytes) + " (torch's counter), not recorded"
	}
	return x
}

// eventX is where the state just after an event is drawn.
func (p *timePanel) eventX(event int64) float64 {
	for _, s := range p.slots {
		if s.segment.BeginSeq < event && event <= s.segment.EndSeq {
			f := (float64(event-s.segment.BeginSeq) - 0.5) / float64(s.segment.EndSeq-s.segment.BeginSeq)
			return s.left + f*(s.right-s.left)
		}
	}
	return p.plot.X0
}

// when is the moment in words: its step only where several are shown.
func (m *MemoryTimeline) when(at *memory.Moment) string {
	var parts []string
	if m.AllSteps && at.Step != nil {
		parts = append(parts, fmt.Sprintf("step %d", *at.Step))
	}
	if at.Phase != nil {
		parts = append(parts, *at.Phase)
	}
	if len(parts) == 0 {
		return fmt.Sprintf("event %d", at.Event)
	}
	return strings.Join(parts, ", ")
}

// gather puts the letters of maxima that lie too close together into one text, until no two texts touch.
func gather(maxima []maximumPoint, plot canvas.Box) []letters {
	sorted := slices.Clone(maxima)
	slices.SortStableFunc(sorted, func(a, b maximumPoint) int {
		switch {
		case a.x < b.x:
			return -1
		case a.x > b.x:
			return 1
		}
		return 0
	})
	type group struct {
		names      []string
		from, to   float64
		x0, x1     float64 // of the text
		textOfMany string
	}
	place := func(g *group) {
		g.textOfMany = strings.Join(g.names, " ")
		width := canvas.Measure(g.textOfMany, letterSize)
		g.x0 = min(max((g.from+g.to-width)/2, plot.X0), plot.X1-width)
		g.x1 = g.x0 + width
	}
	var groups []group
	for _, m := range sorted {
		g := group{names: []string{m.letter}, from: m.x, to: m.x}
		place(&g)
		for n := len(groups); n > 0 && groups[n-1].x1+5 > g.x0; n = len(groups) {
			last := groups[n-1]
			g = group{names: append(last.names, g.names...), from: last.from, to: g.to}
			place(&g)
			groups = groups[:n-1]
		}
		groups = append(groups, g)
	}
	out := make([]letters, len(groups))
	for i, g := range groups {
		out[i] = letters{g.textOfMany, (g.x0 + g.x1) / 2}
	}
	return out
}

func (m *CategoryTimeline) footnotes(g *grouping, any, named, all bool) []string {
	var notes []string
	if any {
		notes = append(notes, "from left to right: the allocator's events in their order; a phase is as wide as it "+
			"has events and, where there is room, at least as its name; areas: what the highest total of each column "+
			"is made of; light: between the lowest and the highest of the events that share a column")
		scope := "within the step of the peak"
		if m.AllSteps {
			scope = "within the whole recording"
		}
		notes = append(notes, "a, b, …: where a category first counts most, "+scope+"; its diamond lies at the top "+
			"of its bytes at that event, where the column may show another one; black: the peak")
	}
	notes = append(notes, m.growthNote()...)
	if !named {
		notes = append(notes, "phases without room for their names are shaded only: tables/phases has them all")
	}
	if !all {
		notes = append(notes, "of so many runs only the largest maxima are marked: dpsight analyze timeline has "+
			"them all")
	}
	notes = append(notes, g.minorNote()...)
	var labels []string
	for _, r := range m.Rows {
		labels = append(labels, r.Label)
	}
	return append(append(notes, missingNote(labels)...), m.Notes...)
}
