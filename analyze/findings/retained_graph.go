package findings

import (
	"cmp"
	"slices"
	"sort"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const retainedPercent = 5 // least percentage of the peak in activations of backward that no later backward used

// retainedGraph looks for backward passes that record a graph for a second derivative that the script never computes. A
// backward pass that records a graph saves blocks for another backward pass. retainedGraph counts those that are freed
// before another pass begins. A backward pass that records a graph also frees no activation as it proceeds. Blocks that
// a checkpoint recomputes do not count, since they are freed before the pass ends.
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

// backwardPasses returns the ranges of events of all backward passes, in order.
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

// madeForNobody reports whether a backward pass made a block that outlives the pass and is freed before the next
// backward pass begins.
func madeForNobody(a *schemas.Allocation, passes []memory.Span) bool {
	i := sort.Search(len(passes), func(i int) bool { return passes[i].To >= a.AllocSeq })
	return i < len(passes) && passes[i].From < a.AllocSeq && a.FreeRequestedSeq > passes[i].To &&
		(i+1 == len(passes) || a.FreeRequestedSeq <= passes[i+1].From)
}
