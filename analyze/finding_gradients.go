package analyze

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

const keptPercent = 1 // of the peak, held by gradients of the step before when forward begins

// gradients looks for .grad that outlives its step: gradients that the optimizer has used, still there when the next
// forward pass begins. Unlike what [KeptGradients] counts, zero_grad may free them later.
func (x *finder) gradients() []Finding {
	spans := x.in.taggedSpans(x.p)
	forwards := x.in.firstForwards(x.p)
	if len(spans) == 0 || len(forwards) == 0 || len(x.in.Gradients) == 0 {
		return nil
	}
	at, step := int64(-1), int64(0) // of the last step in which every gradient is known
	for n, seq := range forwards {
		if n > step && slices.ContainsFunc(spans, func(s span) bool { return s.from <= seq && seq < s.to }) {
			at, step = seq, n
		}
	}
	if at < 0 {
		return nil
	}
	held := x.l.bytesAt(schemas.Gradients, at)
	if !atLeast(held, x.d.AllocatedBytes, keptPercent) {
		return nil
	}
	var begins []int64
	for _, seq := range forwards {
		begins = append(begins, seq)
	}
	slices.Sort(begins)
	voids := x.in.voids(x.p, x.l, begins)
	var atPeak int64
	for _, v := range voids {
		if v.from <= x.d.At.Event && x.d.At.Event < v.to {
			atPeak += v.bytes
		}
	}
	f := x.finding(FindingKeptGradients)
	x.of(&f, held)
	f.bytes("gradients when forward begins", held, fmt.Sprintf("owners.parquet: category gradients after event %d, "+
		"step %d", at, step))
	f.bytes("blocks of them unused at "+x.peak, atPeak, fmt.Sprintf("gradients.parquet and owners.parquet: not "+
		"written since, after event %d", x.d.At.Event))
	x.peakFigure(&f)
	f.Sentence = fmt.Sprintf("Gradients outlive their step: when the forward pass of step %d begins, .grad holds %s "+
		"of gradients that were written before", step, mib(held))
	if atPeak > 0 {
		f.Sentence += fmt.Sprintf(", and %s of %s (%s) are blocks of such gradients, what rounding adds to them "+
			"included.", mib(atPeak), x.peak, shareText(float64(atPeak), float64(x.d.AllocatedBytes)))
	} else {
		f.Sentence += "; " + x.peak + " has none of them."
	}
	f.Change = "call zero_grad(set_to_none=True) before the forward pass; Opacus' optimizers keep .grad unless told so"
	x.savesWithout(&f, voids, spans, "nothing reads .grad between the start of a forward pass and the next writing; "+
		"all other allocations stay as they are")
	return []Finding{f}
}

// firstForwards gives for each recorded step the event after which its first forward pass begins.
func (in *Input) firstForwards(p place) map[int64]int64 {
	out, known := map[int64]int64{}, in.phasesWithBytes()
	for i := range in.Phases {
		f := &in.Phases[i]
		if f.Rank != p.rank || f.Device != p.device || f.Phase != schemas.PhaseForward || f.Microbatch != 0 ||
			f.Step < 0 || !known(f) {
			continue
		}
		if seq, ok := out[f.Step]; !ok || f.BeginSeq < seq {
			out[f.Step] = f.BeginSeq
		}
	}
	return out
}
