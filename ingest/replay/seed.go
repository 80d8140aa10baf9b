package replay

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// seed sets the state before event 1 from the allocator's own list.
func (r *Replay) seed(list []schemas.SegmentBlock) error {
	rows, dropped := byAddress(list)
	if dropped > 0 {
		return fmt.Errorf("the list before the first event has %d impossible blocks", dropped)
	}
	reserved, err := r.heap.seed(rows, r.seedBlock)
	if err != nil {
		return fmt.Errorf("list before the first event: %w", err)
	}
	r.before.Reserved += reserved
	return nil
}

// seed fills an empty heap from a list of rows by address, and calls used with each block in use. seed returns the
// bytes of all segments.
func (h *heap) seed(rows []schemas.SegmentBlock, used func(int32, *schemas.SegmentBlock)) (reserved int64, err error) {
	for len(rows) > 0 {
		first := rows[0]
		n := 0
		for n < len(rows) && rows[n].SegmentAddress == first.SegmentAddress {
			n++
		}
		if err := h.seedSegment(rows[:n], used); err != nil {
			return 0, fmt.Errorf("segment %#x: %w", first.SegmentAddress, err)
		}
		reserved += first.SegmentBytes
		rows = rows[n:]
	}
	return reserved, nil
}

// byAddress sorts a list of blocks by address. byAddress drops rows with impossible sizes or addresses, and returns how
// many it dropped.
func byAddress(list []schemas.SegmentBlock) (rows []schemas.SegmentBlock, dropped int64) {
	rows = slices.Clone(list)
	slices.SortStableFunc(rows, func(a, b schemas.SegmentBlock) int { return cmp.Compare(a.Address, b.Address) })
	kept := rows[:0]
	for i := range rows {
		b := &rows[i]
		inside := b.Address >= b.SegmentAddress &&
			b.Address-b.SegmentAddress+uint64(b.BlockBytes) <= uint64(b.SegmentBytes)
		apart := len(kept) == 0 || kept[len(kept)-1].Address+uint64(kept[len(kept)-1].BlockBytes) <= b.Address
		if malformed(b.SegmentAddress, b.SegmentBytes) || malformed(b.Address, b.BlockBytes) || b.BlockBytes == 0 ||
			!inside || !apart ||
			b.State != schemas.BlockInactive && (b.RequestedBytes < 0 || b.RequestedBytes > b.BlockBytes) {
			dropped++
			continue
		}
		kept = append(kept, *b)
	}
	return kept, dropped
}

func (h *heap) seedSegment(rows []schemas.SegmentBlock, used func(int32, *schemas.SegmentBlock)) error {
	s := &rows[0]
	at, end := s.SegmentAddress, s.SegmentAddress+uint64(s.SegmentBytes)
	for i := range rows {
		b := &rows[i]
		if b.Address != at || b.SegmentBytes != s.SegmentBytes {
			return fmt.Errorf("its blocks do not fill it: %d bytes at %#x", b.BlockBytes, b.Address)
		}
		at += uint64(b.BlockBytes)
	}
	if at != end {
		return fmt.Errorf("its blocks do not fill it: they end at %#x", at)
	}
	if p := h.position(s.SegmentAddress); p < len(h.order) && h.runs[h.order[p]].addr < end {
		return fmt.Errorf("it overlaps another")
	}
	h.reserve(run{addr: s.SegmentAddress, size: s.SegmentBytes, stream: s.Stream, pool: s.Pool})
	i := h.at.get(s.SegmentAddress)
	// The segment is marked expandable only now, since reserve would have joined it with another segment that happens
	// to touch it.
	k := h.blocks[i].run
	h.runs[k].expandable, h.runs[k].small = s.Expandable, s.SegmentType == "small"
	for n := range rows {
		b := &rows[n]
		next := none
		if b.BlockBytes < h.blocks[i].size {
			next = h.split(i, b.BlockBytes)
		}
		if b.State != schemas.BlockInactive {
			used(i, b)
		}
		i = next
	}
	return nil
}

func (r *Replay) seedBlock(i int32, b *schemas.SegmentBlock) {
	// A block whose free is pending was not allocated during this recording: its life began and ended before it.
	r.before.Active += b.BlockBytes
	r.before.Requested += requested(b)
	a := Alloc{Address: b.Address, Requested: requested(b), Block: b.BlockBytes, Stream: b.Stream, Pool: b.Pool}
	if b.State == schemas.BlockPendingFree {
		r.heap.blocks[i].pending = true
		a.FreeRequestedSeq = before
	} else {
		r.before.Allocated += b.BlockBytes
	}
	r.untraced = append(r.untraced, a)
	r.heap.blocks[i].life = int32(-1 - len(r.untraced))
}

// requested returns the requested bytes of a used block. If an old list lacks them, requested returns the block's size.
func requested(b *schemas.SegmentBlock) int64 {
	if b.RequestedBytes == 0 {
		return b.BlockBytes
	}
	return b.RequestedBytes
}
