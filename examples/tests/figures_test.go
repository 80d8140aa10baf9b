package examples_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/store"
	"github.com/dpsight/dpsight/schemas/units"
)

// In the figures of every store in examples, no text leaves the picture or overlaps another text, and no shape reaches
// beyond its axis. Bars and timelines show the peak that torch counted.
func TestFiguresAreLegible(t *testing.T) {
	folders, bars, panels := storeFolders(t), 0, 0
	for _, folder := range folders {
		runs, _, err := store.Open(ingesttest.Store(t, folder)).Runs()
		if err != nil {
			t.Fatal(err)
		}
		sums, ladders := reduced(t, runs)
		for _, steps := range []string{report.StepsPeak, report.StepsAll} {
			m := report.Model{Study: compare.NewMatchedStudy(sums, nil, ""), Ladders: ladders, Steps: steps}
			for _, fig := range m.Figures() {
				bad, err := fig.Misplaced()
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range bad {
					t.Errorf("%s, %s: %s", folder, fig.Name, b)
				}
			}
			b, p := showTorchsPeak(t, folder, runs, &m)
			bars, panels = bars+b, panels+p
		}
	}
	if len(folders) < 2 || bars < 60 || panels < 60 {
		t.Errorf("%d bars and %d panels in %d stores", bars, panels, len(folders))
	}
}

// showTorchsPeak checks that each bar ends at its run's peak by torch's own counter. The timeline must mark and name
// that peak where its drawn curve is highest. If the steps with the peak were not recorded, the timeline must call the
// peak "not recorded".
func showTorchsPeak(t *testing.T, folder string, runs []store.Run, m *report.Model) (bars, panels int) {
	t.Helper()
	truth := map[string]int64{}
	for _, r := range runs {
		truth[r.ID] = ingesttest.TorchPeak(t, r.Dir)
	}
	peaks, broken := map[string]int64{}, map[string]bool{}
	for i := range m.Study.Cells {
		c := &m.Study.Cells[i]
		broken[c.Label] = c.BrokenDown()
		peaks[c.Label] = truth[c.RunID]
	}
	shapes := func(kind string) (map[string]canvas.Shape, []string) {
		found, texts := map[string]canvas.Shape{}, []string{}
		for _, f := range m.Figures() {
			if !strings.HasPrefix(f.Name, kind) {
				continue
			}
			c, err := f.Canvas()
			if err != nil {
				t.Fatal(err)
			}
			for _, shape := range c.Shapes {
				found[shape.What] = shape
			}
			for _, l := range c.Labels {
				texts = append(texts, l.Text)
			}
		}
		return found, texts
	}
	drawn, texts := shapes("breakdown")
	inUnits := func(bytes int64) bool { // in the unit of the bar's axis
		return slices.ContainsFunc([]float64{1 << 40, 1 << 30, 1 << 20, 1 << 10}, func(unit float64) bool {
			return slices.ContainsFunc(texts, func(text string) bool {
				number, name, _ := strings.Cut(text, " ")
				return strings.HasSuffix(name, "iB") && number == units.Fixed(float64(bytes)/unit, 2)
			})
		})
	}
	highest := map[canvas.Box]int64{} // the highest value on each axis
	for label, peak := range peaks {
		if bar, ok := drawn["peak of "+label]; ok {
			highest[bar.Within] = max(highest[bar.Within], peak)
		}
	}
	for label, peak := range peaks {
		bar, ok := drawn["peak of "+label]
		if peak == 0 || !ok {
			if ok || broken[label] { // a run without a breakdown may have no bar
				t.Errorf("%s: %s has a peak of %d B, and a bar: %t", folder, label, peak, ok)
			}
			continue
		}
		bars++
		want := bar.Within.X0 + float64(peak)/float64(highest[bar.Within])*(bar.Within.X1-bar.Within.X0)
		if math.Abs(bar.Box.X1-want) > 0.01 {
			t.Errorf("%s: the bar of %s ends at %.2f, torch's peak is at %.2f", folder, label, bar.Box.X1, want)
		}
		if parts, ok := drawn["categories of "+label]; ok && math.Abs(parts.Box.X1-want) > 0.01 {
			t.Errorf("%s: the categories of %s end at %.2f, torch's peak is at %.2f", folder, label, parts.Box.X1, want)
		}
		if !inUnits(peak) {
			t.Errorf("%s: no bar is said to be %s long, as that of %s is", folder, table.Size(peak), label)
		}
	}
	drawn, texts = shapes("timeline-")
	for i := range m.Study.Cells {
		c := &m.Study.Cells[i]
		mark, ok := drawn["peak of "+c.Label]
		if !ok {
			if c.Timeline != nil {
				t.Errorf("%s: the peak of %s is not marked", folder, c.Label)
			}
			continue
		}
		panels++
		area, column := drawn["allocated of "+c.Label], drawn["allocated at the peak of "+c.Label]
		if y := mark.Box.Y0; math.Abs(area.Box.Y0-y) > 0.01 || math.Abs(column.Box.Y0-y) > 0.01 {
			t.Errorf("%s: the peak of %s is marked at %.2f, what is drawn there reaches %.2f and its highest %.2f",
				folder, c.Label, y, column.Box.Y0, area.Box.Y0)
		}
		said := ": peak " + table.Size(peaks[c.Label])
		if c.Timeline.PeakBytes != peaks[c.Label] {
			said += " (torch's counter), not recorded"
		}
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, said) }) {
			t.Errorf("%s: nothing is called %q, for %s", folder, said, c.Label)
		}
	}
	return bars, panels
}

// reduced returns the summaries and ladders that a report needs.
func reduced(t testing.TB, runs []store.Run) ([]analyze.Summary, map[string]ladder.Run) {
	t.Helper()
	var sums []analyze.Summary
	ladders := map[string]ladder.Run{}
	for _, r := range runs {
		tab, err := store.Load(r, analyze.SummaryTables|ladder.Tables)
		if err != nil {
			t.Fatal(err)
		}
		in := *tab
		if len(in.Samples) == 0 {
			sums = append(sums, analyze.Summarize(in))
			continue
		}
		// For a bare run, SummarizeWithLadder returns a ladder without categories and a NoEventsError.
		var none *memory.NoEventsError
		s, ladder, err := analyze.SummarizeWithLadder(in)
		if err != nil && !errors.As(err, &none) {
			t.Fatal(err)
		}
		sums, ladders[r.ID] = append(sums, s), ladder
	}
	return sums, ladders
}
