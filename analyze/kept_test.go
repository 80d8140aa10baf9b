package analyze

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// keptRun has two tagged steps of one parameter (100 bytes) whose gradient (100) outlives each: forward makes 50 bytes
// of activations; backward makes the new gradient (100), adds it to the old one, and frees it. With fresh, the loop
// frees the gradient in zero_grad and the new one takes its place.
func keptRun(fresh bool) Input {
	in := Input{Manifest: &schemas.Manifest{RunID: "kept", Status: schemas.StatusOK, Source: schemas.Measured}}
	var seq int64
	var live, peak, peakSeq int64
	id := int64(0)
	alloc := func(bytes int64, category schemas.Category, evidence schemas.Evidence) int {
		seq++
		id++
		in.Allocations = append(in.Allocations, schemas.Allocation{AllocID: id, Address: uint64(id) << 20,
			RequestedBytes: bytes, BlockBytes: bytes, AllocSeq: seq})
		in.Owners = append(in.Owners, schemas.Owner{AllocID: id, Category: category, BeginSeq: seq, Evidence: evidence})
		if live += bytes; live > peak {
			peak, peakSeq = live, seq
		}
		return int(id - 1)
	}
	free := func(i int) {
		seq++
		live -= in.Allocations[i].BlockBytes
		in.Allocations[i].FreeRequestedSeq, in.Owners[i].EndSeq = seq, seq
	}
	k := int64(0)
	phase := func(name string, step, from int64) {
		in.Phases = append(in.Phases, schemas.Phase{Step: step, Phase: name, BeginK: k, EndK: k + 1, BeginSeq: from,
			EndSeq: seq})
		k++
	}
	alloc(100, schemas.Parameters, schemas.Tagged)
	grad := -1
	for step := range int64(3) {
		begin := seq
		if fresh && grad >= 0 {
			free(grad)
			grad = -1
		}
		phase(schemas.PhaseZeroGrad, step, begin)
		from := seq
		act := alloc(50, schemas.Activations, schemas.Tagged)
		phase(schemas.PhaseForward, step, from)
		from = seq
		temporary := alloc(30, schemas.ActivationGradients, schemas.Lifetime)
		free(temporary)
		if grad < 0 {
			grad = alloc(100, schemas.Gradients, schemas.Tagged)
		} else {
			free(alloc(100, schemas.ActivationGradients, schemas.Lifetime))
		}
		in.Gradients = append(in.Gradients, schemas.GradientWrite{Seq: seq, Address: in.Allocations[grad].Address})
		free(act)
		phase(schemas.PhaseBackward, step, from)
		in.Steps = append(in.Steps, schemas.Step{Step: step, Recorded: true, Instrumented: true, BeginSeq: begin,
			EndSeq: seq})
	}
	in.Report = &schemas.IngestReport{Devices: []schemas.DeviceVerdict{{Verdict: schemas.Exact, Events: seq,
		PeakSeq: peakSeq, PeakAllocatedBytes: peak, InstrumentedPeakSeq: &peakSeq}}}
	return in
}

// Without the gradients that zero_grad keeps, a run has the peak that the same loop has when it frees them.
func TestFreedPeakIsThatOfALoopThatFrees(t *testing.T) {
	kept, fresh := Summarize(keptRun(false)), Summarize(keptRun(true))
	if *kept.PeakBytes != 350 || *fresh.PeakBytes != 250 || *kept.KeptGradientBytes != 100 ||
		*fresh.KeptGradientBytes != 0 {
		t.Fatalf("peaks %d and %d, kept %d and %d", *kept.PeakBytes, *fresh.PeakBytes, *kept.KeptGradientBytes,
			*fresh.KeptGradientBytes)
	}
	if kept.Kept == nil || kept.Kept.FreedPeakBytes != 250 || kept.Kept.AtPeakBytes != 100 || fresh.Kept != nil {
		t.Errorf("%+v, %+v", kept.Kept, fresh.Kept)
	}
	o := overheads(fresh, []Summary{kept}).Runs[0]
	if *o.PeakDeltaBytes != 100 || *o.FreedDeltaBytes != 0 || *o.KeptGradientBytes != 100 {
		t.Errorf("differences %d, freed %d", *o.PeakDeltaBytes, *o.FreedDeltaBytes)
	}
	// A zero_grad inside another phase is Opacus' own, which keeps whatever the loop does.
	inner := keptRun(false)
	for i := range inner.Phases {
		if inner.Phases[i].Phase != schemas.PhaseZeroGrad {
			inner.Phases[i].Phase = schemas.PhaseClip
		}
	}
	l := newLedger(&inner, place{})
	if got := inner.keptGradients(place{}, l, 0); got.FreedPeakBytes != 350 {
		t.Errorf("an inner zero_grad frees: %d", got.FreedPeakBytes)
	}
}

// A loop that frees .grad between forward and backward keeps it when forward ends, and has none at a peak in backward:
// there is nothing to say of it, and nothing where no difference is given.
func TestKeptGradientsAreToldWhereTheyStandAtThePeak(t *testing.T) {
	fresh, kept := Summarize(keptRun(true)), Summarize(keptRun(false))
	fresh.RunID = "fresh"
	if got := keptGradients(&fresh, &kept); len(got) != 1 {
		t.Errorf("kept at the peak: %q", got)
	}
	died := kept
	died.Status = schemas.StatusOOM
	if o := besideBaseline(&fresh, &died); slices.ContainsFunc(o.Warnings, func(w string) bool {
		return strings.Contains(w, ".grad")
	}) || o.PeakDeltaBytes != nil {
		t.Errorf("no difference is given: %q", o.Warnings)
	}
	from, to := Dissect(keptRun(true)), Dissect(keptRun(false))
	from.RunID = "fresh"
	told := func(s Summary) string {
		to.Summary = s
		doc, err := Explain(from, to)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(append(doc.Sentences, doc.Warnings...), " ")
	}
	if got := told(kept); !strings.Contains(got, ".grad") {
		t.Error(got)
	}
	early := kept
	early.Kept = &KeptGradients{FreedPeakBytes: *kept.PeakBytes}
	if got := keptGradients(&fresh, &early); got != nil {
		t.Errorf("none of it at the peak: %q", got)
	}
	if got := told(early); strings.Contains(got, ".grad") {
		t.Error(got)
	}
	// Where the recording cannot say what was kept there, all gradients at the peak are the most that it can be.
	early.Kept = nil
	if got := keptGradients(&fresh, &early); len(got) != 1 || !strings.Contains(got[0], "up to") {
		t.Errorf("gradients at the peak: %q", got)
	}
	early.Breakdown.Devices = slices.Clone(kept.Breakdown.Devices)
	d := &early.Breakdown.Devices[0]
	d.Categories = slices.DeleteFunc(slices.Clone(d.Categories), func(c CategoryBytes) bool {
		return c.Category == schemas.Gradients
	})
	if got := keptGradients(&fresh, &early); got != nil {
		t.Errorf("no gradients at the peak: %q", got)
	}
}

// A larger batch in a step without tags has the peak: what the other steps would take says nothing about it.
func TestFreedPeakIsUnknownWhereNoTagsAre(t *testing.T) {
	in := keptRun(false)
	last := &in.Steps[len(in.Steps)-1]
	last.Instrumented = false
	if l := newLedger(&in, place{}); in.keptGradients(place{}, l, 0) == nil {
		t.Error("a step like the others hides their peak")
	}
	at := last.BeginSeq + 1
	in.Allocations = append(in.Allocations, schemas.Allocation{AllocID: int64(len(in.Allocations) + 1),
		RequestedBytes: 500, BlockBytes: 500,
		AllocSeq: at, FreeRequestedSeq: at + 1})
	if l := newLedger(&in, place{}); in.keptGradients(place{}, l, 0) != nil {
		t.Errorf("freed peak %d from steps that never reached the peak", in.keptGradients(place{}, l, 0).FreedPeakBytes)
	}
}

// The peak of a loop that frees may lie in the first step, in which nothing is kept yet, or before a step.
func TestFreedPeakLooksAtTheFirstStep(t *testing.T) {
	in := keptRun(false)
	first := in.Steps[0]
	extra := func(from, to int64, bytes int64) Input {
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
		in   Input
		want int64
	}{
		{"in the first step", extra(first.BeginSeq+1, first.BeginSeq+2, 1000), 1150},
		{"before it", extra(first.BeginSeq, first.BeginSeq+1, 1000), 1100},
	} {
		l := newLedger(&c.in, place{})
		if got := c.in.keptGradients(place{}, l, 0); got.FreedPeakBytes != c.want {
			t.Errorf("%s: %d, want %d", c.what, got.FreedPeakBytes, c.want)
		}
	}
	// After a step without tags nobody knows which gradients are there.
	gap := keptRun(false)
	gap.Steps[1].Instrumented = false
	if got := gap.taggedSpans(place{}); len(got) != 1 || got[0] != (span{0, gap.Steps[0].EndSeq}) {
		t.Errorf("spans %v", got)
	}
}
