package growth

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// growing returns a run of n steps. Each step keeps 100 bytes, and also allocates bytes that it frees again.
func growing(n int) schemas.Tables { return fixture.Growing(0, slices.Repeat([]int64{100}, n)...) }

// evaluating returns a run with n evaluation passes and no training steps. The passes lie in the given step, or outside
// of all steps.
func evaluating(n int, step int64) schemas.Tables {
	in := growing(n)
	for i, s := range in.Steps {
		in.Phases = append(in.Phases, schemas.Phase{Step: step, Phase: schemas.PhaseEval, BeginK: int64(2 * i),
			EndK: int64(2*i + 1), BeginSeq: s.BeginSeq, EndSeq: s.EndSeq})
	}
	in.Steps = nil
	if step >= 0 {
		in.Steps = []schemas.Step{{Step: step, Recorded: true, EndSeq: in.Report.Devices[0].Events}}
	}
	return in
}

// bare returns a run without steps and passes. Only the lines of code show that the run has a loop.
func bare(n int) schemas.Tables {
	in := growing(n)
	in.Steps = nil
	in.Lines = []schemas.Line{{Line: 1, File: "train.py", Number: 8}, {Line: 2, File: "train.py", Number: 9}}
	for i := range in.Allocations {
		switch a := &in.Allocations[i]; {
		case i == 0:
		case a.RequestedBytes == 100:
			a.Line = 1
		default:
			a.Line = 2
		}
	}
	return in
}

// freed changes a run so that, after the last pass, it frees the blocks that its passes kept.
func freed(in schemas.Tables) schemas.Tables {
	seq := in.Report.Devices[0].Events
	for i := range in.Allocations {
		if a := &in.Allocations[i]; a.RequestedBytes == 100 {
			seq++
			a.FreeRequestedSeq, in.Owners[i].EndSeq = seq, seq
		}
	}
	in.Report.Devices[0].Events = seq
	return in
}

// both returns the run in with the phases and steps of the run other.
func both(in, other schemas.Tables) schemas.Tables {
	in.Phases, in.Steps = other.Phases, other.Steps
	return in
}

// of returns the growth that a run has at its peak.
func of(in schemas.Tables) *Growth {
	v := in.Report.Devices[0]
	return Of(&in, identity.Place{}, memory.NewLedger(&in, identity.Place{}), memory.Moment{Event: v.PeakSeq},
		v.PeakAllocatedBytes)
}

func TestUnits(t *testing.T) {
	three := int64(3)
	for _, c := range []struct {
		what string
		in   schemas.Tables
		want Growth // the trend is compared separately
		from int64
		to   int64
		each float64 // 0 if no growth is found
	}{
		{"steps", growing(12), Growth{Unit: Step}, 0, 11, 100},
		{"passes outside of steps", evaluating(12, -1), Growth{Unit: EvaluationPass}, 0, 11, 100},
		{"passes within a step", evaluating(12, 3), Growth{Unit: EvaluationPass, Step: &three}, 0, 11, 100},
		{"passes that give back", freed(evaluating(12, 3)), Growth{Unit: EvaluationPass, Step: &three, GivenBack: true},
			0, 11, 100},
		{"few passes", evaluating(7, -1), Growth{}, 0, 0, 0},
		{"lines", bare(12), Growth{Unit: LinePass}, 0, 10, 100},
		{"few lines", bare(7), Growth{}, 0, 0, 0},
		{"lines beside few passes", both(bare(12), evaluating(2, -1)), Growth{}, 0, 0, 0},
		{"lines beside few steps", both(bare(12), growing(2)), Growth{}, 0, 0, 0},
	} {
		g := of(c.in)
		switch {
		case c.each == 0 && g == nil:
		case c.each == 0 || g == nil:
			t.Errorf("%s: %+v", c.what, g)
		case g.Unit != c.want.Unit || (g.Step == nil) != (c.want.Step == nil) || g.GivenBack != c.want.GivenBack ||
			g.First.At != c.from || g.Last.At != c.to || g.Slope != c.each || g.Tau != 1 ||
			(g.Line != nil) != (g.Unit == LinePass):
			t.Errorf("%s: %+v", c.what, g)
		}
	}
	// If an evaluation frees its memory again, and the run's peak lies at another moment, the growth does not matter.
	in := freed(evaluating(12, 3))
	v := &in.Report.Devices[0]
	v.PeakSeq, v.PeakAllocatedBytes = 1, 5000
	if g := of(in); g != nil {
		t.Errorf("%+v", g)
	}
}

// Steps of warm-up do not count for the growth, unless a run has no other steps.
func TestStepsOfWarmup(t *testing.T) {
	in := fixture.Growing(4, slices.Repeat([]int64{100}, 14)...)
	if g := of(in); g == nil || g.First.At != 4 || g.Gaps {
		t.Errorf("%+v", g)
	}
	for i := range in.Steps {
		in.Steps[i].Warmup = true
	}
	if g := of(in); g == nil || g.First.At != 0 {
		t.Errorf("%+v", g)
	}
	in.Steps = slices.Delete(in.Steps, 6, 8)
	if g := of(in); g == nil || !g.Gaps || g.Slope != 100 {
		t.Errorf("%+v", g)
	}
}

// The device is full when the highest moment of a step no longer fits. The growth is computed from the lowest moments
// of the steps.
func TestExhaustion(t *testing.T) {
	in := growing(12)
	in.Manifest.Phantom = &schemas.Phantom{MemoryBytes: 1_000_000}
	g := of(in)
	// The estimate begins at step 11, whose lowest moment has 2,100 bytes and whose highest has 600 bytes more.
	want := Exhaustion{1_000_000, 11 + 9_973, 11 + 9_973, 11 + 9_973}
	if g == nil || g.Exhaustion == nil || *g.Exhaustion != want {
		t.Errorf("%+v", g.Exhaustion)
	}
	for name, change := range map[string]func(in *schemas.Tables){
		"no limit is known":     func(in *schemas.Tables) { in.Manifest.Phantom = nil },
		"it lies very far away": func(in *schemas.Tables) { in.Manifest.Phantom.MemoryBytes = 1 << 40 },
		"the run died of it": func(in *schemas.Tables) {
			in.Report.OOMs = []schemas.OOM{{LimitBytes: 1_000_000, Fatal: true}}
		},
		"cards differ": func(in *schemas.Tables) {
			in.Manifest.Source = schemas.Measured
			in.Manifest.GPUs = []schemas.GPU{{TotalBytes: 1_000_000}, {TotalBytes: 2_000_000}}
		},
	} {
		in := growing(12)
		in.Manifest.Phantom = &schemas.Phantom{MemoryBytes: 1_000_000}
		change(&in)
		if g := of(in); g == nil || g.Exhaustion != nil {
			t.Errorf("%s: %+v", name, g)
		}
	}
	in = growing(12)
	in.Manifest.Source, in.Manifest.GPUs = schemas.Measured, []schemas.GPU{{TotalBytes: 2_000_000}}
	// the script caught this failure, so it has set the limit itself
	in.Report.OOMs = []schemas.OOM{{LimitBytes: 1_000_000}}
	if g := of(in); g.Exhaustion == nil || *g.Exhaustion != want {
		t.Errorf("%+v", g.Exhaustion)
	}
}
