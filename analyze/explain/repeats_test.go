package explain

import (
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

func TestOtherRepeats(t *testing.T) {
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
	found := OtherRepeats([]*analyze.Summary{&a, &untimed}, around)
	if len(found) != 1 || found[0].Run != &a || found[0].Here != 1 || found[0].StepMS.N != 3 ||
		found[0].StepMS.Low != 10 || found[0].StepMS.High != 30 || found[0].StepMS.Median != 20 {
		t.Errorf("%+v", found)
	}
	found = OtherRepeats([]*analyze.Summary{&a, &b}, around)
	if len(found) != 2 || found[1].Run != &b || found[0].Here != 2 || found[0].StepMS.N != 4 ||
		found[0].StepMS.Low != 5 || *found[0].StepMS != *found[1].StepMS {
		t.Errorf("%+v", found)
	}
	if found := OtherRepeats([]*analyze.Summary{&a}, []analyze.Summary{failed, wall, other}); len(found) != 0 {
		t.Errorf("no other repeat: %+v", found)
	}
	// If a run did not end well, it is no repeat of the runs that did.
	if found := OtherRepeats([]*analyze.Summary{&failed}, []analyze.Summary{a, b}); len(found) != 0 {
		t.Errorf("of a run that failed: %+v", found)
	}
}
