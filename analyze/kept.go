package analyze

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// A void is a stretch of events in which a gradient holds bytes that nobody would miss: from the zero_grad after its last
// use to its next writing. Opacus' optimizers keep .grad there, torch's free it.
type void struct{ from, to, bytes int64 } // just after event from, until just after event to

// KeptGradients is what keeping .grad between steps costs a run.
type KeptGradients struct {
	// AtPeakBytes are held at the run's peak by gradients that zero_grad could have freed.
	AtPeakBytes int64
	// FreedPeakBytes is the peak that the same steps would have had if zero_grad had freed them: the highest of what was
	// allocated less the gradients that nothing had written to since. It is over the steps whose gradients are tagged.
	FreedPeakBytes int64
}

// keptGradients replays the run without gradients that zero_grad keeps; nil where the recording cannot say when they were
// written. A gradient that is written to in place, by autograd's accumulation, would be a new block from that moment on.
func (in *Input) keptGradients(p place, l *ledger, peak int64) *KeptGradients {
	steps := in.taggedSteps(p)
	if len(steps) == 0 {
		return nil
	}
	voids := in.voids(p, l)
	type edge struct{ seq, bytes int64 }
	var edges []edge
	kept := &KeptGradients{}
	for _, v := range voids {
		edges = append(edges, edge{v.from, -v.bytes}, edge{v.to, v.bytes})
		if v.from <= peak && peak < v.to {
			kept.AtPeakBytes += v.bytes
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.seq, b.seq) })
	next, step := 0, 0
	var saved int64
	advance := func(seq int64) {
		for ; next < len(edges) && edges[next].seq <= seq; next++ {
			saved += edges[next].bytes
		}
	}
	see := func(seq, bytes int64) {
		for step < len(steps) && steps[step].EndSeq < seq {
			step++
		}
		if step < len(steps) && seq > steps[step].BeginSeq {
			kept.FreedPeakBytes = max(kept.FreedPeakBytes, bytes)
		}
	}
	sweep(l.changes(), func(seq int64, bytes []int64) {
		advance(seq)
		sum := saved
		for _, b := range bytes {
			sum += b
		}
		see(seq, sum)
	})
	return kept
}

// taggedSteps are the steps in which every gradient is known: they and the one before have tags.
func (in *Input) taggedSteps(p place) []*schemas.Step {
	var all, out []*schemas.Step
	for i := range in.Steps {
		if s := &in.Steps[i]; s.Rank == p.rank && s.Device == p.device && s.Recorded {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *schemas.Step) int { return cmp.Compare(a.Step, b.Step) })
	for i, s := range all {
		if s.Instrumented && i > 0 && all[i-1].Instrumented && all[i-1].Step == s.Step-1 {
			out = append(out, s)
		}
	}
	return out
}

// zeroed lists when each zero_grad of the loop began. One inside another phase is not the loop's: between its two passes
// Opacus' ghost clipping calls its own, which keeps gradients whatever the loop does.
func (in *Input) zeroed(p place) []int64 {
	var rows []*schemas.Phase
	for i := range in.Phases {
		if f := &in.Phases[i]; f.Rank == p.rank && f.Device == p.device {
			rows = append(rows, f)
		}
	}
	slices.SortFunc(rows, func(a, b *schemas.Phase) int { return cmp.Compare(a.BeginK, b.BeginK) })
	var out []int64
	for i, f := range rows {
		if f.Phase != schemas.PhaseZeroGrad {
			continue
		}
		if inner := i > 0 && i+1 < len(rows) && rows[i-1].Phase == rows[i+1].Phase && rows[i-1].Phase != schemas.PhaseBetween; !inner {
			out = append(out, f.BeginSeq)
		}
	}
	slices.Sort(out)
	return out
}

// voids finds, for each gradient on the device, when it is kept for nothing.
func (in *Input) voids(p place, l *ledger) []void {
	zeroed := in.zeroed(p)
	writes := map[uint64][]int64{}
	for _, w := range in.Gradients {
		if w.Rank == p.rank && w.Device == p.device {
			writes[w.Address] = append(writes[w.Address], w.Seq)
		}
	}
	var out []void
	for i, a := range l.allocs {
		for _, o := range l.owners[i] {
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
				k, _ := slices.BinarySearch(zeroed, at)
				if k < len(zeroed) && zeroed[k] < w {
					out = append(out, void{zeroed[k], w, a.BlockBytes})
				}
				if at = w; w == end {
					break
				}
			}
		}
	}
	return out
}
