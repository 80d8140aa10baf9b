package compare

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// dpsight computes the peak that a run would have if zero_grad freed the gradients. The computed peak equals the peak
// of the same loop that frees the gradients.
func TestFreedPeakIsThatOfALoopThatFrees(t *testing.T) {
	kept, fresh := analyze.Summarize(fixture.KeptRun(false)), analyze.Summarize(fixture.KeptRun(true))
	if *kept.PeakBytes != 350 || *fresh.PeakBytes != 250 || *kept.KeptGradientBytes != 100 ||
		*fresh.KeptGradientBytes != 0 {
		t.Fatalf("peaks %d and %d, kept %d and %d", *kept.PeakBytes, *fresh.PeakBytes, *kept.KeptGradientBytes,
			*fresh.KeptGradientBytes)
	}
	if kept.Kept == nil || kept.Kept.FreedPeakBytes != 250 || kept.Kept.AtPeakBytes != 100 || fresh.Kept != nil {
		t.Errorf("%+v, %+v", kept.Kept, fresh.Kept)
	}
	o := OverheadOf(&fresh, &kept)
	if *o.PeakDeltaBytes != 100 || *o.FreedDeltaBytes != 0 || *o.KeptGradientBytes != 100 {
		t.Errorf("differences %d, freed %d", *o.PeakDeltaBytes, *o.FreedDeltaBytes)
	}
	// Opacus calls a zero_grad inside another phase, and this zero_grad keeps the gradients even if the loop frees
	// them.
	inner := fixture.KeptRun(false)
	for i := range inner.Phases {
		if inner.Phases[i].Phase != schemas.PhaseZeroGrad {
			inner.Phases[i].Phase = schemas.PhaseClip
		}
	}
	l := memory.NewLedger(&inner, identity.Place{})
	if got := memory.CostOfKeptGradients(&inner, identity.Place{}, l, 0); got.FreedPeakBytes != 350 {
		t.Errorf("an inner zero_grad frees: %d", got.FreedPeakBytes)
	}
}

// A loop may free .grad between forward and backward. A loop that frees .grad there has .grad when forward ends, but
// not at a peak in backward, so the comparison has no remark on kept gradients. If both loops keep gradients, the
// comparison has no remark on kept gradients either.
func TestKeptGradientsAreToldWhereTheyStandAtThePeak(t *testing.T) {
	fresh, kept := analyze.Summarize(fixture.KeptRun(true)), analyze.Summarize(fixture.KeptRun(false))
	fresh.RunID = "fresh"
	if got := keptGradients(&fresh, &kept); len(got) != 1 {
		t.Errorf("kept at the peak: %+v", got)
	}
	died := kept
	died.Status = schemas.StatusOOM
	if o := besideBaseline(&fresh, &died, nil); slices.ContainsFunc(o.Remarks, func(r Remark) bool {
		return r.Kind == RemarkKept
	}) || o.PeakDeltaBytes != nil {
		t.Errorf("no difference is given: %+v", o.Remarks)
	}
	early := kept
	early.Kept = &memory.KeptGradients{FreedPeakBytes: *kept.PeakBytes}
	if got := keptGradients(&fresh, &early); got != nil {
		t.Errorf("none of it at the peak: %+v", got)
	}
	// If the recording does not show which gradients the loop kept at the peak, all gradients at the peak are the upper
	// bound of the kept gradients.
	early.Kept = nil
	if got := keptGradients(&fresh, &early); len(got) != 1 || got[0].Freed != nil || got[0].High == 0 {
		t.Errorf("gradients at the peak: %+v", got)
	}
	early.Breakdown.Devices = slices.Clone(kept.Breakdown.Devices)
	d := &early.Breakdown.Devices[0]
	d.Categories = slices.DeleteFunc(slices.Clone(d.Categories), func(c memory.CategoryBytes) bool {
		return c.Category == schemas.Gradients
	})
	if got := keptGradients(&fresh, &early); got != nil {
		t.Errorf("no gradients at the peak: %+v", got)
	}
}

// If a step without tags has the peak, because of its larger batch, the freed peak is unknown. The memory of the other
// steps does not show it.
func TestFreedPeakIsUnknownWhereNoTagsAre(t *testing.T) {
	in := fixture.KeptRun(false)
	last := &in.Steps[len(in.Steps)-1]
	last.Instrumented = false
	if l := memory.NewLedger(&in, identity.Place{}); memory.CostOfKeptGradients(&in, identity.Place{}, l, 0) == nil {
		t.Error("a step like the others hides their peak")
	}
	at := last.BeginSeq + 1
	in.Allocations = append(in.Allocations, schemas.Allocation{AllocID: int64(len(in.Allocations) + 1),
		RequestedBytes: 500, BlockBytes: 500,
		AllocSeq: at, FreeRequestedSeq: at + 1})
	if l := memory.NewLedger(&in, identity.Place{}); memory.CostOfKeptGradients(&in, identity.Place{}, l, 0) != nil {
		t.Errorf("freed peak %d from steps that never reached the peak",
			memory.CostOfKeptGradients(&in, identity.Place{}, l, 0).FreedPeakBytes)
	}
}

// If a loop frees gradients, its peak may lie in the first step, in which a loop that keeps gradients has none yet. The
// peak of such a loop may also lie before the first step.
func TestFreedPeakLooksAtTheFirstStep(t *testing.T) {
	in := fixture.KeptRun(false)
	first := in.Steps[0]
	extra := func(from, to int64, bytes int64) schemas.Tables {
		c := in
		c.Allocations, c.Owners = append([]schemas.Allocation{}, in.Allocations...), append([]schemas.Owner{},
			in.Owners...)
		id := int64(len(c.Allocations) + 1)
		c.Allocations = append(c.Allocations, schemas.Allocation{AllocID: id, RequestedBytes: bytes, BlockBytes: bytes,
			AllocSeq: from, FreeRequestedSeq: to})
		c.Owners = append(c.Owners, schemas.Owner{AllocID: id, Category: schemas.Workspace, BeginSeq: from, EndSeq: to,
			Evidence: schemas.Lifetime})
		return c
	}
	for _, c := range []struct {
		what string
		in   schemas.Tables
		want int64
	}{
		{"in the first step", extra(first.BeginSeq+1, first.BeginSeq+2, 1000), 1150},
		{"before it", extra(first.BeginSeq, first.BeginSeq+1, 1000), 1100},
	} {
		l := memory.NewLedger(&c.in, identity.Place{})
		if got := memory.CostOfKeptGradients(&c.in, identity.Place{}, l, 0); got.FreedPeakBytes != c.want {
			t.Errorf("%s: %d, want %d", c.what, got.FreedPeakBytes, c.want)
		}
	}
	// After a step without tags, the recording does not show which gradients exist.
	gap := fixture.KeptRun(false)
	gap.Steps[1].Instrumented = false
	if got := memory.TaggedSpans(&gap, identity.Place{}); len(got) != 1 ||
		got[0] != (memory.Span{From: 0, To: gap.Steps[0].EndSeq}) {
		t.Errorf("spans %v", got)
	}
}
