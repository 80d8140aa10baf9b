package livetest_test

import (
	"testing"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// Steps are counted the same while a script runs and afterwards; modules on the host make no evaluation; and nothing
// was compiled where torch.compile was only named.
func TestWhatIsEasilyCountedWrong(t *testing.T) {
	python := testkit.Python(t)
	for _, kind := range []string{"gan", "host", "named"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			takeSlot(t)
			last := collect.Progress{}
			r := recordAs(t, environment(), func(e *collect.Experiment) {
				e.Progress = func(p collect.Progress) { last = p }
			}, python, script(t, "counts.py"), kind)
			if last.Steps != 5 || r.report.Steps.Derived != 5 {
				t.Errorf("%d steps while it ran, %d afterwards", last.Steps, r.report.Steps.Derived)
			}
			if p := r.report.Prediction; p == nil || p.Compiled {
				t.Errorf("the prediction is %+v", p)
			}
			if kind != "host" {
				return
			}
			phases, err := schemas.Phases.Read(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			evaluations := 0
			for _, p := range phases {
				if p.Phase == schemas.PhaseEval {
					evaluations++
				}
			}
			if evaluations != 2 {
				t.Errorf("%d evaluations, the script made 2", evaluations)
			}
		})
	}
}
