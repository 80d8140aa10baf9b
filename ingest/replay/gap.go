package replay

import (
	"fmt"

	"github.com/dpsight/dpsight/schemas"
)

// Gap is a time in which no events were recorded. The event with its Seq (a [schemas.ActionGap]) stands for all that
// happened during the gap, and List is the allocator's own list just after it.
type Gap struct {
	Seq  int64
	List []schemas.SegmentBlock
}

// Resume ends a gap: it applies one event that turns the replay's blocks into the allocator's own list, so that later
// values are as exact as before the gap. A block in the list counts as the same block as before the gap if a block with
// the same address, stream, size and request existed: weights and optimizer state stay for the whole run. A tensor that
// was freed and requested again in the gap cannot be distinguished from a tensor that stayed. The lives of all other
// earlier blocks end at the gap, and the lives of all other listed blocks begin there.
func (r *Replay) Resume(list []schemas.SegmentBlock) error {
	rows, dropped := byAddress(list)
	if dropped > 0 {
		return fmt.Errorf("the list after the gap at event %d has %d impossible blocks", r.seq+1, dropped)
	}
	r.seq++
	listed := map[uint64]*schemas.SegmentBlock{}
	for i := range rows {
		if b := &rows[i]; b.State != schemas.BlockInactive {
			listed[b.Address] = b
		}
	}
	kept := r.endGone(listed)
	old, had := r.heap, int64(0)
	for _, i := range old.order {
		had += old.runs[i].size
	}
	r.heap = newHeap()
	clear(r.gone)
	has, err := r.heap.seed(rows, func(i int32, b *schemas.SegmentBlock) { r.resumeBlock(i, b, kept) })
	if err != nil {
		return fmt.Errorf("list after the gap at event %d: %w", r.seq, err)
	}
	for _, i := range r.heap.order {
		n := &r.heap.runs[i]
		n.since = r.seq
		if k := old.runAt(n.addr); k != none && old.runs[k].addr == n.addr && old.runs[k].size == n.size {
			n.since = old.runs[k].since
		}
		r.mapped = r.mapped || n.expandable
		if !r.pools { // otherwise pages mapped next to it would seem to belong to another pool
			n.pool = 0
		}
	}
	if has != had {
		r.reserve(has - had)
	}
	if r.now.Allocated > r.now.AllocatedPeak {
		r.now.AllocatedPeak, r.peakSeq = r.now.Allocated, r.seq
	}
	r.allocated = append(r.allocated, r.now.Allocated)
	return nil
}

// endGone ends the lives of blocks that are not in the list, and returns the lives that continue, by address.
func (r *Replay) endGone(listed map[uint64]*schemas.SegmentBlock) (kept map[uint64]int32) {
	kept = map[uint64]int32{}
	for i := range r.heap.blocks {
		b := &r.heap.blocks[i]
		if b.life == free {
			continue
		}
		a, row := r.life(b.life), listed[b.addr]
		if row != nil && a.Block == row.BlockBytes && a.Requested == requested(row) && a.Stream == row.Stream &&
			!(b.pending && row.State == schemas.BlockActive) {
			kept[b.addr] = b.life
			continue
		}
		r.end(int32(i))
	}
	return kept
}

// resumeBlock fills a block of the new heap: with the life that it had before the gap, or with a life that begins at
// the gap.
func (r *Replay) resumeBlock(i int32, b *schemas.SegmentBlock, kept map[uint64]int32) {
	pending := b.State == schemas.BlockPendingFree
	life, ok := kept[b.Address]
	if !ok {
		a := Alloc{Address: b.Address, Requested: requested(b), Block: b.BlockBytes, Stream: b.Stream, Pool: b.Pool,
			AllocSeq: r.seq}
		r.now.Active += a.Block
		r.now.Requested += a.Requested
		if pending { // the recorded events never allocated the block
			a.FreeRequestedSeq = before
			r.untraced = append(r.untraced, a)
			life = int32(-1 - len(r.untraced))
		} else {
			r.now.Allocated += a.Block
			life = int32(len(r.traced))
			r.traced = append(r.traced, a)
		}
	}
	if a := r.life(life); pending && a.FreeRequestedSeq == 0 {
		a.FreeRequestedSeq = r.seq
		r.now.Allocated -= a.Block
	}
	r.heap.blocks[i].life, r.heap.blocks[i].pending = life, pending
}
