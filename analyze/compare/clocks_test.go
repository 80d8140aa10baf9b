package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	. "github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/fixture"
)

// clocked returns a run whose steps take ms milliseconds. The steps have GPU time if gpu is true, and otherwise wall
// time.
func clocked(id, method string, ms int64, gpu bool) analyze.Summary {
	in := fixture.TimedRun(id, ms, ms, ms)
	in.Manifest.Name, in.Manifest.Params = method, map[string]any{"method": method}
	if !gpu {
		for i := range in.Steps {
			in.Steps[i].GPUNS = 0
		}
	}
	return analyze.Summarize(in)
}

// A comparison's cell has no common median of GPU times and wall times, and neither has an experiment with repeats.
func TestClocksAreNotMixed(t *testing.T) {
	runs := []analyze.Summary{clocked("w", "ghost", 900, false), clocked("g", "ghost", 100, true),
		clocked("v", "vanilla", 50,
			true)}
	for _, value := range []string{MetricTime, MetricSamples, "phase:forward"} {
		m, err := ParseMetric(value)
		if err != nil {
			t.Fatal(err)
		}
		c := compare(t, Options{Value: m, Rows: []string{"method"}}, runs...)
		said := strings.Join(c.Warnings, "\n")
		if c.Cells[0].N != 1 || *c.Cells[0].Value != *m.ValueIn(&runs[1]) || c.Cells[0].Delta == nil ||
			len(c.Cells[0].RunIDs) != 2 ||
			!strings.Contains(said, "ghost: GPU time and wall time have no common median, so runs with only wall "+
				"times are left out: w") {
			t.Errorf("%s: %+v, %q", value, c.Cells[0], said)
		}
	}
	if c := compare(t, Options{Rows: []string{"method"}}, runs...); c.Cells[0].N != 2 ||
		strings.Contains(strings.Join(c.Warnings, "\n"), "wall") {
		t.Errorf("bytes have no clock: %+v, %q", c.Cells[0], c.Warnings)
	}
	wall := compare(t, Options{Value: Metric{Name: MetricTime}, Rows: []string{"method"}}, runs[0], runs[2])
	if wall.Cells[0].N != 1 || wall.Cells[0].Delta != nil || !strings.Contains(strings.Join(wall.Warnings, "\n"),
		"GPU time cannot be compared with wall time") {
		t.Errorf("wall time beside GPU time: %+v, %q", wall.Cells[0], wall.Warnings)
	}
	cells := Cells([]analyze.Summary{clocked("g", "ghost", 100, true), clocked("w", "ghost", 900, false),
		clocked("h", "ghost", 100, true)})
	if len(cells) != 1 || cells[0].StepMS.Median != 100 || *cells[0].SamplesPerS != 80 ||
		!slices.ContainsFunc(cells[0].Remarks, func(r Remark) bool {
			return r.Kind == RemarkClocks && r.N == 2 && r.Of == 3
		}) {
		t.Errorf("%d cells, %+v, %v, %+v", len(cells), cells[0].StepMS, *cells[0].SamplesPerS, cells[0].Remarks)
	}
}
