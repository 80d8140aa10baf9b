package findings

import (
	"cmp"
	"slices"
	"sort"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const retainedPercent = 5 // of the peak, activations that backward made and no later backward pass used

// retainedGraph looks for a backward pass that made a graph of its own for a second derivative that is never
// computed: what backward made is saved for another backward pass, but is freed before such a pass begins. A backward
// pass that makes a graph also frees no activation as it proceeds. What a checkpoint recomputes is freed before the
// pass ends.
func (x *evidence) retainedGraph() []Finding {
	passes := x.backwardPasses()
	unused := func(a *schemas.Allocation) bool { return madeForNobody(a, passes) }
	f := x.needless(RetainedGraph, retainedPercent, unused)
	if f == nil {
		return nil
	}
	x.savesWithout(f, x.held(schemas.Activations, unused), x.looked, AtMost)
	return []Finding{*f}
}

// backwardPasses are the events of all backward passes, in their order.
func (x *evidence) backwardPasses() (passes []memory.Span) {
	for i := range x.in.Phases {
		p := &x.in.Phases[i]
		if p.Phase == schemas.PhaseBackward && p.Rank == x.p.Rank && p.Device == x.p.Device && p.EndSeq > p.BeginSeq {
			passes = append(passes, memory.Span{From: p.BeginSeq, To: p.EndSeq})
		}
	}
	slices.SortFunc(passes, func(a, b memory.Span) int { return cmp.Compare(a.From, b.From) })
	return passes
}

// madeForNobody reports whether a backward pass has made a block that lives on, and is freed before the next pass
// begins.
func madeForNobody(a *schemas.Allocation, passes []memory.Span) bool {
	i := sort.Search(len(passes), func(i int) bool { return passes[i].To >= a.AllocSeq })
	return i < len(passes) && passes[i].From < a.AllocSeq && a.FreeRequestedSeq > passes[i].To &&
		(i+1 == len(passes) || a.FreeRequestedSeq <= passes[i+1].From)
}
