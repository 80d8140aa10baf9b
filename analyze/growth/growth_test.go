package growth

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// growing returns a run whose steps each keep the same number of bytes, in addition to bytes that they free.
func growing(n int) schemas.Tables { return fixture.Growing(0, slices.Repeat([]int64{100}, n)...) }

// evaluating returns a run with evaluation passes in place of steps. The passes lie in the given step, or outside of
// all steps.
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

// bare returns a run with neither steps nor passes: only the lines of a loop show its structure.
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

// freed changes a run so that the blocks that its passes kept are freed after the last pass.
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

// both returns a run that also has the phases and steps of another run.
func both(in, other schemas.Tables) schemas.Tables {
	in.Phases, in.Steps = other.Phases, other.Steps
	return in
}

// of returns the growth of a run.
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
		want Growth // without its trend
		from int64
		to   int64
		each float64 // 0: none is found
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
	// Memory that an evaluation frees again does not matter if the run's peak lies at another moment.
	in := freed(evaluating(12, 3))
	v := &in.Report.Devices[0]
	v.PeakSeq, v.PeakAllocatedBytes = 1, 5000
	if g := of(in); g != nil {
		t.Errorf("%+v", g)
	}
}

// Steps of warm-up do not count, unless a run has no other steps.
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

// The device is full when the highest of a step, which lies above its lowest, no longer fits.
func TestExhaustion(t *testing.T) {
	in := growing(12)
	in.Manifest.Phantom = &schemas.Phantom{MemoryBytes: 1_000_000}
	g := of(in)
	// The estimate begins at step 11, which begins with 2,100 bytes and holds 600 bytes more at its highest.
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
	in.Report.OOMs = []schemas.OOM{{LimitBytes: 1_000_000}} // the script caught it: it has set its own limit
	if g := of(in); g.Exhaustion == nil || *g.Exhaustion != want {
		t.Errorf("%+v", g.Exhaustion)
	}
}
