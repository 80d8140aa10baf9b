package livetest_test

import (
	"testing"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// An update that only creates the optimizer's state does not count as a step. torch makes such an update before it
// loads a state, and a script may make such an update with zero gradients before it trains. If a script computes all
// its gradients without a backward, each update is a step. In all these scripts the optimizer's state counts as
// optimizer state.
func TestUpdatesThatMakeState(t *testing.T) {
	python := testkit.Python(t)
	for _, c := range []struct {
		kind  string
		steps int64
		state int64 // bytes of the optimizer's state of two weights, without rounding
	}{{"plain", 10, 2 * 2 * 64 * 64 * 4}, {"fsdp", 10, 2 * 2 * 64 * 64 * 4},
		{"named", 10, 2 * 2 * 64 * 64 * 4}, {"zeros", 10, 2 * 2 * 64 * 64 * 4},
		{"both", 10, 2 * 2 * 64 * 64 * 4}, {"by_hand", 10, 2 * 2 * 64 * 64 * 4}, {"evolution", 10, 0}} {
		t.Run(c.kind, func(t *testing.T) {
			testkit.Part(t, c.kind != "plain")
			t.Parallel()
			takeSlot(t)
			last := collect.Progress{}
			r := recordAs(t, environment(), func(e *collect.Experiment) {
				e.Progress = func(p collect.Progress) { last = p }
			}, python, script(t, "resumed.py"), c.kind)
			if last.Steps != c.steps || r.report.Steps.Derived != c.steps {
				t.Errorf("%d steps while it ran, %d afterwards", last.Steps, r.report.Steps.Derived)
			}
			expectConserved(t, r.dir, r.report)
			owners, err := schemas.Owners.Read(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			allocations, err := schemas.Allocations.Read(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			size := map[int64]int64{}
			for _, a := range allocations {
				size[a.AllocID] = a.RequestedBytes
			}
			held := int64(0)
			for _, o := range owners {
				if o.EndSeq == 0 && o.Category == schemas.OptimizerState && size[o.AllocID] > 512 {
					held += size[o.AllocID]
				}
			}
			if held != c.state {
				t.Errorf("%d bytes of optimizer state at the end, not %d", held, c.state)
			}
		})
	}
}

// dpsight counts as many steps during a run as ingest does afterwards. Modules on the host do not count as an
// evaluation. A prediction does not count as compiled if the script only mentions torch.compile.
func TestWhatIsEasilyCountedWrong(t *testing.T) {
	python := testkit.Python(t)
	for _, kind := range []string{"gan", "host", "named"} {
		t.Run(kind, func(t *testing.T) {
			testkit.Part(t, kind != "host")
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
