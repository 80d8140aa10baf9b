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

// A TimelineRow is one run's panel.
type TimelineRow struct {
	Label     string // unique in the picture
	Badge     string // how the run's figures are known, and its status if not ok
	Failure   string // why there is nothing to draw
	PeakBytes *int64 // of the whole run; above the timeline's if the peak came outside the recorded steps
	Timeline  *timeline.Timeline
	Breakdown *memory.DeviceBreakdown // at the timeline's peak
	Growth    *growth.Trend           // nil where what is held does not grow
	Rate      string                  // at which it does: "+4.20 MiB a step"
}

// A MemoryTimeline is the picture memory_timeline. It has a panel for each run with allocated, by category, and
// reserved, over the allocator's events. Phases are shaded and named, and the peak is shown with its composition.
//
// The axis is the order of events, not time: a phase is as wide as it has events, and at least as wide as its name.
type MemoryTimeline struct {
	Rows     []TimelineRow
	AllSteps bool // the whole recording, and not the step of the peak only
	Notes    []string
}

// Sizes in logical pixels.
const (
	plotWidth    = 740.0
	plotHeight   = 150.0
	plotLow      = 96.0 // where there are many panels
	manyPanels   = 10
	peakText     = 230.0
	stripSize    = 10.0
	stripHeight  = 15.0
	peakGap      = 16.0
	panelSpacing = 18.0
)

// timePanel is one run's place.
type timePanel struct {
	row          *TimelineRow
	title        []string
	top          float64 // of the title
	plot         canvas.Box
	high         int64 // at the top of the plot
	perByte      float64
	unit         unit
	slots        []slot
	steps        []slot // which stretch belongs to which step; steps are named if there are several
	peak         []peakLine
	peakX, peakY float64
	unnamed      bool // some phase had no room for its name
}

func (p *timePanel) y(bytes int64) float64 { return p.plot.Y1 - float64(bytes)*p.perByte }

type timelineLayout struct {
	m             *MemoryTimeline
	width, height float64
	heading       []string
	panels        []timePanel
	groups        grouping
	legend        legend
	axisY         float64
}

// shown lists the segments of a row that the picture shows.
func (m *MemoryTimeline) shown(r *TimelineRow) []*timeline.TimelineSegment {
	var out []*timeline.TimelineSegment
	if r.Timeline == nil {
		return nil
	}
	for i := range r.Timeline.Segments {
		if s := &r.Timeline.Segments[i]; m.AllSteps || r.Timeline.InPeakStep(s) {
			out = append(out, s)
		}
	}
	return out
}

func (m *MemoryTimeline) layout() *timelineLayout {
	l := &timelineLayout{m: m}
	l.groups = m.group()
	highs, highest := m.highs()
	left := margin + axisWidth(highs) + 8
	l.width = math.Ceil(left + plotWidth + peakGap + peakText + margin)
	height := plotHeight
	if len(m.Rows) > manyPanels {
		height = plotLow
	}
	what := "Memory over the step of the peak"
	if m.AllSteps {
		what = "Memory over the whole recording"
	}
	l.heading = canvas.Wrap(what, titleSize, l.width-2*margin, 1)
	y := margin + titleSize*lineHeight + 8
	named := true
	for i := range m.Rows {
		p := timePanel{row: &m.Rows[i], top: y, high: highs[i]}
		p.title = m.title(i, l.width-left-margin)
		y += float64(len(p.title))*nameSize*lineHeight + 4
		if segments := m.shown(p.row); len(segments) > 0 && p.high > 0 {
			p.plot = canvas.Box{X0: left, Y0: y, X1: left + plotWidth, Y1: y + height}
			p.unit, p.perByte = unitOf(p.high), height/float64(p.high)
			p.lay(segments, m.AllSteps)
			p.annotate(&l.groups, int((height-4)/(insideSize*lineHeight))-1)
			named = named && !p.unnamed
			y += height + stripHeight
			if m.AllSteps {
				y += stripHeight
			}
		} else {
			y += valueSize * lineHeight
		}
		l.panels = append(l.panels, p)
		y += panelSpacing
	}
	if len(m.Rows) == 0 {
		y += barHeight
	}
	l.axisY = y
	var notes []string
	if highest > 0 {
		notes = append(notes, "from left to right: the allocator's events in their order; a phase is as wide as it "+
			"has events and, where there is room, at least as its name; light: between the lowest and the highest of "+
			"the events that share a column")
	}
	notes = append(notes, m.growthNote()...)
	if !named {
		notes = append(notes, "phases without room for their names are shaded only: tables/phases has them all")
	}
	notes = append(notes, l.groups.minorNote()...)
	var labels []string
	for _, r := range m.Rows {
		labels = append(labels, r.Label)
	}
	notes = append(append(notes, missingNote(labels)...), m.Notes...)
	items := l.groups.legend()
	if len(items) > 0 {
		items = append(items, legendItem{label: "reserved", fill: ink, line: true})
	}
	l.legend, y = layLegend(items, notes, y, l.width)
	l.height = math.Ceil(y + margin)
	return l
}

// title names the run, and what of it the panel shows.
func (m *MemoryTimeline) title(i int, width float64) []string {
	r := &m.Rows[i]
	text := numbered(i, r.Label)
	if r.Badge != "" {
		text += " [" + r.Badge + "]"
	}
	if t := r.Timeline; t != nil {
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
	}
	return canvas.Wrap(text, nameSize, width, 2)
}

// high returns the top of a row's axis, above everything drawn.
func (m *MemoryTimeline) high(r *TimelineRow) int64 {
	var high int64
	for _, s := range m.shown(r) {
		for _, c := range s.Columns {
			high = max(high, c.HighBytes, c.ReservedBytes)
		}
	}
	if high > 0 && r.PeakBytes != nil {
		high = max(high, *r.PeakBytes)
	}
	return high + high/32
}

// group gives a colour to each category that is large enough in some shown column.
func (m *MemoryTimeline) group() grouping {
	var g grouping
	present, major := make([]bool, len(schemas.Categories)), make([]bool, len(schemas.Categories))
	for i := range m.Rows {
		r := &m.Rows[i]
		if r.Timeline == nil {
			continue
		}
		for _, s := range m.shown(r) {
			for _, c := range s.Columns {
				for k, b := range c.Parts {
					present[k] = present[k] || b != 0
					major[k] = major[k] || b > 0 && float64(b) >= minorShare*float64(r.Timeline.PeakBytes)
				}
			}
		}
	}
	for k, c := range schemas.Categories {
		switch {
		case major[k]:
			g.major = append(g.major, c)
		case present[k]:
			g.minor = append(g.minor, c)
		}
	}
	return g
}

func (m *MemoryTimeline) describe() string {
	var b strings.Builder
	for i := range m.Rows {
		r := &m.Rows[i]
		b.WriteString(r.Label)
		if r.Badge != "" {
			b.WriteString(" [" + r.Badge + "]")
		}
		if r.Timeline == nil {
			b.WriteString(": " + r.Failure + ". ")
			continue
		}
		b.WriteString(": peak " + table.Size(r.Timeline.PeakBytes))
		if r.Timeline.Peak.Phase != nil {
			b.WriteString(" in " + *r.Timeline.Peak.Phase)
		}
		b.WriteString(". ")
	}
	return strings.TrimSpace(b.String())
}
