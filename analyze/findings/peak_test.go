package findings

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/clipping"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// Each finding with a threshold appears just above its threshold, with its saving. The finding does not appear just
// below its threshold.
func TestThresholds(t *testing.T) {
	of := func(c schemas.Category, bytes int64) fixture.Part { return fixture.Part{Category: c, Bytes: bytes} }
	in := func(p fixture.Part, module int64) fixture.Part { p.Module = module; return p }
	born := func(p fixture.Part, phase string) fixture.Part { p.Phase = phase; return p }
	on := func(p fixture.Part, stream uint64) fixture.Part { p.Stream = stream; return p }
	for _, c := range []struct {
		id           string
		above, below []fixture.Part
		saves        int64 // -1 if the finding states no saving
	}{
		{PerSample, []fixture.Part{of(schemas.Parameters, 900), of(schemas.PerSampleGradients, 100)},
			[]fixture.Part{of(schemas.Parameters, 901), of(schemas.PerSampleGradients, 99)}, 100},
		{PerSampleEmbedding, []fixture.Part{of(schemas.Parameters, 980), in(of(schemas.PerSampleGradients, 20), 1)},
			[]fixture.Part{of(schemas.Parameters, 980), in(of(schemas.PerSampleGradients, 20), 2)}, 20},
		{ClipTemporaries, []fixture.Part{of(schemas.Parameters, 950), in(of(schemas.ClipTemporaries, 50), 2)},
			[]fixture.Part{of(schemas.Parameters, 951), in(of(schemas.ClipTemporaries, 49), 2)}, 50},
		{SharedHooks, []fixture.Part{of(schemas.Parameters, 990), {Category: schemas.HookActivations, Bytes: 5},
			{Category: schemas.Activations, Bytes: 5, More: schemas.HookActivations}},
			[]fixture.Part{of(schemas.Parameters, 990), {Category: schemas.HookActivations, Bytes: 6},
				{Category: schemas.Activations, Bytes: 4, More: schemas.HookActivations}}, -1},
		{OwnHooks, []fixture.Part{of(schemas.Parameters, 990), of(schemas.HookActivations, 10)},
			[]fixture.Part{of(schemas.Parameters, 990), {Category: schemas.Activations, Bytes: 10,
				More: schemas.HookActivations}}, 10},
		{StreamWorkspaces, []fixture.Part{of(schemas.Parameters, 970), on(of(schemas.Workspace, 20), 7),
			on(of(schemas.Workspace, 10), 8)},
			[]fixture.Part{of(schemas.Parameters, 970), on(of(schemas.Workspace, 20), 7),
				on(of(schemas.Workspace, 10), 7)},
			10},
		{ThreadWorkspaces, []fixture.Part{of(schemas.Parameters, 980), of(schemas.Workspace, 10),
			of(schemas.Workspace, 10)}, []fixture.Part{of(schemas.Parameters, 979), of(schemas.Workspace, 10),
			of(schemas.Workspace, 11)}, 10},
		{OutputCopies, []fixture.Part{of(schemas.Parameters, 936), in(of(schemas.Outputs, 32), 2),
			of(schemas.ActivationGradients, 32)},
			[]fixture.Part{of(schemas.Parameters, 936), in(of(schemas.Outputs, 32), 2),
				in(of(schemas.ActivationGradients, 32),
					3)}, 56},
		// If a script calls the parts of a model one after another, only the result of the last part is the model's
		// output.
		{OutputCopies, []fixture.Part{of(schemas.Parameters, 936), in(of(schemas.Outputs, 32), 2),
			of(schemas.ActivationGradients, 32)},
			[]fixture.Part{of(schemas.Parameters, 935), in(of(schemas.Outputs, 32), 2),
				of(schemas.ActivationGradients, 32), in(of(schemas.Outputs, 1), 3)}, 56},
		{OptimizerPeak, []fixture.Part{of(schemas.Parameters, 950), born(of(schemas.OptimizerTemporaries, 50),
			schemas.PhaseOptimizer)},
			[]fixture.Part{of(schemas.Parameters, 951), born(of(schemas.OptimizerTemporaries, 49),
				schemas.PhaseOptimizer)},
			50},
		// Opacus adds noise to the gradient and keeps the sum in memory. An optimizer without noise does not need
		// memory for that sum.
		{OptimizerPeak, []fixture.Part{of(schemas.Parameters, 650), born(of(schemas.OptimizerTemporaries, 50),
			schemas.PhaseOptimizer), born(of(schemas.OptimizerTemporaries, 300), schemas.PhaseNoise)},
			[]fixture.Part{of(schemas.Parameters, 650), born(of(schemas.OptimizerTemporaries, 350),
				schemas.PhaseNoise)}, 50},
		{Slack, []fixture.Part{{Category: schemas.Parameters, Bytes: 980, Slack: 20}},
			[]fixture.Part{{Category: schemas.Parameters, Bytes: 981, Slack: 19}}, 20},
		{RuleOfThumb, []fixture.Part{of(schemas.Parameters, 500), of(schemas.Activations, 450), of(schemas.Inputs, 50)},
			[]fixture.Part{of(schemas.Parameters, 500), of(schemas.Activations, 451), of(schemas.Inputs, 49)}, -1},
	} {
		f := theFinding(t, inspected(fixture.PeakOf(c.above...)), c.id)
		switch {
		case f == nil:
			t.Errorf("no %s", c.id)
		case c.saves < 0 && f.SavesBytes != nil || c.saves >= 0 && (f.SavesBytes == nil || *f.SavesBytes != c.saves):
			t.Errorf("%s does not save %d: %+v", c.id, c.saves, f)
		}
		if f := theFinding(t, inspected(fixture.PeakOf(c.below...)), c.id); f != nil {
			t.Errorf("%s is below its threshold: %+v", c.id, f)
		}
	}
}

// A saving is at most the distance to the next highest moment. If no step with tags reached the peak, the finding
// states no saving.
func TestSavingsAreOfThePeak(t *testing.T) {
	in := fixture.PeakOf(fixture.Part{Category: schemas.Parameters, Bytes: 500},
		fixture.Part{Category: schemas.PerSampleGradients, Bytes: 400},
		fixture.Part{Category: schemas.Activations, Bytes: 300})
	// The allocated bytes are 900, then 500 after event 3, and then 800 with the activations of event 4.
	in.Allocations[1].FreeRequestedSeq, in.Owners[1].EndSeq = 3, 3
	in.Allocations[2].AllocSeq, in.Owners[2].BeginSeq = 4, 4
	in.Steps[0].EndSeq = 4
	v := &in.Report.Devices[0]
	v.Events, v.PeakSeq, v.PeakAllocatedBytes = 4, 2, 900
	*v.InstrumentedPeakSeq = 2
	if f := theFinding(t, inspected(in), PerSample); f == nil || *f.Bytes != 400 || *f.SavesBytes != 100 {
		t.Errorf("%+v", f)
	}
	v.InstrumentedPeakSeq = nil
	if f := theFinding(t, inspected(in), PerSample); f == nil || f.SavesBytes != nil {
		t.Errorf("%+v", f)
	}
}

// If the run died in a step, the phases of this step also limit a saving, even if the peak lies in another step.
func TestSavingsOfRunThatDied(t *testing.T) {
	// first and last are the bytes of the optimizer's temporaries in the first and in the last step.
	for _, c := range []struct{ first, last, peak, at int64 }{{400, 100, 900, 4}, {350, 400, 900, 8}} {
		in := fixture.PeakOf(fixture.Part{Category: schemas.Parameters, Bytes: 500})
		held := func(from, to, bytes int64, category schemas.Category, phase string) {
			in.Allocations = append(in.Allocations, schemas.Allocation{AllocID: from, Address: uint64(from) << 20,
				RequestedBytes: bytes, BlockBytes: bytes, AllocSeq: from, FreeRequestedSeq: to, Phase: phase})
			in.Owners = append(in.Owners, schemas.Owner{AllocID: from, Category: category, BeginSeq: from, EndSeq: to,
				Evidence: schemas.Tagged})
		}
		held(2, 3, 100, schemas.Activations, schemas.PhaseForward) // 600 bytes are allocated now
		held(4, 5, c.first, schemas.OptimizerTemporaries, schemas.PhaseOptimizer)
		held(6, 7, 200, schemas.Activations, schemas.PhaseForward) // 700 bytes are allocated now
		held(8, 0, c.last, schemas.OptimizerTemporaries, schemas.PhaseOptimizer)
		// The second step was not completed, so it has no row.
		in.Steps = []schemas.Step{{Instrumented: true, Recorded: true, BeginSeq: 1, EndSeq: 5}}
		in.Phases = []schemas.Phase{
			{Phase: schemas.PhaseForward, BeginK: 1, BeginSeq: 1, EndSeq: 3, PeakBytes: new(int64(600))},
			{Phase: schemas.PhaseOptimizer, BeginK: 2, BeginSeq: 3, EndSeq: 5, PeakBytes: new(500 + c.first)},
			{Step: 1, Phase: schemas.PhaseForward, BeginK: 3, BeginSeq: 5, EndSeq: 7, PeakBytes: new(int64(700))},
			{Step: 1, Phase: schemas.PhaseOptimizer, BeginK: 4, BeginSeq: 7, EndSeq: 8, PeakBytes: new(500 + c.last)}}
		v := &in.Report.Devices[0]
		v.Events, v.PeakSeq, v.InstrumentedPeakSeq, v.PeakAllocatedBytes = 8, c.at, new(c.at), c.peak
		if f := theFinding(t, inspected(in), OptimizerPeak); f == nil || f.SavesBytes == nil ||
			*f.SavesBytes != 200 || f.At.Event != c.at {
			t.Errorf("peak after event %d: %+v", c.at, f)
		}
	}
}

// If a change would save nothing, dpsight does not advise it. A change saves nothing if another moment is as high as
// the peak, or if no other method has a lower peak.
func TestAdviceThatSavesNothingIsNotGiven(t *testing.T) {
	in := fixture.PeakOf(fixture.Part{Category: schemas.Parameters, Bytes: 500},
		fixture.Part{Category: schemas.ClipTemporaries, Bytes: 400,
			Module: 2}, fixture.Part{Category: schemas.Activations, Bytes: 400})
	// The allocated bytes are 900, then 500 after event 3, and then 900 with the activations of event 4.
	in.Allocations[1].FreeRequestedSeq, in.Owners[1].EndSeq = 3, 3
	in.Allocations[2].AllocSeq, in.Owners[2].BeginSeq = 4, 4
	in.Steps[0].EndSeq = 4
	v := &in.Report.Devices[0]
	v.Events, v.PeakSeq, v.PeakAllocatedBytes = 4, 2, 900
	*v.InstrumentedPeakSeq = 2
	f := theFinding(t, inspected(in), ClipTemporaries)
	if f == nil || *f.Bytes != 400 || *f.SavesBytes != 0 || !f.Idle {
		t.Errorf("%+v", f)
	}

	for _, c := range []struct {
		peak   int64
		step   float64
		sum    bool // if true, there is also advice about the loss
		better bool
		saves  int64
	}{{900, 120, true, true, 100}, {1000, 120, true, false, -1}, {1000, 120, false, false, 0},
		{1100, 120, false, false, 0}, {1000, 80, false, true, 0}} {
		facts := ClipTemporariesFacts{Advice: []clipping.Advice{clipping.Tiles}}
		if c.sum {
			facts.Advice = append(facts.Advice, clipping.Sum)
		}
		n := Checked{Summary: summaries.Private("g", "ghost", 1000, 100), findings: []Finding{{ID: ClipTemporaries,
			Bytes: new(int64(300)), SavesBytes: new(int64(300)), Facts: facts, instead: []string{"flash"}}}}
		f := theFinding(t, Find([]Checked{n}, []analyze.Summary{summaries.Private("f", "flash", c.peak,
			c.step)}).Runs[0].Findings,
			ClipTemporaries)
		saves := int64(-1) // -1 is an unknown saving
		if f.SavesBytes != nil {
			saves = *f.SavesBytes
		}
		if saves != c.saves || (f.Methods.Best != nil) != c.better || f.Methods.Lowest.PeakBytes != c.peak || f.Idle {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

// If the fastest of several methods does not have the lowest peak, the finding names the fastest method and the method
// with the lowest peak, each with its figures.
func TestFasterMethodIsNotTheLowest(t *testing.T) {
	n := Checked{Summary: summaries.Private("g", "ghost", 1000<<20, 100), findings: []Finding{{ID: ClipTemporaries,
		Bytes: new(int64(300)), instead: []string{"flash", "bk"}}}}
	f := theFinding(t, Find([]Checked{n}, []analyze.Summary{summaries.Private("run-flash", "flash", 1010<<20, 120),
		summaries.Private("run-bk", "bk", 1200<<20, 60)}).Runs[0].Findings, ClipTemporaries)
	if f == nil || *f.SavesBytes != 0 || f.SavesMS == nil || *f.SavesMS != 40 || f.Methods.Lower ||
		f.Methods.Lowest.Run.RunID != "run-flash" || f.Methods.Best.Run.RunID != "run-bk" {
		t.Errorf("%+v", f)
	}
}

// Findings that ended the run come first. The other findings are ordered by what they save, and then by their size.
func TestFindingsAreInOrder(t *testing.T) {
	list := []Finding{{ID: "b", Bytes: new(int64(10)), Share: new(0.1)}, {ID: "a", Bytes: new(int64(90)),
		Share: new(0.9)}, {ID: "none"},
		{ID: "saves", Bytes: new(int64(20)), Share: new(0.2), SavesBytes: new(int64(10))}, {ID: "ms", MS: new(5.0),
			Share: new(0.5), SavesMS: new(5.0)}, {ID: OOM, Facts: OOMFacts{Request: &memory.FailedRequest{Fatal: true}}},
		// If a finding saves bytes, these bytes determine its place, and not its size.
		{ID: "smaller", MS: new(0.0), Of: OfStep, Share: new(0.0), SavesMS: new(0.0), SavesBytes: new(int64(40))},
		{ID: "reserved", Bytes: new(int64(500)), Of: OfPeakReserved, Share: new(0.5), SavesBytes: new(int64(300))}}
	peak := int64(100)
	run := analyze.Summary{PeakBytes: &peak, PeakReservedBytes: new(int64(1000)), StepMS: &timing.Interval{Median: 10}}
	slices.SortStableFunc(list, byWeight(&run))
	var got []string
	for _, f := range list {
		got = append(got, f.ID)
	}
	if want := []string{OOM, "ms", "smaller", "reserved", "saves", "a", "b", "none"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
