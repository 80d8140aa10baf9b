package join

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas/spool"
)

// boundTag is a tag and the allocation that it names.
type boundTag struct {
	alloc int32
	tag   int32 // index of the tag in the context's tags
	seq   int64 // event after which the tag was made, as far as events tell
}

// bindings has the tags of each allocation, and how many tags name none or are ambiguous.
type bindings struct {
	tags      lists[boundTag] // tags of each allocation, in order of k
	ambiguous int64           // number of tags that fit several allocations, or none
	listed    []string        // the first ambiguous tags, as text
}

// maxListed is the largest number of ambiguous tags that are described one by one. All ambiguous tags are counted.
const maxListed = 5

// bindTags finds the allocation of each tag. bindTags sets known[i] if any allocation on the device ever had the
// address of tag i.
func bindTags(f *facts, known []bool) *bindings {
	b := &bindings{}
	var tags []boundTag
	var index *addresses
	if len(f.context.tags) > 0 {
		index = indexAddresses(f, len(f.context.tags), func(yield func(uint64) bool) {
			for i := range f.context.tags {
				if !yield(f.context.tags[i].Address) {
					return
				}
			}
		})
	}
	w := newBindingWindow(f)
	for i := range f.context.tags {
		t := &f.context.tags[i]
		if t.Address == 0 || !f.context.recordingAt(t.K) || t.Bytes <= 0 && !t.Untag {
			continue
		}
		candidates := index.of(t.Address)
		if len(candidates) == 0 {
			continue
		}
		known[i] = true
		hi := f.marks.seqAt(t.K)
		lo := min(w.doneBefore(t.K), hi)
		if alloc, ok := named(f, candidates, t, lo, hi); ok {
			tags = append(tags, boundTag{alloc, int32(i), hi})
		} else if !t.Untag && !f.marks.losingAt(t.K) {
			b.ambiguous++
			if len(b.listed) < maxListed {
				b.listed = append(b.listed, whyAmbiguous(f, candidates, t, lo, hi))
			}
		}
	}
	slices.SortStableFunc(tags, func(a, b boundTag) int { return cmp.Compare(a.alloc, b.alloc) })
	b.tags = lists[boundTag]{tags, make([]int32, len(f.allocs)+1)}
	next := 0
	for alloc := range f.allocs {
		for next < len(tags) && int(tags[next].alloc) == alloc {
			next++
		}
		b.tags.first[alloc+1] = int32(next)
	}
	return b
}

// named returns the only allocation among candidates that has the tagged size and is live in any of the states lo to
// hi. candidates are the allocations at the tag's address.
func named(f *facts, candidates []int32, t *spool.Tag, lo, hi int64) (int32, bool) {
	// Allocations at one address follow each other in time. So the search goes back from the last allocation made by
	// hi, while allocations are still live at lo.
	n, _ := slices.BinarySearchFunc(candidates, hi, func(alloc int32, hi int64) int {
		if f.allocs[alloc].AllocSeq <= hi {
			return -1
		}
		return 1
	})
	found, count := int32(0), 0
	for n--; n >= 0; n-- {
		a := &f.allocs[candidates[n]]
		if a.FreeRequestedSeq != 0 && a.FreeRequestedSeq <= lo {
			break
		}
		if a.Requested == t.Bytes || t.Untag && t.Bytes == 0 {
			found, count = candidates[n], count+1
		}
	}
	return found, count == 1
}

func whyAmbiguous(f *facts, candidates []int32, t *spool.Tag, lo, hi int64) string {
	why := "no block lived there then"
	for _, alloc := range candidates {
		a := &f.allocs[alloc]
		if a.AllocSeq <= hi && (a.FreeRequestedSeq == 0 || a.FreeRequestedSeq > lo) {
			why = fmt.Sprintf("the block there has %d bytes", a.Requested)
			if a.Requested == t.Bytes {
				why = "more than one block of that size lived there"
				break
			}
		}
	}
	return fmt.Sprintf("tag %s %q of %d bytes at mark %d: %s", t.Kind, f.context.rank.Names[t.Name], t.Bytes, t.K, why)
}

// bindingWindow finds the last event that certainly lies before a mark. Callers must ask for marks in order.
//
// When a thread makes a mark, all events that carry the thread's previous mark lie before it. When a backward run ends,
// all events of the engine's threads lie before the end, since these threads are idle until the next run.
type bindingWindow struct {
	f        *facts
	k        uint32 // marks below k have been seen
	done     int64
	previous []uint32 // last mark of each thread
	threads  []uint16 // threads that have a mark
	ends     []uint32 // marks that end backward runs, in order
	gaps     []int64  // events that stand for gaps, in order
}

func newBindingWindow(f *facts) *bindingWindow {
	return &bindingWindow{f: f, k: 1, previous: make([]uint32, 1<<16), ends: f.context.backwardEnds, gaps: f.marks.gaps}
}

func (w *bindingWindow) doneBefore(k uint32) int64 {
	for ; w.k <= k; w.k++ {
		th := w.f.context.thread[w.k]
		if th == noThread {
			continue
		}
		if p := w.previous[th]; p != 0 {
			w.done = max(w.done, int64(w.f.marks.last[p]))
		} else {
			w.threads = append(w.threads, th)
		}
		w.previous[th] = w.k
		if len(w.ends) > 0 && w.ends[0] == w.k {
			w.ends = w.ends[1:]
			w.backwardEnded()
		}
	}
	for len(w.gaps) > 0 && w.gaps[0] <= w.f.marks.seqAt(k) { // everything recorded before a gap is settled
		w.done = max(w.done, w.gaps[0])
		w.gaps = w.gaps[1:]
	}
	return w.done
}

func (w *bindingWindow) backwardEnded() {
	for _, th := range w.threads {
		// If a backward run of a bare step has no marks on the engine's thread, its events carry the engine's last mark
		// from an earlier run.
		if last := int64(w.f.marks.last[w.previous[th]]); w.f.context.engine[th] && last <= w.f.marks.seqAt(w.k) {
			w.done = max(w.done, last)
		}
	}
}
