package analyze

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

func TestRepeatsAreNoted(t *testing.T) {
	repeat := func(id string, ms float64) Summary {
		s := private(id, "ghost", 1000, ms)
		s.Name = "ghost"
		return s
	}
	failed, wall, other := repeat("f", 1), repeat("w", 2), repeat("o", 3)
	failed.Status, wall.StepMS.Clock, other.Name = schemas.StatusOOM, ClockWall, "other"
	around := []Summary{repeat("c", 30), repeat("b", 20), failed, wall, other}
	a, b := repeat("a", 10), repeat("d", 5)
	untimed := repeat("u", 0)
	untimed.StepMS = nil
	before := []string{"before"}
	a.Warnings = before
	NoteRepeats([]*Summary{&a, &untimed}, around)
	if want := []string{"before", "one of 3 repeats in the store: their medians go from 10.0 ms to 30.0 ms, median " +
		"20.0 ms"}; !slices.Equal(a.Warnings, want) || len(before) != 1 || len(untimed.Warnings) != 0 {
		t.Errorf("%q, %q", a.Warnings, untimed.Warnings)
	}
	a.Warnings = nil
	NoteRepeats([]*Summary{&a, &b}, around)
	if want := []string{
		"2 of 4 repeats in the store: their medians go from 5.000 ms to 30.0 ms, median 15.0 ms"}; !slices.Equal(
		a.Warnings, want) || !slices.Equal(b.Warnings, want) {
		t.Errorf("%q, %q", a.Warnings, b.Warnings)
	}
	a.Warnings = nil
	if NoteRepeats([]*Summary{&a}, []Summary{failed, wall, other}); len(a.Warnings) != 0 {
		t.Errorf("no other repeat: %q", a.Warnings)
	}
	// What did not end well is none of those that did.
	if NoteRepeats([]*Summary{&failed}, []Summary{a, b}); len(failed.Warnings) != 0 {
		t.Errorf("of a run that failed: %q", failed.Warnings)
	}
}

// Of an even number of times the median is the mean of the two in the middle, in a study, in a comparison and in a
// gate; bytes are those of the lower one, whose categories sum to them.
func TestMedianOfAnEvenNumber(t *testing.T) {
	v := map[string]any{"method": "vanilla"}
	runs := []Summary{suiteRun("a", "v", v, 0, 100), suiteRun("b", "v", v, 512, 120), suiteRun("c", "v", v, 1024, 200),
		suiteRun("d", "v", v, 2048, 300)}
	want := (runs[1].StepMS.Median + runs[2].StepMS.Median) / 2
	if c := Cells(runs)[0]; c.StepMS.Median != want || c.RunID != "b" {
		t.Errorf("a study: %v ms, bytes of %s", c.StepMS.Median, c.RunID)
	}
	if e := BaselineOf(runs, "").Experiments[0]; e.StepMS.Median != want || *e.PeakBytes != *runs[1].PeakBytes {
		t.Errorf("a gate: %v ms, %d bytes", e.StepMS.Median, *e.PeakBytes)
	}
	ghost := suiteRun("g", "g", map[string]any{"method": "ghost"}, 0, 100)
	for _, m := range []struct {
		name string
		want float64
	}{{MetricTime, want}, {MetricPeak, float64(*runs[1].PeakBytes)}} {
		if doc := compare(t, CompareOptions{Value: Metric{Name: m.name}}, append(slices.Clone(runs),
			ghost)...); *doc.Cells[0].Value != m.want {
			t.Errorf("%s of a comparison: %v, want %v", m.name, *doc.Cells[0].Value, m.want)
		}
	}
}
