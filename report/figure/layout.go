package figure

import (
	"fmt"
	"math"

	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/units"
)

// Sizes in logical pixels.
const (
	margin     = 20.0
	titleSize  = 15.0
	nameSize   = 13.0
	badgeSize  = 11.0
	valueSize  = 12.0
	insideSize = 11.0
	noteSize   = 11.0
	barHeight  = 26.0
	peakWidth  = 500.0
	deltaWidth = 400.0
	panelGap   = 32.0
	maxLabel   = 220.0
	lineHeight = 1.25
)

// layout holds all places. All text is measured before anything is drawn, so the canvas is as high as necessary and
// text is cut only if it must be.
type layout struct {
	m             *MemoryBreakdown
	width, height float64
	rows
	titles      [2][]string
	peak, delta panel
	groups      grouping
	legend      legend
}

// panel is one axis: bytes to x.
type panel struct {
	left, right float64 // of the bars
	textRight   float64 // right end of the totals beyond the bars
	zero        float64 // x of 0
	perByte     float64 // 0 = nothing to draw
	low, high   int64
	unit        unit
}

func (p *panel) x(bytes int64) float64 { return p.zero + float64(bytes)*p.perByte }

func (m *MemoryBreakdown) layout() *layout {
	l := &layout{m: m}
	l.groups = m.group()
	x := margin + l.wrapLabels() + 12
	l.peak = m.peakPanel(x)
	x = l.peak.textRight
	if m.Baseline != "" {
		l.delta = m.deltaPanel(x + panelGap)
		x = l.delta.textRight
	}
	l.width = math.Ceil(x + margin)

	l.titles[0] = canvas.Wrap("Peak allocated memory by category", titleSize, l.peak.textRight-l.peak.left, 2)
	y := margin
	if m.Baseline != "" {
		l.titles[1] = canvas.Wrap("Overhead over "+m.Baseline, titleSize, l.delta.textRight-l.delta.left, 2)
	}
	y += float64(max(len(l.titles[0]), len(l.titles[1])))*titleSize*lineHeight + 6
	y = l.place(y, barHeight+14)
	y += 30 // the axis' numbers
	l.legend, y = layLegend(l.groups.legend(), l.footnotes(), y, l.width)
	l.height = math.Ceil(y + margin)
	return l
}

// wrapLabels breaks the rows' labels and gives the width of the widest line.
func (l *layout) wrapLabels() float64 {
	widest := 60.0
	for _, r := range l.m.Rows {
		widest = max(widest, l.label(r.Label, r.Badge))
	}
	return widest
}

// numbered puts the run's place before a label that the font cannot draw whole.
func numbered(i int, label string) string {
	if canvas.Lacks(label) {
		return fmt.Sprintf("#%d %s", i+1, label)
	}
	return label
}

// peakPanel scales the left axis so that the longest bar and its total fit.
func (m *MemoryBreakdown) peakPanel(left float64) panel {
	p := panel{left: left, zero: left}
	text := 0.0
	for _, r := range m.Rows {
		if r.PeakBytes != nil {
			p.high = max(p.high, *r.PeakBytes)
			text = max(text, canvas.Measure(table.Size(*r.PeakBytes), valueSize))
		}
	}
	p.textRight = left + peakWidth
	p.right = p.textRight - text - 8
	if p.high > 0 {
		p.perByte = (p.right - p.left) / float64(p.high)
	}
	p.unit = unitOf(p.high)
	return p
}

// deltaPanel scales the right axis: decreases go left of zero, increases right, and the totals form a column.
func (m *MemoryBreakdown) deltaPanel(left float64) panel {
	p := panel{left: left, textRight: left + deltaWidth}
	text := 0.0
	for i := range m.Rows {
		text = max(text, canvas.Measure(m.Rows[i].total(), valueSize))
		down, up := m.Rows[i].extent()
		p.low, p.high = min(p.low, down), max(p.high, up)
	}
	p.right = p.textRight - text - 12
	p.zero = p.left
	if p.high > p.low {
		p.perByte = (p.right - p.left) / float64(p.high-p.low)
		p.zero = p.left - float64(p.low)*p.perByte
	}
	p.unit = unitOf(max(p.high, -p.low))
	return p
}

// extent is how far a row's deltas reach below and above zero.
func (r *Row) extent() (down, up int64) {
	if r.Overhead == nil || r.Overhead.PeakDeltaBytes == nil {
		return 0, 0
	}
	if len(r.Overhead.Categories) == 0 {
		return min(0, *r.Overhead.PeakDeltaBytes), max(0, *r.Overhead.PeakDeltaBytes)
	}
	for _, c := range r.Overhead.Categories {
		if c.DeltaBytes < 0 {
			down += c.DeltaBytes
		} else {
			up += c.DeltaBytes
		}
	}
	return down, up
}

// total is the overhead in words.
func (r *Row) total() string {
	switch {
	case r.Baseline:
		return "baseline"
	case r.Overhead == nil || r.Overhead.PeakDeltaBytes == nil:
		return "–"
	}
	d := *r.Overhead.PeakDeltaBytes
	s := table.Size(d)
	if d > 0 {
		s = "+" + s
	}
	switch ratio := r.Overhead.PeakRatio; {
	case ratio == nil:
	case *ratio >= 10:
		s += " (" + units.Fixed(*ratio, 0) + "×)"
	default:
		percent := units.Fixed((*ratio-1)*100, 1)
		if d > 0 {
			percent = "+" + percent
		}
		s += " (" + percent + " %)"
	}
	return s
}

// footnotes explain what the picture cannot show.
func (l *layout) footnotes() []string {
	notes := l.groups.minorNote()
	for i := range l.m.Rows {
		if l.balanced(&l.m.Rows[i]) {
			notes = append(notes, "the diamond marks the sum of what grew and what shrank")
			break
		}
	}
	var labels []string
	for _, r := range l.m.Rows {
		labels = append(labels, r.Label)
	}
	notes = append(notes, missingNote(labels)...)
	return append(notes, l.m.Notes...)
}
