package replay

import (
	"fmt"

	"github.com/dpsight/dpsight/schemas"
)

// maxDifferences is the largest number of differences that are kept. All differences are counted.
const maxDifferences = 100

// Comparison compares the replay with the allocator's own list of blocks.
type Comparison struct {
	Seq         int64 // the list was taken just after this event
	Blocks      int64 // number of blocks in the list
	Unchecked   int64 // free blocks in memory reserved before recording began, whose bounds the trace does not show
	Differing   int64
	Differences []Difference // the first maxDifferences differences
	// The next four are the replayed bytes minus the listed bytes.
	Allocated, Active, Requested, Reserved int64
}

// Exact reports whether the replay has the same blocks as the list.
func (c *Comparison) Exact() bool {
	return c.Differing == 0 && c.Allocated == 0 && c.Active == 0 && c.Requested == 0 && c.Reserved == 0
}

// Difference is a block that differs between the replay and the allocator's list. If one side lacks the block, its
// state is "" and its size 0.
type Difference struct {
	Address           uint64
	Replayed, Listed  string // state of the block in replay and in the list
	ReplayedBytes     int64
	ListedBytes       int64
	ReplayedRequested int64
	ListedRequested   int64
	SegmentAddress    uint64
}

func (d Difference) String() string {
	side := func(state string, bytes, requested int64) string {
		switch {
		case state == "":
			return "no block"
		case state == schemas.BlockInactive:
			return fmt.Sprintf("%s, %d bytes", state, bytes)
		}
		return fmt.Sprintf("%s, %d bytes for %d", state, bytes, requested)
	}
	return fmt.Sprintf("block %#x: replayed %s; listed %s", d.Address, side(d.Replayed, d.ReplayedBytes,
		d.ReplayedRequested),
		side(d.Listed, d.ListedBytes, d.ListedRequested))
}

func (c *Comparison) differ(d Difference) {
	c.Differing++
	if len(c.Differences) < maxDifferences {
		c.Differences = append(c.Differences, d)
	}
}

// compare compares the replay with the allocator's list of blocks just after event seq. If the heap h at that event is
// given, compare also compares free blocks.
func (r *Result) compare(list []schemas.SegmentBlock, h *heap, seq int64) *Comparison {
	c := &Comparison{Seq: seq, Blocks: int64(len(list))}
	used := map[uint64]*Alloc{}
	r.eachActive(seq, func(a *Alloc) {
		used[a.Address] = a
		c.Active += a.Block
		c.Requested += a.Requested
		if a.LiveAt(seq) {
			c.Allocated += a.Block
		}
	})
	c.Reserved = r.Reserved.At(seq)
	for i := range list {
		b := &list[i]
		if i == 0 || b.SegmentAddress != list[i-1].SegmentAddress {
			c.Reserved -= b.SegmentBytes
		}
		if b.State == schemas.BlockInactive {
			if h != nil {
				c.inactive(h, b)
			}
			continue
		}
		c.Active -= b.BlockBytes
		if b.State == schemas.BlockActive {
			c.Allocated -= b.BlockBytes
		}
		d := Difference{Address: b.Address, Listed: b.State, ListedBytes: b.BlockBytes, ListedRequested: requested(b),
			SegmentAddress: b.SegmentAddress}
		if a := used[b.Address]; a != nil {
			delete(used, b.Address)
			d.Replayed, d.ReplayedBytes, d.ReplayedRequested = state(a, seq), a.Block, a.Requested
			if b.RequestedBytes == 0 {
				d.ListedRequested = a.Requested
			}
		}
		c.Requested -= d.ListedRequested
		if d.Replayed != d.Listed || d.ReplayedBytes != d.ListedBytes || d.ReplayedRequested != d.ListedRequested {
			c.differ(d)
		}
	}
	if len(used) > 0 { // in order of the list and not of the map, so that equal inputs give equal reports
		r.eachActive(seq, func(a *Alloc) {
			if used[a.Address] == a {
				c.differ(Difference{Address: a.Address, Replayed: state(a, seq), ReplayedBytes: a.Block,
					ReplayedRequested: a.Requested})
			}
		})
	}
	if h != nil {
		c.unlistedFree(h, list)
	}
	return c
}

// eachActive calls f for each block that is active just after event seq: allocated, or freed but still in use by a
// stream.
func (r *Result) eachActive(seq int64, f func(*Alloc)) {
	for _, list := range [][]Alloc{r.pendingBefore, r.Allocs} {
		for i := range list {
			if a := &list[i]; a.ActiveAt(seq) {
				f(a)
			}
		}
	}
}

func state(a *Alloc, seq int64) string {
	if a.LiveAt(seq) {
		return schemas.BlockActive
	}
	return schemas.BlockPendingFree
}

// inactive compares a free block of the list with the replay's heap.
func (c *Comparison) inactive(h *heap, b *schemas.SegmentBlock) {
	if h.known(b.Address, b.Address+uint64(b.BlockBytes)) < b.BlockBytes {
		c.Unchecked++
		return
	}
	i := h.at.get(b.Address)
	if i != none && h.blocks[i].life != free {
		return // the block is already reported as a used block that the list lacks
	}
	d := Difference{Address: b.Address, Listed: b.State, ListedBytes: b.BlockBytes, SegmentAddress: b.SegmentAddress}
	if i != none {
		d.Replayed, d.ReplayedBytes = schemas.BlockInactive, h.blocks[i].size
	}
	if d.ReplayedBytes != d.ListedBytes {
		c.differ(d)
	}
}

// unlistedFree reports free blocks of the replay at addresses where the list has no block.
func (c *Comparison) unlistedFree(h *heap, list []schemas.SegmentBlock) {
	listed := make(map[uint64]struct{}, len(list))
	for i := range list {
		listed[list[i].Address] = struct{}{}
	}
	for _, r := range h.order {
		for i := h.runs[r].head; i != none; i = h.blocks[i].next {
			b := &h.blocks[i]
			if _, ok := listed[b.addr]; !ok && b.life == free {
				c.differ(Difference{Address: b.addr, Replayed: schemas.BlockInactive, ReplayedBytes: b.size,
					SegmentAddress: h.runs[r].addr})
			}
		}
	}
}
