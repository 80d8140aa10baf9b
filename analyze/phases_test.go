package analyze

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
)

// The table of phases has no GPU time of recompute, which bare steps have in backward's: it says so, and how much it is
// where modules were timed.
func TestPhasesSayWhereRecomputeIs(t *testing.T) {
	in := fixture.TimedModules()
	// 24 of 88, of 74
	want := "recompute has no GPU ms of its own: in bare steps it is part of backward's; of that it is 20.2 ms a " +
		"step, by its share of instrumented steps (dpsight analyze time)"
	if got := Phases(in).Warnings; !slices.Equal(got, []string{want}) {
		t.Errorf("%q", got)
	}
	in.ModuleTimes = nil
	if got := Phases(in).Warnings; !slices.Equal(got, []string{"recompute has no GPU ms of its own: in bare steps it " +
		"is part of backward's"}) {
		t.Errorf("without times of modules %q", got)
	}
	for i := range in.Steps {
		in.Steps[i].GPUNS = 0
	}
	for i := range in.Phases {
		in.Phases[i].GPUNS = 0
	}
	if got := Phases(in).Warnings; len(got) > 0 {
		t.Errorf("without any times %q", got)
	}
}
