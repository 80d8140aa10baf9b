package memory

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// A Void is a stretch of events in which a block holds bytes for nothing. An example is a gradient from the zero_grad
// after its last use until it is next written: Opacus' optimizers keep .grad during that stretch, torch's optimizers
// free it.
type Void struct{ From, To, Bytes int64 } // from just after event From until just after event To

// KeptGradients says how many bytes a run's peak holds because the loop keeps .grad between steps.
type KeptGradients struct {
	// AtPeakBytes are the bytes at the run's peak of gradients that zero_grad could have freed.
	AtPeakBytes int64
	// FreedPeakBytes is the peak that the same steps would have had if zero_grad had freed the gradients: the highest
	// of what was allocated minus the gradients that nothing had written to since zero_grad. FreedPeakBytes covers
	// the steps whose gradients are tagged, and the time before each of these steps.
	FreedPeakBytes int64
}

// CostOfKeptGradients replays the run without gradients that zero_grad keeps. CostOfKeptGradients returns nil if the
// recording does not say when gradients were written, as in steps without tags. CostOfKeptGradients also returns nil if
// only a step without tags reached the peak, such as a larger batch of Poisson sampling. In the replay, a gradient that
// autograd writes in place takes its bytes again from that write on.
func CostOfKeptGradients(in *schemas.Tables, p identity.Place, l *Ledger, peak int64) *KeptGradients {
	spans := TaggedSpans(in, p)
	if len(spans) == 0 {
		return nil
	}
	changes := l.Changes()
	if HighestWithout(changes, nil, spans) < HighestWithout(changes, nil, []Span{{0, math.MaxInt64}}) {
		return nil
	}
	voids := Voids(in, p, l, zeroed(in, p))
	kept := &KeptGradients{FreedPeakBytes: HighestWithout(changes, voids, spans)}
	for _, v := range voids {
		if v.From <= peak && peak < v.To {
			kept.AtPeakBytes += v.Bytes
		}
	}
	return kept
}

// HighestWithout returns the highest allocated over the spans, with the bytes of the voids subtracted at each moment.
func HighestWithout(changes []Change, voids []Void, spans []Span) (highest int64) {
	type edge struct{ seq, bytes int64 }
	edges := make([]edge, 0, 2*len(voids))
	for _, v := range voids {
		edges = append(edges, edge{v.From, -v.Bytes}, edge{v.To, v.Bytes})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.seq, b.seq) })
	next, at := 0, 0
	var allocated, saved int64
	see := func(seq int64) {
		for at < len(spans) && spans[at].To < seq {
			at++
		}
		if at < len(spans) && seq > spans[at].From {
			highest = max(highest, allocated+saved)
		}
	}
	advance := func(seq int64) { // advances to just after event seq
		for next < len(edges) && edges[next].seq <= seq {
			now := edges[next].seq
			for ; next < len(edges) && edges[next].seq == now; next++ {
				saved += edges[next].bytes
			}
			if now < seq { // the gradient was written at a moment when no block changed
				see(now)
			}
		}
	}
	Sweep(changes, func(seq int64, bytes []int64) {
		advance(seq)
		allocated = 0
		for _, b := range bytes {
			allocated += b
		}
		see(seq)
	})
	return highest
}

// A Span is the events after From, up to and including To.
type Span struct{ From, To int64 }

// TaggedSpans returns the stretches of events in which every gradient is known. The spans of TaggedSpans cover each
// step with tags whose previous step has tags too, from the end of the previous step. Before the run's first step there
// are no gradients, so the first step's span begins with the recording. Gradients of a step without tags are unknown,
// so the step after it is not covered.
func TaggedSpans(in *schemas.Tables, p identity.Place) []Span {
	var all []*schemas.Step
	for i := range in.Steps {
		if s := &in.Steps[i]; s.Rank == p.Rank && s.Device == p.Device && s.Recorded {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *schemas.Step) int { return cmp.Compare(a.Step, b.Step) })
	var out []Span
	for i, s := range all {
		switch {
		case !s.Instrumented:
		case i > 0 && all[i-1].Instrumented && all[i-1].Step == s.Step-1:
			out = append(out, Span{all[i-1].EndSeq, s.EndSeq})
		case i == 0 && s.Step == 0:
			out = append(out, Span{0, s.EndSeq})
		}
	}
	return out
}

// zeroed lists the event at which each recorded zero_grad of the training loop began. A zero_grad inside another phase
// does not count: Opacus' ghost clipping calls zero_grad between its two passes, and this call keeps gradients even if
// the loop's call frees them.
func zeroed(in *schemas.Tables, p identity.Place) []int64 {
	var rows []*schemas.Phase
	known := PhasesWithBytes(in)
	for i := range in.Phases {
		if f := &in.Phases[i]; f.Rank == p.Rank && f.Device == p.Device && known(f) {
			rows = append(rows, f)
		}
	}
	slices.SortFunc(rows, func(a, b *schemas.Phase) int { return cmp.Compare(a.BeginK, b.BeginK) })
	var out []int64
	for i, f := range rows {
		if f.Phase != schemas.PhaseZeroGrad {
			continue
		}
		if inner := i > 0 && i+1 < len(rows) && rows[i-1].Phase == rows[i+1].Phase &&
			rows[i-1].Phase != schemas.PhaseBetween; !inner {
			out = append(out, f.BeginSeq)
		}
	}
	slices.Sort(out)
	return out
}

// Voids returns, for each gradient on the device, when it is kept for nothing: from the first event in useless
// (sorted) after it was written until it is written again.
func Voids(in *schemas.Tables, p identity.Place, l *Ledger, useless []int64) []Void {
	writes := map[uint64][]int64{}
	for _, w := range in.Gradients {
		if w.Rank == p.Rank && w.Device == p.Device {
			writes[w.Address] = append(writes[w.Address], w.Seq)
		}
	}
	var out []Void
	for i, a := range l.Allocs {
		for _, o := range l.Owners[i] {
			if o.Category != schemas.Gradients || o.Evidence != schemas.Tagged {
				continue
			}
			end := a.FreeRequestedSeq
			if o.EndSeq != 0 && (end == 0 || o.EndSeq < end) {
				end = o.EndSeq
			}
			if end == 0 {
				end = 1 << 62
			}
			at := o.BeginSeq
			for _, w := range append(slices.Clone(writes[a.Address]), end) {
				if w <= at {
					continue
				}
				w = min(w, end)
				k, _ := slices.BinarySearch(useless, at)
				if k < len(useless) && useless[k] < w {
					out = append(out, Void{useless[k], w, a.BlockBytes})
				}
				if at = w; w == end {
					break
				}
			}
		}
	}
	return out
}
