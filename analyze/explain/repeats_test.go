package explain

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

func TestRepeatsAreNoted(t *testing.T) {
	repeat := func(id string, ms float64) analyze.Summary {
		s := summaries.Private(id, "ghost", 1000, ms)
		s.Name = "ghost"
		return s
	}
	failed, wall, other := repeat("f", 1), repeat("w", 2), repeat("o", 3)
	failed.Status, wall.StepMS.Clock, other.Name = schemas.StatusOOM, timing.ClockWall, "other"
	around := []analyze.Summary{repeat("c", 30), repeat("b", 20), failed, wall, other}
	a, b := repeat("a", 10), repeat("d", 5)
	untimed := repeat("u", 0)
	untimed.StepMS = nil
	before := []string{"before"}
	a.Warnings = before
	NoteRepeats([]*analyze.Summary{&a, &untimed}, around)
	if want := []string{"before", "one of 3 repeats in the store: their medians go from 10.0 ms to 30.0 ms, median " +
		"20.0 ms"}; !slices.Equal(a.Warnings, want) || len(before) != 1 || len(untimed.Warnings) != 0 {
		t.Errorf("%q, %q", a.Warnings, untimed.Warnings)
	}
	a.Warnings = nil
	NoteRepeats([]*analyze.Summary{&a, &b}, around)
	if want := []string{
		"2 of 4 repeats in the store: their medians go from 5.000 ms to 30.0 ms, median 15.0 ms"}; !slices.Equal(
		a.Warnings, want) || !slices.Equal(b.Warnings, want) {
		t.Errorf("%q, %q", a.Warnings, b.Warnings)
	}
	a.Warnings = nil
	if NoteRepeats([]*analyze.Summary{&a}, []analyze.Summary{failed, wall, other}); len(a.Warnings) != 0 {
		t.Errorf("no other repeat: %q", a.Warnings)
	}
	// What did not end well is none of those that did.
	if NoteRepeats([]*analyze.Summary{&failed}, []analyze.Summary{a, b}); len(failed.Warnings) != 0 {
		t.Errorf("of a run that failed: %q", failed.Warnings)
	}
}
