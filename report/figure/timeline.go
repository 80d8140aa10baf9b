package figure

import (
	"fmt"
	"math"
	"strings"

	"github.com/dpsight/dpsight/analyze/growth"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// A Timeline is the picture of one run over the allocator's events: allocated bytes by category, and reserved bytes.
// Phases are shaded and named. Marks show the peak, and the maximum of each category at the moment when it is reached.
// A list gives each maximum's size and moment, and the category's size at the peak, since few categories are largest at
// the peak.
//
// The axis counts events, not time: a phase is as wide as its number of events, and at least as wide as its name. Each
// run has a picture of its own, so that a larger run does not determine its axis.
type Timeline struct {
	Number int // number of the run in tables, from 0
	Label  string
	Badge  string // where the run's figures come from, and its status if not ok
	// PeakBytes is the peak of the whole run. PeakBytes is above the timeline's highest point if the peak lies outside
	// the recorded steps.
	PeakBytes *int64
	Timeline  *timeline.Timeline
	Growth    *growth.Trend // nil if allocated memory does not grow from step to step
	Rate      string        // rate of the growth: "+4.20 MiB a step"
	AllSteps  bool          // shows the whole recording, not only the step of the peak
	Notes     []string
}

// Sizes in logical pixels.
const (
	plotWidth   = 740.0
	plotHeight  = 200.0
	stripSize   = 10.0
	stripHeight = 15.0
	peakGap     = 16.0
)

// timelineLayout has the place of everything in the picture.
type timelineLayout struct {
	m             *Timeline
	width, height float64
	heading       []string // text that says what is shown
	title         []string // name of the run
	plot          canvas.Box
	high          int64 // bytes at the top of the plot
	perByte       float64
	unit          unit
	slots         []slot
	steps         []slot // stretches by step; steps are named if there are several
	unnamed       bool   // some phase was too narrow for its name
	peakX, peakY  float64
	maxima        []maximumPoint
	list          float64 // left end of the list of maxima
	groups        grouping
	legend        legend
}

func (l *timelineLayout) y(bytes int64) float64 { return l.plot.Y1 - float64(bytes)*l.perByte }

// Empty reports whether there is nothing to draw.
func (m *Timeline) Empty() bool { return len(m.shown()) == 0 || m.high() == 0 }

// shown returns the segments that the picture shows.
func (m *Timeline) shown() []*timeline.TimelineSegment {
	var out []*timeline.TimelineSegment
	if m.Timeline == nil {
		return nil
	}
	for i := range m.Timeline.Segments {
		if s := &m.Timeline.Segments[i]; m.AllSteps || m.Timeline.InPeakStep(s) {
			out = append(out, s)
		}
	}
	return out
}

func (m *Timeline) layout() *timelineLayout {
	l := &timelineLayout{m: m, groups: m.group(), high: m.high()}
	l.unit = unitOf(l.high)
	left := margin + l.axisWidth() + 8
	l.width = math.Ceil(left + plotWidth + peakGap + listWidth + margin)
	what := "Memory by category over the step of the peak, with each category's own maximum"
	if m.AllSteps {
		what = "Memory by category over the whole recording, with each category's own maximum"
	}
	l.heading = canvas.Wrap(what, titleSize, l.width-2*margin, 1)
	y := margin + titleSize*lineHeight + 8
	l.title = canvas.Wrap(m.title(), nameSize, l.width-left-margin, 3)
	y += float64(len(l.title))*nameSize*lineHeight + 4 + letterRow
	listed := m.visibleMaxima()
	height := max(plotHeight, float64(len(listed)+3)*insideSize*lineHeight)
	l.plot = canvas.Box{X0: left, Y0: y, X1: left + plotWidth, Y1: y + height}
	l.perByte = height / float64(l.high)
	l.list = l.plot.X1 + peakGap
	l.lay(m.shown(), m.AllSteps)
	l.placeMaxima(listed)
	y += height + stripHeight + 18
	if m.AllSteps {
		y += stripHeight
	}
	items := []legendItem{{label: "reserved", fill: ink, line: true}} // the list of maxima has the other colours
	if len(l.groups.minor) > 0 {
		items = append(items, legendItem{label: minorLabel, fill: minorColor})
	}
	l.legend, y = layLegend(items, l.footnotes(), y, l.width)
	l.height = math.Ceil(y + margin)
	return l
}

// title returns the run's name and a description of its peak.
func (m *Timeline) title() string {
	t, text := m.Timeline, numbered(m.Number, m.Label)
	if m.Badge != "" {
		text += " [" + m.Badge + "]"
	}
	switch {
	case m.AllSteps:
	case t.Peak.Step != nil:
		text += fmt.Sprintf(", step %d", *t.Peak.Step)
	case t.HasSteps():
		text += ", outside the steps"
	}
	if t.Rank != 0 || t.Device != "cuda:0" {
		text += fmt.Sprintf(", %s of rank %d", t.Device, t.Rank)
	}
	if m.PeakBytes != nil && *m.PeakBytes > t.PeakBytes {
		return text + ": peak " + table.Size(*m.PeakBytes) + " (torch's counter), not recorded; highest recorded " +
			table.Size(t.PeakBytes) + " in " + m.when(&t.Peak)
	}
	return text + ": peak " + table.Size(t.PeakBytes) + " in " + m.when(&t.Peak)
}

// high returns the bytes at the top of the axis, above everything that is drawn.
func (m *Timeline) high() int64 {
	var high int64
	for _, s := range m.shown() {
		for _, c := range s.Columns {
			high = max(high, c.HighBytes, c.ReservedBytes)
		}
	}
	if high > 0 && m.PeakBytes != nil {
		high = max(high, *m.PeakBytes)
	}
	return high + high/32
}

// axisWidth returns the width of the axis's numbers.
func (l *timelineLayout) axisWidth() float64 {
	width := 30.0
	axis := panel{high: l.high, unit: l.unit, perByte: 1}
	for _, v := range axis.ticks(6) {
		width = max(width, canvas.Measure(tickText(v)+" "+l.unit.name, valueSize))
	}
	return width
}

// group gives a colour of its own to each category that is large enough at its own maximum.
func (m *Timeline) group() grouping {
	var g grouping
	present, major := map[schemas.Category]bool{}, map[schemas.Category]bool{}
	for _, c := range m.maxima() {
		present[c.Category] = c.MaxBytes > 0
	}
	for _, c := range m.visibleMaxima() {
		major[c.Category] = true
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

// when describes a moment in words. when names the step only if the whole recording is shown.
func (m *Timeline) when(at *memory.Moment) string {
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

func (l *timelineLayout) footnotes() []string {
	m := l.m
	scope := "within the step of the peak"
	if m.AllSteps {
		scope = "within the whole recording"
	}
	notes := []string{"from left to right: the allocator's events in order; the more events a phase has, the wider it " +
		"is, and if there is room, it is at least as wide as its name; areas: the categories at the highest total of " +
		"each column; light: the range from the lowest to the highest total of the events in a column",
		"a, b, …: the event at which a category first has its most bytes " + scope + "; the diamond lies at the top of " +
			"the category at this event, though the column may show another event; black: the peak"}
	notes = append(notes, m.growthNote()...)
	if l.unnamed {
		notes = append(notes, "phases without room for their names are shaded only: tables/phases has them all")
	}
	notes = append(notes, l.groups.minorNote()...)
	return append(append(notes, missingNote([]string{m.Label})...), m.Notes...)
}

func (m *Timeline) describe() string {
	text := m.Label
	if m.Badge != "" {
		text += " [" + m.Badge + "]"
	}
	text += ": peak " + table.Size(m.Timeline.PeakBytes)
	for _, c := range m.maxima() {
		if c.MaxBytes > 0 {
			text += ", " + words(c.Category) + " at most " + table.Size(c.MaxBytes) + " in " + m.when(&c.At)
		}
	}
	return text + "."
}
