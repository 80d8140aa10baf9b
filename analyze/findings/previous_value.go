package findings

import (
	"sort"
	"strings"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const previousPercent = 5 // least percentage of the peak in previous values that a name still refers to

// previousValues looks for old values that a name in the script still refers to while its line makes the next value,
// such as the batch of the pass before. Python releases the old value only when the name is assigned, after the new
// value exists. Values made within a pass do not count, since the next pass may need them.
func (x *evidence) previousValues() []Finding {
	done := x.workEnds()
	type source struct{ line, bytes int64 }
	latest := map[source]int{} // the latest block of each size that a line allocated
	previous := map[int]bool{} // blocks that are held while the line allocates the next
	var voids []memory.Void
	var held int64
	for i, a := range x.l.Allocs {
		if a.Line == 0 || a.AllocSeq == 0 || a.Phase != schemas.PhaseBetween {
			continue
		}
		from := source{a.Line, a.RequestedBytes}
		k, again := latest[from]
		latest[from] = i
		if !again {
			continue
		}
		old, end := x.l.Allocs[k], workBefore(done, a.AllocSeq)
		if end <= old.AllocSeq || !old.LiveAt(a.AllocSeq) || old.FreeRequestedSeq == 0 || !x.named(old) {
			continue
		}
		if workBefore(done, old.FreeRequestedSeq) != end { // the script used old again, like data that were loaded ahead
			continue
		}
		voids = append(voids, memory.Void{From: end, To: old.FreeRequestedSeq, Bytes: old.BlockBytes})
		if end <= x.d.At.Event && old.LiveAt(x.d.At.Event) {
			previous[k] = true
			held += old.RequestedBytes
		}
	}
	if held == 0 || !memory.AtLeast(held, x.d.AllocatedBytes, previousPercent) {
		return nil
	}
	f := x.finding(PreviousValue)
	x.of(&f, held)
	f.Facts = HeldFacts{Blocks: len(previous)}
	x.line(&f, func(i int, a *schemas.Allocation) int64 {
		if !previous[i] {
			return 0
		}
		return a.RequestedBytes
	})
	x.savesWithout(&f, voids, x.looked, AtLeast)
	return []Finding{f}
}

// named reports whether a plain variable of the script was found to keep a block, and not a list, a graph or an
// exception.
func (x *evidence) named(a *schemas.Allocation) bool {
	h := x.holders.Of(a)
	return h != nil && h.Kind == schemas.HeldByPython && h.Path != "" && !strings.ContainsAny(h.Path, "[→")
}

// workEnds returns the events at which forward passes, backward passes and optimizer updates end, in order.
func (x *evidence) workEnds() (ends []int64) {
	for i := range x.in.Phases {
		p := &x.in.Phases[i]
		if p.Rank == x.p.Rank && p.Device == x.p.Device && (p.Phase == schemas.PhaseForward ||
			p.Phase == schemas.PhaseEval || p.Phase == schemas.PhaseBackward || p.Phase == schemas.PhaseOptimizer) {
			ends = append(ends, p.EndSeq)
		}
	}
	sort.Slice(ends, func(i, k int) bool { return ends[i] < ends[k] })
	return ends
}

// workBefore returns the last of the events in ends before the given event; -1 if there is none.
func workBefore(ends []int64, event int64) int64 {
	i := sort.Search(len(ends), func(i int) bool { return ends[i] >= event })
	if i == 0 {
		return -1
	}
	return ends[i-1]
}
