package findings

import (
	"math"
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const (
	wholePercent = 10 // least percentage of the peak in activations that one checkpoint computes again
	wholeBlocks  = 8  // the smallest number of blocks; with fewer, several checkpoints may keep as much
)

// WholeCheckpointFacts are the facts of a [WholeCheckpoint] finding. The saving assumes that the script uses Parts
// checkpoints in place of one.
type WholeCheckpointFacts struct{ Blocks, Parts int }

// wholeCheckpoint looks for one checkpoint around the whole model. With a single checkpoint, backward first recomputes
// all activations and holds them all at once, as without a checkpoint. For n blocks, about √n checkpoints need the
// least memory.
func (x *evidence) wholeCheckpoint() []Finding {
	step := x.stepOf(x.d.At.Event)
	if step == nil {
		return nil
	}
	var runs []memory.Span
	for i := range x.in.Phases {
		p := &x.in.Phases[i]
		if x.recomputes(p) && step.From <= p.BeginSeq && p.EndSeq <= step.To {
			runs = append(runs, memory.Span{From: p.BeginSeq, To: p.EndSeq})
		}
	}
	if len(runs) != 1 {
		return nil
	}
	again := func(a *schemas.Allocation) bool { return runs[0].From < a.AllocSeq && a.AllocSeq <= runs[0].To }
	f := x.needless(WholeCheckpoint, wholePercent, again)
	if f == nil {
		return nil
	}
	blocks := f.Facts.(HeldFacts).Blocks
	if blocks < wholeBlocks {
		return nil
	}
	parts := int(math.Ceil(math.Sqrt(float64(blocks))))
	f.Facts = WholeCheckpointFacts{Blocks: blocks, Parts: parts}
	var voids []memory.Void
	for i := range x.in.Phases {
		if p := &x.in.Phases[i]; x.recomputes(p) {
			voids = append(voids, x.beforeLastPart(p, parts)...)
		}
	}
	x.savesWithout(f, voids, x.looked, AtMost)
	return []Finding{*f}
}

// recomputes reports whether a phase is a recomputation of activations that a checkpoint dropped.
func (x *evidence) recomputes(p *schemas.Phase) bool {
	return p.Phase == schemas.PhaseRecompute && p.Rank == x.p.Rank && p.Device == x.p.Device
}

// beforeLastPart lists the activations that a recomputation in the given number of parts would not hold at the same
// time. The activations of the last part stay, since backward needs them first. The last block of each earlier part
// also stays, since the next part starts from it.
func (x *evidence) beforeLastPart(p *schemas.Phase, parts int) []memory.Void {
	var made [][]memory.Void // voids, by block
	for i, a := range x.l.Allocs {
		if a.AllocSeq <= p.BeginSeq || a.AllocSeq > p.EndSeq {
			continue
		}
		if held := x.heldBy(i, schemas.Activations); len(held) > 0 {
			made = append(made, held)
		}
	}
	size := (len(made) + parts - 1) / parts
	slices.Reverse(made)
	var out []memory.Void
	for k := size; k < len(made); k++ {
		if k%size != 0 {
			out = append(out, made[k]...)
		}
	}
	return out
}
