package findings

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const keptPercent = 1 // least percentage of the peak in gradients of the step before, when forward begins

// KeptGradientsFacts are the facts of a [KeptGradients] finding. The finding's bytes are held after Event, when the
// forward pass of a step begins.
type KeptGradientsFacts struct {
	Step, Event int64
	AtPeakBytes int64 // bytes of the blocks that are unused at the peak
	Opacus      bool  // the script had loaded Opacus
}

// gradients looks for .grad that outlives its step: gradients that the optimizer has used and that are still allocated
// when the next forward pass begins. zero_grad may free these gradients later, unlike the gradients in
// [memory.KeptGradients].
func (x *evidence) gradients() []Finding {
	spans := memory.TaggedSpans(x.in, x.p)
	forwards := firstForwards(x.in, x.p)
	if len(spans) == 0 || len(forwards) == 0 || len(x.in.Gradients) == 0 {
		return nil
	}
	at, step := int64(-1), int64(0) // event and number of the last step in which every gradient is known
	for n, seq := range forwards {
		if n > step && slices.ContainsFunc(spans, func(s memory.Span) bool { return s.From <= seq && seq < s.To }) {
			at, step = seq, n
		}
	}
	if at < 0 {
		return nil
	}
	// A bucket into which DDP copies gradients lives as long as DDP, and no zero_grad frees the bucket.
	counted, held := x.countedAfter(at, schemas.Gradients), int64(0)
	kept := func(i int, a *schemas.Allocation) int64 {
		if bucket, gradient := x.bucketOrGradient(i); bucket && !gradient {
			return 0
		}
		return counted(i, a)
	}
	for i, a := range x.l.Allocs {
		held += kept(i, a)
	}
	if !memory.AtLeast(held, x.d.AllocatedBytes, keptPercent) {
		return nil
	}
	voids := memory.Voids(x.in, x.p, x.l, unused(x.in, x.p, forwards))
	var atPeak int64
	for _, v := range voids {
		if v.From <= x.d.At.Event && x.d.At.Event < v.To {
			atPeak += v.Bytes
		}
	}
	f := x.finding(KeptGradients)
	x.of(&f, held)
	f.Facts = KeptGradientsFacts{Step: step, Event: at, AtPeakBytes: atPeak, Opacus: x.opacus()}
	x.line(&f, kept)
	x.savesWithout(&f, voids, spans, Replayed)
	return []Finding{f}
}

// unused returns the events from which on gradients are held for nothing. For each step's first forward pass, unused
// returns two events: the end of the last optimizer before the pass, and the beginning of the pass. Between the two, a
// zero_grad may write to the gradients, or a validation may run while the gradients are held.
func unused(in *schemas.Tables, p identity.Place, forwards map[int64]int64) (out []int64) {
	known := memory.PhasesWithBytes(in)
	for _, forward := range forwards {
		at := int64(-1)
		for i := range in.Phases {
			f := &in.Phases[i]
			if f.Rank == p.Rank && f.Device == p.Device && f.Phase == schemas.PhaseOptimizer && known(f) &&
				f.EndSeq <= forward {
				at = max(at, f.EndSeq)
			}
		}
		if out = append(out, forward); at >= 0 {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// firstForwards returns, for each recorded step, the event after which the step's first forward pass begins.
func firstForwards(in *schemas.Tables, p identity.Place) map[int64]int64 {
	out, known := map[int64]int64{}, memory.PhasesWithBytes(in)
	for i := range in.Phases {
		f := &in.Phases[i]
		if f.Rank != p.Rank || f.Device != p.Device || f.Phase != schemas.PhaseForward || f.Microbatch != 0 ||
			f.Step < 0 || !known(f) {
			continue
		}
		if seq, ok := out[f.Step]; !ok || f.BeginSeq < seq {
			out[f.Step] = f.BeginSeq
		}
	}
	return out
}

// opacus reports whether the script had loaded Opacus.
func (x *evidence) opacus() bool {
	e := x.in.Manifest.Environment
	return x.in.Manifest.Privacy != nil || e != nil && e.Opacus != nil
}
