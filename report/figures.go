package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

const tradeoffName = "performance_tradeoff"

// undrawn says which picture the report does not have, and why.
func (m *Model) undrawn() []string {
	if len(m.tradeoff().Points) > 0 {
		return nil
	}
	why := "no run has both a peak and a step time"
	if slices.ContainsFunc(m.Study.Cells, func(c compare.Cell) bool {
		return c.PeakBytes != nil && c.CostOf(m.Study.Cost()) != nil
	}) {
		why = "no run that has both a peak and a step time ended well"
	}
	return []string{tradeoffName + " is left out: " + why}
}

// Figures are the pictures of the report.
func (m *Model) Figures() []figure.Figure {
	figures := []figure.Figure{
		{Name: "memory_breakdown_comparison", Title: "Peak GPU memory by category", Picture: m.memoryBreakdown()},
		{Name: "memory_timeline", Title: "GPU memory over the allocator's events", Picture: m.memoryTimeline()},
		{Name: "memory_timeline_categories", Title: "GPU memory by category over the allocator's events",
			Picture: &figure.CategoryTimeline{MemoryTimeline: *m.memoryTimeline()}},
	}
	if trade := m.tradeoff(); len(trade.Points) > 0 {
		figures = append(figures, figure.Figure{Name: tradeoffName, Title: "Peak GPU memory against the cost of a step",
			Picture: trade})
	}
	if ladder := m.deviceLadder(); ladder != nil {
		figures = append(figures, figure.Figure{Name: "device_ladder", Title: "Device memory, from what NVML has in " +
			"use down to categories", Picture: ladder})
	}
	for i := range figures {
		figures[i].Badge = m.Study.CommonBadge()
	}
	return figures
}

func (m *Model) memoryBreakdown() *figure.MemoryBreakdown {
	f := &figure.MemoryBreakdown{Baseline: overWhat(&m.Study), Notes: m.figureNotes()}
	for i := range m.Study.Cells {
		c := &m.Study.Cells[i]
		row := figure.Row{Label: c.Label, Badge: m.badge(c), Failure: ended(c), PeakBytes: c.PeakBytes,
			Overhead: c.Overhead, Baseline: c.IsBaseline()}
		if c.BrokenDown() {
			row.Breakdown = c.Main()
		}
		f.Rows = append(f.Rows, row)
		if c.Status != schemas.StatusOK && c.PeakBytes != nil {
			f.Notes = append(f.Notes, fmt.Sprintf("%s ended early (%s): its bar is of what it did until then", c.Label,
				c.Status))
		}
		if c.PeakLow != nil && *c.PeakLow != *c.PeakHigh {
			n := c.Good
			if n == 0 { // none ended well: the figures use all
				n = len(c.RunIDs)
			}
			f.Notes = append(f.Notes, fmt.Sprintf("%s: median of %d repeats, %s to %s", c.Label, n,
				table.Size(*c.PeakLow), table.Size(*c.PeakHigh)))
		}
		if w := comparisonWords(c.UnlikeBaseline()); len(w) > 0 {
			f.Notes = append(f.Notes, fmt.Sprintf("%s is compared with %s, though %s", c.Label, c.Baseline.Label,
				strings.Join(w, "; ")))
		}
	}
	return f
}

func (m *Model) memoryTimeline() *figure.MemoryTimeline {
	f := &figure.MemoryTimeline{AllSteps: m.allSteps(), Notes: m.figureNotes()}
	for i := range m.Study.Cells {
		c := &m.Study.Cells[i]
		row := figure.TimelineRow{Label: c.Label, Badge: m.badge(c), Failure: ended(c), PeakBytes: c.PeakBytes,
			Timeline: c.Timeline, Breakdown: c.Main()}
		if g := c.Growth; g != nil {
			row.Growth, row.Rate = &g.Trend, "+"+growthRate(g)
		}
		f.Rows = append(f.Rows, row)
	}
	return f
}

// tradeoff shows the cost of a step in time, or the tokens or samples a second where steps are not of one size. Runs
// without times are left out and named; without points there is no picture.
func (m *Model) tradeoff() *figure.Tradeoff {
	cost := m.Study.Cost()
	t := &figure.Tradeoff{Cost: costTitles[cost]}
	var left []string
	ranges, wall := map[string][]string{}, []string{} // labels by what their bars are
	for i := range m.Study.Cells {
		c := &m.Study.Cells[i]
		v := c.CostOf(cost)
		if v == nil || c.PeakBytes == nil || c.Status != schemas.StatusOK {
			text := c.Label
			if badge := m.badge(c); badge != "" {
				text += " [" + badge + "]"
			}
			left = append(left, text)
			continue
		}
		words := spreadWords(c.StepMS, cost)
		ranges[words] = append(ranges[words], c.Label)
		if c.StepMS.Clock == timing.ClockWall {
			wall = append(wall, c.Label)
		}
		t.Points = append(t.Points, figure.Point{Label: c.Label, Badge: m.badge(c), Cost: v.Median, Low: v.Low,
			High: v.High,
			Peak: *c.PeakBytes, PeakLow: min(*c.PeakLow, *c.PeakBytes), PeakHigh: max(*c.PeakHigh, *c.PeakBytes),
			Baseline: c.IsBaseline()})
	}
	for _, words := range sortedKeys(ranges) {
		if len(ranges) > 1 {
			words = strings.Join(ranges[words], ", ") + ": " + words
		}
		t.Notes = append(t.Notes, words)
	}
	switch {
	case len(wall) == len(t.Points) && len(wall) > 0:
		t.Notes = append(t.Notes, "by wall time")
	case len(wall) > 0:
		t.Notes = append(t.Notes, "by GPU time, except for "+strings.Join(wall, ", ")+": by wall time, which cannot be "+
			"compared with it")
	}
	if len(left) > 0 {
		t.Notes = append(t.Notes, "without times, or ended early, and left out: "+strings.Join(left, ", "))
	}
	t.Notes = append(t.Notes, m.figureNotes()...)
	return t
}

var costTitles = map[compare.StepCost]string{compare.CostTime: "step time (ms)", compare.CostTokens: "tokens/s",
	compare.CostSamples: "samples/s"}

// spreadWords explains a point's horizontal bar.
func spreadWords(v *timing.Interval, cost compare.StepCost) string {
	over := "steps"
	if v.Over == timing.OverRepeats {
		over = "repeats"
	}
	if cost != compare.CostTime {
		points := "points: what was done in all timed steps by their time"
		if v.Over == timing.OverRepeats {
			points = "points: medians over repeats"
		}
		if v.Of == timing.OfMedian {
			return points + "; bars: by the 95 % confidence interval of the median time of the " + over
		}
		return points + "; bars: by the fastest and the slowest of the " + over
	}
	if v.Of == timing.OfMedian {
		return "points: medians over " + over + "; bars: 95 % confidence intervals of the median"
	}
	return "points: medians over " + over + "; bars: the fastest and the slowest of the " + over + enclosing(v)
}

// badge returns a run's badge in a figure; "" if a note states it for all.
func (m *Model) badge(c *compare.Cell) string {
	if m.Study.CommonBadge() != "" {
		return ""
	}
	return compare.StatusBadge(&c.Summary.Identity)
}

// figureNotes stand under every figure.
func (m *Model) figureNotes() []string {
	notes := append(ofStudy(&m.Study).notes(), captions(&m.Study)...)
	any := func(source string) bool {
		for i := range m.Study.Cells {
			if m.Study.Cells[i].Source == source {
				return true
			}
		}
		return false
	}
	for i := range m.Study.Cells {
		if c := &m.Study.Cells[i]; c.NormsOnly() {
			notes = append(notes, c.Label+": computes norms, and clips and adds nothing: not private")
		}
	}
	if any(schemas.Predicted) {
		notes = append(notes, predictedNote)
	}
	if any(schemas.Imported) {
		notes = append(notes, importedNote)
	}
	return notes
}
