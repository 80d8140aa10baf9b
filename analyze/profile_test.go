package analyze

import (
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// looped returns a run of a DP method with round numbers. The run has a set-up, one step of warm-up, and two steps of
// two microbatches each.
func looped(method string) schemas.Tables {
	in := fixture.Sized(method, map[schemas.Category]int64{schemas.Parameters: 100, schemas.HookActivations: 7,
		schemas.NormSamples: 3, schemas.ClipTemporaries: 5, schemas.OptimizerState: 200})
	in.Report.Devices[0].Events = 99
	var k, seq, at int64
	phase := func(step int64, name string, end, peak int64) {
		in.Phases = append(in.Phases, schemas.Phase{Step: step, Phase: name, BeginK: k, EndK: k + 1, BeginSeq: seq,
			EndSeq: seq + 1, AllocatedBegin: new(at), AllocatedEnd: new(end),
			PeakBytes: new(peak), PeakSeq: seq + 1, StartNS: 1e9 * k, EndNS: 1e9 * (k + 1)})
		k, seq, at = k+1, seq+1, end
	}
	phase(-1, schemas.PhaseSetupModel, 100, 110)
	phase(-1, schemas.PhaseSetupOptimizer, 101, 101)
	phase(-1, schemas.PhaseSetupPrivacy, 102, 102)
	for step := range int64(3) {
		begin, from := seq, k
		for micro := range int64(2) {
			phase(step, schemas.PhaseForward, 200+micro, 210+10*step)
			phase(step, schemas.PhaseBackwardNorm, 250, 300+step)
			phase(step, schemas.PhaseBackwardGrad, 150+micro, 260)
		}
		phase(step, schemas.PhaseOptimizer, 160, 170)
		phase(step, schemas.PhaseZeroGrad, 120, 160)
		in.Steps = append(in.Steps, schemas.Step{Step: step, Warmup: step == 0, Recorded: true, BeginSeq: begin,
			EndSeq: seq, AllocatedEnd: new(int64(120)), ReservedEnd: new(4000 + step),
			StartNS: 1e9 * from, EndNS: 1e9 * k, GPUNS: (10 + 10*step*step) * 1e6, WallNS: 5e7})
	}
	return in
}

func TestProfile(t *testing.T) {
	c := Profile(looped("ghost"))
	if *c.MeanStepMS != 35 || *c.PeakBytes != 315 || *c.Components != (Components{100, 0, 7, 3, 5, 200}) ||
		*c.HeldByHooks != 7 || *c.EndAllocated != 120 || *c.EndReserved != 4002 {
		t.Errorf("%+v, %+v, mean %v, peak %v", c, c.Components, *c.MeanStepMS, *c.PeakBytes)
	}
	type want struct {
		point              Point
		iteration          int
		allocated, highest int64
		second             int64
	}
	for i, w := range []want{
		{ModelLoaded, -1, 100, 110, 1}, {WrappedWithDP, -1, 102, 110, 3}, {OptimizerCreated, -1, 101, 110, 2},
		{AfterWarmup, -1, 120, 120, 11},
		{BeforeForward, 0, 120, 120, 11}, {AfterForward, 0, 201, 301, 15}, {AfterBackward, 0, 151, 301, 17},
		{AfterStep, 0, 160, 301, 18},
		{BeforeForward, 1, 120, 301, 19}, {AfterForward, 1, 201, 302, 23}, {AfterBackward, 1, 151, 302, 25},
		{AfterStep, 1, 160, 302, 26},
	} {
		if i >= len(c.Points) {
			t.Fatalf("%d points", len(c.Points))
		}
		if p := c.Points[i]; p.Point != w.point || p.Iteration != w.iteration || *p.Allocated != w.allocated ||
			*p.Highest != w.highest || *p.TimeNS != w.second*1e9 {
			t.Errorf("point %d: %d of iteration %d: %d allocated, %d at most, at %d; want %+v", i, p.Point, p.Iteration,
				*p.Allocated, *p.Highest, *p.TimeNS, w)
		}
	}
	if len(c.Points) != 12 {
		t.Errorf("%d points", len(c.Points))
	}
}

// If a run lacks a value, the profile has nil and never 0.
func TestProfileOfLess(t *testing.T) {
	in := looped("ghost")
	in.Manifest.Source = schemas.Predicted
	c := Profile(in)
	if c.MeanStepMS != nil || c.Points[0].Allocated == nil {
		t.Errorf("a predicted run has step times, or no bytes: %+v", c.Points[0])
	}
	if c.Points[0].TimeNS == nil {
		t.Errorf("a predicted run's points have no order: %+v", c.Points[0])
	}

	in = looped("ghost")
	in.Report.Devices[0].Events = 0
	in.Report.Devices[0].TorchPeakAllocatedBytes = &in.Report.Devices[0].PeakAllocatedBytes
	in.Allocations, in.Owners, in.Manifest.Bare = nil, nil, true
	for i := range in.Phases {
		in.Phases[i].AllocatedBegin, in.Phases[i].AllocatedEnd, in.Phases[i].PeakBytes = nil, nil, nil
	}
	c = Profile(in)
	if c.Components != nil || c.HeldByHooks != nil || c.PeakBytes == nil || *c.EndAllocated != 120 {
		t.Errorf("a bare run: %+v", c)
	}
	for _, p := range c.Points {
		counted := p.Point == AfterWarmup // torch's counters give the bytes at the end of a step
		if p.Point == AfterStep {
			counted = true
		}
		reset := p.Point == AfterWarmup // after the warm-up, torch's highest value restarts at the allocated bytes
		if (p.Allocated != nil) != counted || (p.Highest != nil) != reset || reset && *p.Highest != *p.Allocated ||
			p.TimeNS == nil {
			t.Errorf("a bare run's point: %+v", p)
		}
	}

	in = looped("ghost")
	in.Phases, in.Steps = nil, nil
	c = Profile(in)
	if c.MeanStepMS != nil || c.EndAllocated != nil || len(c.Points) != 3 || c.Points[0].Allocated != nil ||
		c.Components == nil {
		t.Errorf("a run without phases: %+v", c)
	}

	in = looped("ghost")
	in.Steps[2].Recorded = false // recording ended before this step
	c = Profile(in)
	if p := c.Points[9]; p.Point != AfterForward || p.Allocated != nil || p.TimeNS == nil {
		t.Errorf("a step that was not recorded: %+v", p)
	}
	if p := c.Points[11]; p.Point != AfterStep || *p.Allocated != 120 || *p.Reserved != 4002 || p.Highest != nil {
		t.Errorf("the end of a step that was not recorded: %+v", p)
	}

	in = looped("ghost")
	in.Manifest.Status = schemas.StatusOOM
	if c = Profile(in); c.PeakBytes != nil || c.Components != nil {
		t.Errorf("a run that failed: %+v", c)
	}
}
