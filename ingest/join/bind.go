package join

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas/spool"
)

// bound is a tag and the life that it names.
type bound struct {
	life int32
	tag  int32 // index in the context's tags
	seq  int64 // the state that the tag was made in, as far as events tell
}

// maxListed bounds the ambiguous tags that are named one by one; all are counted.
const maxListed = 5

// addresses finds the lives of an address: a table of the tagged addresses only, for most lives are never tagged.
type addresses struct {
	slots []uint64 // open addressing; 0 = free
	first []int32  // of each slot, in lives; one more at the end
	lives []int32  // by slot, in order of birth
	mask  uint64
}

func (a *addresses) slot(addr uint64) uint64 {
	h := addr * 0x9E3779B97F4A7C15
	return (h >> 20) & a.mask
}

// find gives the slot of an address, or the free one where it would go.
func (a *addresses) find(addr uint64) (slot uint64, ok bool) {
	for s := a.slot(addr); ; s = (s + 1) & a.mask {
		if a.slots[s] == addr {
			return s, true
		}
		if a.slots[s] == 0 {
			return s, false
		}
	}
}

func (j *Joined) index() *addresses {
	size := uint64(16)
	for size < 2*uint64(len(j.ctx.tags))+1 {
		size *= 2
	}
	a := &addresses{slots: make([]uint64, size), first: make([]int32, size+1), mask: size - 1}
	for i := range j.ctx.tags {
		if addr := j.ctx.tags[i].Address; addr != 0 {
			s, _ := a.find(addr)
			a.slots[s] = addr
		}
	}
	lives := j.dev.Replay.Allocs
	for l := range lives {
		if s, ok := a.find(lives[l].Address); ok && lives[l].Address != 0 {
			a.first[s+1]++
		}
	}
	for s := range size {
		a.first[s+1] += a.first[s]
	}
	a.lives = make([]int32, a.first[size])
	next := slices.Clone(a.first)
	for l := range lives {
		if s, ok := a.find(lives[l].Address); ok && lives[l].Address != 0 {
			a.lives[next[s]] = int32(l)
			next[s]++
		}
	}
	return a
}

// bind finds the block of each tag.
func (j *Joined) bind() []bound {
	c := j.ctx
	j.boundTags = make([]bool, len(c.tags))
	if len(c.tags) == 0 {
		return nil
	}
	index := j.index()
	var out []bound
	w := newWindow(j)
	for i := range c.tags {
		t := &c.tags[i]
		if int(t.K) >= len(c.span) || t.Address == 0 || !c.recording[t.K] || t.Bytes <= 0 && !t.Untag {
			continue
		}
		slot, ok := index.find(t.Address)
		if !ok || index.first[slot] == index.first[slot+1] {
			continue
		}
		j.boundTags[i] = true
		hi := j.seqAt(t.K)
		lo := min(w.before(t.K), hi)
		life, found := j.holder(index.lives[index.first[slot]:index.first[slot+1]], t, lo, hi)
		if found {
			out = append(out, bound{life, int32(i), hi})
		} else if !t.Untag && !j.lostAt(t.K) {
			j.ambiguous(t, index.lives[index.first[slot]:index.first[slot+1]], lo, hi)
		}
	}
	return out
}

// holder is the one life of the tagged size that touches the states lo..hi.
func (j *Joined) holder(lives []int32, t *spool.Tag, lo, hi int64) (int32, bool) {
	all := j.dev.Replay.Allocs
	// Lives of an address follow each other: from the last one born by hi, back while they still reach lo.
	n, _ := slices.BinarySearchFunc(lives, hi, func(l int32, hi int64) int {
		if all[l].AllocSeq <= hi {
			return -1
		}
		return 1
	})
	got, count := int32(0), 0
	for n--; n >= 0; n-- {
		a := &all[lives[n]]
		if a.FreeRequestedSeq != 0 && a.FreeRequestedSeq <= lo {
			break
		}
		if a.Requested == t.Bytes || t.Untag && t.Bytes == 0 {
			got, count = lives[n], count+1
		}
	}
	return got, count == 1
}

func (j *Joined) ambiguous(t *spool.Tag, lives []int32, lo, hi int64) {
	j.AmbiguousTags++
	if len(j.Ambiguous) >= maxListed {
		return
	}
	what := "no block lived there then"
	for _, l := range lives {
		if a := &j.dev.Replay.Allocs[l]; a.AllocSeq <= hi && (a.FreeRequestedSeq == 0 || a.FreeRequestedSeq > lo) {
			what = fmt.Sprintf("the block there has %d bytes", a.Requested)
			if a.Requested == t.Bytes {
				what = "more than one block of that size lived there"
				break
			}
		}
	}
	j.Ambiguous = append(j.Ambiguous, fmt.Sprintf("tag %s %q of %d bytes at mark %d: %s", t.Kind,
		j.ctx.rank.Names[t.Name], t.Bytes, t.K, what))
}

// window finds the last event that is known to lie before a mark. Asked for marks in order.
//
// A thread that makes a mark is done with the events that carry its mark before. When a backward run ends, all of the
// engine's threads are: they stand still until the next run.
type window struct {
	j        *Joined
	k        uint32 // marks below it have been seen
	done     int64
	previous []uint32 // by thread: its last mark
	threads  []uint16 // that have one
	ends     []uint32 // ends of backward runs, in order
	gaps     []int64  // events that stand for gaps, in order
}

func newWindow(j *Joined) *window {
	return &window{j: j, k: 1, previous: make([]uint32, 1<<16), ends: j.ctx.backwardEnds, gaps: j.gaps}
}

func (w *window) before(k uint32) int64 {
	c := w.j.ctx
	for ; w.k <= k; w.k++ {
		th := c.thread[w.k]
		if th == noThread {
			continue
		}
		if p := w.previous[th]; p != 0 {
			w.done = max(w.done, int64(w.j.last[p]))
		} else {
			w.threads = append(w.threads, th)
		}
		w.previous[th] = w.k
		if len(w.ends) > 0 && w.ends[0] == w.k {
			w.ends = w.ends[1:]
			for _, t := range w.threads {
				// Events of a bare run without marks of its own carry the engine's mark of an earlier one.
				if last := int64(w.j.last[w.previous[t]]); c.engine[t] && last <= w.j.seqAt(w.k) {
					w.done = max(w.done, last)
				}
			}
		}
	}
	for len(w.gaps) > 0 && w.gaps[0] <= w.j.seqAt(k) { // whatever was recorded before a gap is done with
		w.done = max(w.done, w.gaps[0])
		w.gaps = w.gaps[1:]
	}
	return w.done
}
