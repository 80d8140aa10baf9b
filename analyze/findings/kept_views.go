package findings

import (
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const viewPercent = 5 // least percentage of the peak that views keep and do not show

// ViewFacts are the facts of a [ViewKeepsBase] finding that is not a growth: the bytes of the blocks that only
// views keep at the peak, and the bytes that the views show.
type ViewFacts struct {
	Blocks               int
	BaseBytes, ViewBytes int64
}

// keptViews looks for blocks that only views keep, where the views show only a part of the block: a copy of that part
// would let the block be freed. If blocks that only views keep add up from step to step, the check for growth reports
// them instead.
func (x *evidence) keptViews() []Finding {
	if x.grows != nil {
		return nil
	}
	at := func(a *schemas.Allocation) int64 {
		h := x.holders.Of(a)
		if !a.LiveAt(x.d.At.Event) || h == nil || h.Since > x.d.At.Event || h.ViewBytes >= h.StorageBytes {
			return 0
		}
		return a.BlockBytes
	}
	facts := ViewFacts{}
	facts.BaseBytes, facts.ViewBytes = x.views(at)
	hidden := facts.BaseBytes - facts.ViewBytes
	if !memory.AtLeast(hidden, x.d.AllocatedBytes, viewPercent) {
		return nil
	}
	f := x.finding(ViewKeepsBase)
	x.of(&f, hidden)
	var voids []memory.Void
	x.line(&f, func(_ int, a *schemas.Allocation) int64 {
		bytes := at(a)
		if bytes == 0 {
			return 0
		}
		facts.Blocks++
		end := a.FreeRequestedSeq
		if end == 0 {
			end = 1 << 62
		}
		// Before the search that found the view, another holder may have kept the whole block.
		voids = append(voids, memory.Void{From: x.holders.Of(a).Since, To: end, Bytes: a.BlockBytes - x.viewed(a)})
		return bytes
	})
	f.Facts = facts
	x.savesWithout(&f, voids, []memory.Span{{From: -1, To: 1 << 62}}, AtLeast)
	return []Finding{f}
}

// views adds up the wanted bytes of the blocks that only partial views keep, and how many of them these views show.
func (x *evidence) views(wanted func(a *schemas.Allocation) int64) (base, view int64) {
	for _, a := range x.l.Allocs {
		if shown := x.viewed(a); shown > 0 {
			bytes := wanted(a)
			base += bytes
			view += min(bytes, shown)
		}
	}
	return base, view
}

// viewed returns the bytes that a copy of the part shown by views would take; 0 if views show the whole block.
func (x *evidence) viewed(a *schemas.Allocation) int64 {
	h := x.holders.Of(a)
	if h == nil || h.ViewBytes >= h.StorageBytes {
		return 0
	}
	return (h.ViewBytes + blockBytes - 1) / blockBytes * blockBytes
}

const blockBytes = 512 // the allocator rounds sizes up to multiples of this
