package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dpsight/dpsight/report/canvas"
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
	peakWidth  = 720.0
	axisHeight = 30.0
	bandGap    = 10.0
	panelGap   = 32.0
	maxLabel   = 220.0
	lineHeight = 1.25
	changeGap  = 10.0 // distance between a total and its change
)

// layout has the places of everything in a picture. All text is measured before anything is drawn, so the canvas is as
// high as necessary and text is cut only if it must be.
type layout struct {
	width, height float64
	title         []string
	left          float64 // left end of the bars
	bands         []*band
	axisY         float64 // y of the axis, below the title
	groups        grouping
	legend        legend
}

// band is a group of rows that share an axis.
type band struct {
	rows
	runs  []*Row
	panel panel
}

// panel is one axis, which maps bytes to x.
type panel struct {
	left, right float64 // ends of the bars
	textRight   float64 // right end of the totals to the right of the bars
	zero        float64 // x of 0
	perByte     float64 // pixels per byte; 0 if there is nothing to draw
	low, high   int64
	unit        unit
}

func (p *panel) x(bytes int64) float64 { return p.zero + float64(bytes)*p.perByte }

func (m *MemoryBreakdown) layout() *layout {
	l := &layout{groups: m.group(), bands: m.bands()}
	widest := 60.0
	for _, b := range l.bands {
		for _, r := range b.runs {
			widest = max(widest, b.label(r.Number, r.Label, r.Badge))
		}
	}
	l.left = margin + widest + 12
	l.width = math.Ceil(l.left + peakWidth + margin)
	l.title = canvas.Wrap("Peak allocated memory by category", titleSize, peakWidth, 2)
	y := margin + float64(len(l.title))*titleSize*lineHeight + 6
	l.axisY = y + barHeight/2
	for i, b := range l.bands {
		if i > 0 {
			y += bandGap
		}
		b.scale(l.left)
		y = b.place(y, barHeight+14) + axisHeight
	}
	if len(l.bands) == 0 {
		y += barHeight
	}
	l.legend, y = layLegend(l.groups.legend(), l.footnotes(m), y, l.width)
	l.height = math.Ceil(y + margin)
	return l
}

// apart is the largest ratio of two peaks that share an axis.
const apart = 4

// bands divides the rows into groups of similar size, so that a large run does not hide a small one. Rows keep their
// order within a band. Rows without a peak are in the first band.
func (m *MemoryBreakdown) bands() (bands []*band) {
	var peaks []int64
	for i := range m.Rows {
		if p := m.Rows[i].PeakBytes; p != nil {
			peaks = append(peaks, *p)
		}
	}
	slices.SortFunc(peaks, func(a, b int64) int { return cmp.Compare(b, a) })
	var tops []int64 // the largest peak on each axis
	for _, p := range peaks {
		if n := len(tops); n == 0 || p < tops[n-1]/apart {
			tops = append(tops, p)
		}
	}
	bands = make([]*band, max(1, len(tops)))
	for i := range bands {
		bands[i] = &band{}
	}
	for i := range m.Rows {
		r, at := &m.Rows[i], 0
		for r.PeakBytes != nil && at+1 < len(tops) && *r.PeakBytes <= tops[at+1] {
			at++
		}
		bands[at].runs = append(bands[at].runs, r)
	}
	return slices.DeleteFunc(bands, func(b *band) bool { return len(b.runs) == 0 })
}

// numbered puts a run's number before a label that has characters which the font lacks.
func numbered(i int, label string) string {
	if canvas.Lacks(label) {
		return fmt.Sprintf("#%d %s", i+1, label)
	}
	return label
}

// scale chooses the axis so that the longest bar fits together with its total and its change.
func (b *band) scale(left float64) {
	p := panel{left: left, zero: left, textRight: left + peakWidth}
	for _, r := range b.runs {
		if r.PeakBytes != nil {
			p.high = max(p.high, *r.PeakBytes)
		}
	}
	p.unit = unitOf(p.high)
	b.panel = p // totals use the axis's unit
	text := 0.0
	for _, r := range b.runs {
		if r.PeakBytes != nil {
			text = max(text, canvas.Measure(b.total(r), valueSize)+changeGap+canvas.Measure(r.change(), valueSize))
		}
	}
	b.panel.right = p.textRight - text - 8
	if p.high > 0 {
		b.panel.perByte = (b.panel.right - p.left) / float64(p.high)
	}
}

// total returns a run's peak in the unit of the axis.
func (b *band) total(r *Row) string {
	return b.panel.unit.number(*r.PeakBytes) + " " + b.panel.unit.name
}

// change returns the text that compares a run's peak with the baseline's.
func (r *Row) change() string {
	switch {
	case r.Baseline:
		return "baseline"
	case r.Ratio == nil:
		return ""
	case *r.Ratio >= 10:
		return units.Fixed(*r.Ratio, 0) + "×"
	}
	percent := units.Fixed((*r.Ratio-1)*100, 1)
	if *r.Ratio > 1 {
		percent = "+" + percent
	}
	return percent + " %"
}

// footnotes returns the notes below the picture, which explain what the picture cannot show.
func (l *layout) footnotes(m *MemoryBreakdown) []string {
	notes := l.groups.minorNote()
	compared := false
	var labels []string
	for i := range m.Rows {
		labels = append(labels, m.Rows[i].Label)
		compared = compared || m.Rows[i].Ratio != nil && !m.Rows[i].Baseline
	}
	if compared {
		notes = append(notes, "dashed line: the peak of the baseline; % and × compare a run's peak with it")
	}
	if len(l.bands) > 1 {
		notes = append(notes, "a run whose peak is less than a quarter of the highest has a separate axis")
	}
	return append(append(notes, missingNote(labels)...), m.Notes...)
}
