package findings

import (
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const (
	wholePercent = 10 // of the peak, activations that one checkpoint computes again
	wholeBlocks  = 8  // of them; of fewer, what several checkpoints keep between them may be as much
)

// wholeCheckpoint looks for one checkpoint around everything: backward first computes all activations again, and holds
// them all at once, as without it. How much several would save depends on what lies between them, and is not said.
func (x *evidence) wholeCheckpoint() []Finding {
	step := x.stepOf(x.d.At.Event)
	if step == nil {
		return nil
	}
	var runs []memory.Span
	for i := range x.in.Phases {
		p := &x.in.Phases[i]
		if p.Phase == schemas.PhaseRecompute && p.Rank == x.p.Rank && p.Device == x.p.Device && step.From <= p.BeginSeq &&
			p.EndSeq <= step.To {
			runs = append(runs, memory.Span{From: p.BeginSeq, To: p.EndSeq})
		}
	}
	if len(runs) != 1 {
		return nil
	}
	again := func(a *schemas.Allocation) bool { return runs[0].From < a.AllocSeq && a.AllocSeq <= runs[0].To }
	held := x.bytesAtPeak(schemas.Activations, again)
	if held == 0 || !memory.AtLeast(held, x.d.AllocatedBytes, wholePercent) {
		return nil
	}
	f := x.finding(WholeCheckpoint)
	x.of(&f, held)
	part := x.counted(schemas.Activations).where(again)
	blocks := 0
	for i, a := range x.l.Allocs {
		if part(i, a) > 0 {
			blocks++
		}
	}
	if blocks < wholeBlocks {
		return nil
	}
	f.Facts = HeldFacts{Blocks: blocks}
	x.line(&f, part)
	return []Finding{f}
}
