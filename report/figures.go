package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// Limits of a report: runs in a picture of breakdowns, panels in a picture of overhead, and runs with a picture of
// their own.
const (
	runsAPicture  = 24
	fallsAPicture = 8
	mostPictures  = 24
)

// undrawn lists the pictures that the report leaves out, with reasons.
func (m *Model) undrawn() (notes []string) {
	cells := m.Study.Cells
	if !slices.ContainsFunc(cells, func(c compare.Cell) bool { return c.BrokenDown() }) {
		notes = append(notes, "breakdown is left out: no run has a peak that is broken down")
	}
	timed := 0
	for i := range cells {
		if cells[i].Allocations != nil {
			timed++
		}
	}
	switch {
	case !slices.ContainsFunc(m.timelines(), func(t *figure.Timeline) bool { return !t.Empty() }):
		notes = append(notes, "timeline is left out: no run has allocator events")
	case timed > mostPictures:
		notes = append(notes, fmt.Sprintf("timeline and overhead are of the %d highest peaks; dpsight report RUN draws "+
			"those of others", mostPictures))
	}
	if len(m.tradeoff().Points) > 0 {
		return notes
	}
	why := "no run has both a peak and a step time"
	if slices.ContainsFunc(cells, func(c compare.Cell) bool {
		return c.PeakBytes != nil && c.CostOf(m.Study.Cost()) != nil
	}) {
		why = "no run that has both a peak and a step time ended well"
	}
	return append(notes, "tradeoff is left out: "+why)
}

// Figures returns the pictures of the report. A picture that would show nothing is left out.
func (m *Model) Figures() []figure.Figure {
	figures := slices.Concat(m.breakdowns(), m.overheads())
	if trade := m.tradeoff(); len(trade.Points) > 0 {
		figures = append(figures, figure.Figure{Name: "tradeoff", Title: "Peak GPU memory against the cost of a step",
			Picture: trade})
	}
	if ladder := m.deviceLadder(); ladder != nil {
		figures = append(figures, figure.Figure{Name: "ladder", Title: "Device memory, from what NVML has in use down " +
			"to categories", Picture: ladder})
	}
	figures = append(figures, m.timelineFigures()...)
	for i := range figures {
		figures[i].Badge = m.Study.CommonBadge()
	}
	return figures
}

// parted returns the name of the i-th picture of a kind. The first picture has the kind's name, and later ones have a
// number appended.
func parted(kind string, i int) string {
	if i == 0 {
		return kind
	}
	return fmt.Sprintf("%s-%d", kind, i+1)
}

// breakdowns returns the pictures of the breakdowns of all runs. Runs are near their baselines.
func (m *Model) breakdowns() (figures []figure.Figure) {
	for part := range slices.Chunk(besideBaselines(&m.Study), runsAPicture) {
		if !slices.ContainsFunc(part, (*compare.Cell).BrokenDown) {
			continue
		}
		figures = append(figures, figure.Figure{Name: parted("breakdown", len(figures)),
			Title: "Peak GPU memory by category", Picture: m.memoryBreakdown(part)})
	}
	return figures
}

func (m *Model) memoryBreakdown(cells []*compare.Cell) *figure.MemoryBreakdown {
	f := &figure.MemoryBreakdown{Notes: m.figureNotes()}
	for _, c := range cells {
		row := figure.Row{Number: m.number(c), Label: c.Label, Badge: m.badge(c), Failure: ended(c),
			PeakBytes: c.PeakBytes, Baseline: c.IsBaseline()}
		if c.Baseline != nil {
			row.Over = c.Baseline.PeakBytes
		}
		if c.Overhead != nil {
			row.Ratio = c.Overhead.PeakRatio
		}
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
			if n == 0 { // if no run ended well, the figures use all runs
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

// number returns a cell's row in the tables, from 0.
func (m *Model) number(c *compare.Cell) int {
	return slices.IndexFunc(m.Study.Cells, func(o compare.Cell) bool { return o.RunID == c.RunID })
}

// overheads returns waterfalls from the baseline's peak to each run's peak.
func (m *Model) overheads() (figures []figure.Figure) {
	cells, _ := foremost(besideBaselines(&m.Study), mostPictures)
	var panels []figure.WaterfallPanel
	var notes []string
	for _, c := range cells {
		panel, note := overheadFall(c, ofStudy(&m.Study))
		if note != "" {
			notes = append(notes, note)
		}
		if panel != nil {
			panels = append(panels, *panel)
		}
	}
	for part := range slices.Chunk(panels, fallsAPicture) {
		figures = append(figures, figure.Figure{Name: parted("overhead", len(figures)), Title: "What the peak is over " +
			overWhat(&m.Study), Picture: &figure.Waterfall{Panels: part, Notes: slices.Concat(notes, m.figureNotes())}})
	}
	return figures
}

// overheadFall returns the waterfall from the baseline's peak to a run's peak, or a sentence if only one category
// changes. Bytes that only move from autograd to the hooks of a DP method, or back, do not count as a change.
func overheadFall(c *compare.Cell, all common) (*figure.WaterfallPanel, string) {
	entry := exhibits.Entry{Cell: c}
	changes := entry.Changes()
	if len(changes) == 0 || c.Overhead.PeakDeltaBytes == nil {
		return nil, ""
	}
	net, largest := *c.Overhead.PeakDeltaBytes, int64(0)
	for _, d := range changes {
		largest = max(largest, magnitude(d.DeltaBytes))
	}
	label, base := all.badged(c.Label, &c.Identity), all.badged(c.Baseline.Label, &c.Baseline.Identity)
	p := &figure.WaterfallPanel{Title: "Peak of " + label + " less that of " + base,
		Axis: "Δ from the peak of " + c.Baseline.Label}
	p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepStart, Label: c.Baseline.Label,
		Text: "peak " + table.Size(*c.PeakBytes-net)})
	var others int64
	var names []string
	for _, d := range changes {
		name := strings.ReplaceAll(d.Category, "_", " ")
		if small(d.DeltaBytes, largest) {
			others += d.DeltaBytes
			names = append(names, name)
			continue
		}
		p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepChange, Label: name, Category: d.Category,
			Delta: d.DeltaBytes, Text: signedSize(d.DeltaBytes)})
	}
	if len(p.Steps) == 2 {
		return nil, label + ": " + signedSize(net) + " over " + base + ", of " + p.Steps[1].Label
	}
	if others != 0 {
		rest, _ := together(names, "other categories")
		p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepChange, Label: rest, Delta: others,
			Text: signedSize(others)})
	}
	p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepTotal, Label: c.Label, Delta: net,
		Text: "peak " + table.Size(*c.PeakBytes) + " (" + signedSize(net) + ")"})
	return p, ""
}

// Timed returns the cells whose timelines are drawn, as indices into the study's cells. If the study has many cells,
// Timed returns those with the highest peaks.
func (m *Model) Timed() (places []int) {
	cells := m.Study.Cells
	for i := range cells {
		if cells[i].Allocations != nil && cells[i].PeakBytes != nil {
			places = append(places, i)
		}
	}
	if len(places) > mostPictures {
		slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(*cells[b].PeakBytes, *cells[a].PeakBytes) })
		places = places[:mostPictures]
		slices.Sort(places)
	}
	return places
}

// timelines returns the timelines that are drawn. Some may be empty.
func (m *Model) timelines() (out []*figure.Timeline) {
	for _, i := range m.Timed() {
		c := &m.Study.Cells[i]
		t := &figure.Timeline{Number: i, Label: c.Label, Badge: m.badge(c), PeakBytes: c.PeakBytes, Timeline: c.Timeline,
			AllSteps: m.allSteps(), Notes: m.runNotes(c)}
		if g := c.Growth; g != nil {
			t.Growth, t.Rate = &g.Trend, "+"+growthRate(g)
		}
		out = append(out, t)
	}
	return out
}

// runNotes returns the notes under a picture of one run.
func (m *Model) runNotes(c *compare.Cell) []string {
	var facts []string
	for _, what := range captionOrder {
		if v := c.Fact(what); v != "" {
			facts = append(facts, captionText(what, v))
		}
	}
	var notes []string
	if len(facts) > 0 {
		notes = append(notes, strings.Join(facts, ", "))
	}
	if n := len(c.RunIDs); n > 1 {
		notes = append(notes, fmt.Sprintf("of run %s: of %d repeats the one with the median peak", c.RunID, n))
	}
	if c.NormsOnly() {
		notes = append(notes, "computes norms, and clips and adds nothing: not private")
	}
	return append(notes, sourceNotes(&c.Identity)...)
}

// timelineFigures returns one picture for each run. If there are many runs, it draws those with the highest peaks.
func (m *Model) timelineFigures() (figures []figure.Figure) {
	shown := slices.DeleteFunc(m.timelines(), (*figure.Timeline).Empty)
	names := uniqueNames{}
	for i, t := range shown {
		figures = append(figures, figure.Figure{Name: "timeline-" + names.of(t.Label, i), Title: "GPU memory of " + t.Label +
			" over the allocator's events", Picture: t})
	}
	return figures
}

// tradeoff returns the picture of peaks against step times. If steps differ in size, it shows tokens or samples a
// second instead of times. A note names the runs without times, which are left out. Without any points there is no
// picture.
func (m *Model) tradeoff() *figure.Tradeoff {
	cost := m.Study.Cost()
	t := &figure.Tradeoff{Cost: costTitles[cost]}
	var left []string
	ranges, wall := map[string][]string{}, []string{} // labels, by what their error bars show
	panels, shorts := m.settings()
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
		t.Points = append(t.Points, figure.Point{Label: c.Label, Panel: panels[c.RunID], Short: shorts[c.RunID],
			Badge: m.badge(c), Cost: v.Median, Low: v.Low,
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

// settings returns, by run id, each run's values of the swept parameters in words, and its name among the runs with
// these values.
func (m *Model) settings() (places, names map[string]string) {
	places, names = map[string]string{}, map[string]string{}
	p := exhibits.Arrange(&m.Study, nil, nil)
	for _, g := range p.Groups {
		var words []string
		for i, v := range g.Values {
			words = append(words, p.Swept[i]+" "+v)
		}
		for i := range g.Entries {
			e := &g.Entries[i]
			places[e.RunID], names[e.RunID] = strings.Join(words, ", "), e.Key
		}
	}
	return places, names
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

// badge returns a run's badge in a figure, or "" if a note states one badge for all runs.
func (m *Model) badge(c *compare.Cell) string {
	if m.Study.CommonBadge() != "" {
		return ""
	}
	return compare.StatusBadge(&c.Summary.Identity)
}

// figureNotes returns the notes under every figure.
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
