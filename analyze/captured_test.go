package analyze

import (
	"reflect"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// No published time includes a step that a CUDA graph captured, even if the step's row has a time. All other timed
// steps count.
func TestCapturedSteps(t *testing.T) {
	for _, capturedNS := range []int64{0, 1000} {
		in := fixture.PlainTimes()
		step := func(n int64, instrumented bool) {
			in.Steps = append(in.Steps, schemas.Step{Step: n, Instrumented: instrumented, GPUNS: capturedNS,
				WallNS: 9e9})
			in.Phases = append(in.Phases, schemas.Phase{Step: n, Phase: "between", GPUNS: new(int64(1000))},
				schemas.Phase{Step: n, Phase: "forward", EndNS: 5e9},
				schemas.Phase{Step: n, Phase: "backward", EndNS: 4e9}, schemas.Phase{Step: n, Phase: "optimizer"})
		}
		step(4, true)
		step(5, false)
		both := timing.Remark{Kind: timing.RemarkCaptured, Steps: []int64{4, 5}}
		if r := ListRun(in); r.StepMS == nil || *r.StepMS != 2500 || len(r.Remarks) != 1 ||
			!reflect.DeepEqual(*r.Remarks[0].Times, both) {
			t.Errorf("%+v", r)
		}
		m := timing.ModuleTimes(in, timing.ModuleTimeBy{Dimension: grouping.DimensionModule})
		if d := m.Ranks[0]; d.BareSteps != 2 || d.InstrumentedSteps != 2 || *d.StepMS != 2500 ||
			!reflect.DeepEqual(m.Remarks[0], both) {
			t.Errorf("%+v, %+v", d, m.Remarks)
		}
	}
	in := fixture.PlainTimes()
	for i := range in.Phases { // a step without any event was not captured
		in.Phases[i].GPUNS = nil
	}
	if len(schemas.Captured(in.Phases)) != 0 {
		t.Error("steps without events were captured")
	}
}
