package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// oversizeSlack limits the unused part of a block for a request of [Settings].MaxSplitSize or more: for such a request,
// torch takes no cached block that is larger by oversizeSlack or more.
const oversizeSlack = 20 << 20

// beginning is the state before event 1.
type beginning struct {
	list []schemas.SegmentBlock
	// open says, by address, by how many bytes a block may be larger than listed. Blocks that are not in open have the
	// listed size.
	open map[uint64]int64
}

// earlier is a block that was allocated, or whose free was pending, before event 1.
type earlier struct {
	requested int64
	block     int64 // bytes of the block; 0 = no list shows them
	stream    uint64
	pending   bool
}

// rewinder undoes events, from the state after the last event to the state before the first.
type rewinder struct {
	settings Settings
	heap     heap // the segments alone: each is one free block
	used     map[uint64]earlier
	requests bool // the trace has free_requested events
	pools    bool // the trace names private pools
	// contradictions counts the events that cannot have led to the state after them.
	contradictions int64
}

// rewind finds the state before event 1 of a recording that began late. Each block that was in use before event 1 is
// either freed by an event or still in final, the allocator's own list after the last event. Each segment from before
// event 1 is also either given back by an event or still in final. So all addresses are known, and only the sizes of
// blocks that events freed may stay open. rewind returns an error if the events contradict the list.
func rewind(e *schemas.EventColumns, settings Settings, final []schemas.SegmentBlock) (*beginning, error) {
	w := rewinder{settings: settings, heap: newHeap(), used: map[uint64]earlier{},
		requests: slices.Contains(e.Action, schemas.ActionFreeRequested),
		pools:    slices.ContainsFunc(e.Pool, func(p uint64) bool { return p != 0 })}
	w.end(final)
	for i := e.Len() - 1; i >= 0; i-- {
		w.undo(e.Action[i], e.Addr[i], e.Size[i], e.StreamOf(i), e.PoolOf(i))
	}
	b := &beginning{open: map[uint64]int64{}}
	w.write(b)
	if w.contradictions > 0 {
		return nil, fmt.Errorf("%d events contradict the allocator's own list", w.contradictions)
	}
	return b, nil
}

// end sets the rewinder's state to the state after the last event.
func (w *rewinder) end(final []schemas.SegmentBlock) {
	for i := range final {
		b := &final[i]
		if i == 0 || b.SegmentAddress != final[i-1].SegmentAddress {
			n := run{addr: b.SegmentAddress, size: b.SegmentBytes, stream: b.Stream, expandable: b.Expandable,
				small: b.SegmentType == "small"}
			if w.pools {
				n.pool = b.Pool
			}
			w.reserve(n)
		}
		if b.State != schemas.BlockInactive {
			w.used[b.Address] = earlier{requested(b), b.BlockBytes, b.Stream, b.State == schemas.BlockPendingFree}
		}
	}
}

func (w *rewinder) reserve(n run) {
	if known, _ := w.heap.unreserve(n.addr, n.size); known > 0 {
		w.contradictions++
	}
	w.heap.reserve(n)
}

func (w *rewinder) undo(action schemas.Action, addr uint64, size int64, stream, pool uint64) {
	if action >= schemas.ActionAlloc && action <= schemas.ActionSegmentUnmap && malformed(addr, size) {
		return // replay does the same
	}
	switch action {
	case schemas.ActionAlloc:
		if _, ok := w.used[addr]; !ok {
			w.contradictions++
		}
		delete(w.used, addr)
	case schemas.ActionFreeCompleted:
		if _, ok := w.used[addr]; ok {
			w.contradictions++
		}
		w.used[addr] = earlier{requested: size, stream: stream, pending: w.requests}
	case schemas.ActionFreeRequested:
		b, ok := w.used[addr]
		if !ok || !b.pending {
			w.contradictions++
		}
		b.pending = false
		w.used[addr] = b
	case schemas.ActionSegmentAlloc, schemas.ActionSegmentMap:
		if known, _ := w.heap.unreserve(addr, size); known != size {
			w.contradictions++
		}
	case schemas.ActionSegmentFree, schemas.ActionSegmentUnmap:
		if size == 0 {
			w.contradictions++
			return
		}
		expandable := action == schemas.ActionSegmentUnmap
		w.reserve(run{addr: addr, size: size, stream: stream, pool: pool, expandable: expandable,
			small: size == smallSegment && !expandable})
	}
}

// smallSegment is the size of segments of the small pool, in bytes. Segments of the large pool are larger.
const smallSegment = 2 << 20

// write lists all blocks of the state that rewinding has reached.
func (w *rewinder) write(b *beginning) {
	addresses := slices.Sorted(maps.Keys(w.used))
	for _, i := range w.heap.order {
		r := &w.heap.runs[i]
		first, _ := slices.BinarySearch(addresses, r.addr)
		last, _ := slices.BinarySearch(addresses, r.end())
		w.segment(b, r, addresses[first:last])
		w.contradictions -= int64(last - first)
	}
	w.contradictions += int64(len(addresses)) // the addresses that are left lie in no segment
}

// segment lists the blocks of one segment. The blocks at the given addresses are in use.
func (w *rewinder) segment(b *beginning, r *run, addresses []uint64) {
	row := schemas.SegmentBlock{SegmentAddress: r.addr, SegmentBytes: r.size, SegmentType: "large", Stream: r.stream,
		Pool: r.pool, Expandable: r.expandable}
	if r.small {
		row.SegmentType = "small"
	}
	hole := func(from, to uint64) {
		if from < to {
			row.Address, row.BlockBytes, row.RequestedBytes, row.State = from, int64(to-from), 0, schemas.BlockInactive
			b.list = append(b.list, row)
		}
	}
	at := r.addr
	for k, addr := range addresses {
		hole(at, addr)
		next := r.end()
		if k+1 < len(addresses) {
			next = addresses[k+1]
		}
		u := w.used[addr]
		size, open := u.block, int64(0)
		if size == 0 {
			size, open = w.settings.sizeIn(r, w.settings.round(u.requested), int64(next-addr))
		}
		if size > int64(next-addr) {
			w.contradictions++
			return
		}
		row.Address, row.BlockBytes, row.RequestedBytes, row.State = addr, size, u.requested, schemas.BlockActive
		if u.pending {
			row.State = schemas.BlockPendingFree
		}
		if open > 0 {
			b.open[addr] = open
		}
		b.list = append(b.list, row)
		at = addr + uint64(size)
	}
	hole(at, r.end())
}

// sizeIn returns the smallest possible size of a block that was made for need bytes. gap is the number of bytes from
// the block's address to the next block in use, or to the end of its segment. open is by how many bytes the block may
// be larger than size.
func (s *Settings) sizeIn(r *run, need, gap int64) (size, open int64) {
	switch {
	case r.expandable || need <= smallSize: // the allocator splits off every remainder
		return need, 0
	case s.MaxSplitSize > 0 && need >= s.MaxSplitSize:
		if gap == r.size { // the allocator never splits so large a segment
			return gap, 0
		}
		return need, max(0, min(gap-need, oversizeSlack))
	case s.ExpandableSegments: // with the setting on, remainders were split off, and with it off they were not
		return need, max(0, min(gap-need, smallSize))
	case gap-need <= smallSize:
		// The large pool has no free block as small as the remainder, so the remainder was not split off.
		return gap, 0
	}
	// A free block follows, which is larger than smallSize.
	return need, min(smallSize, gap-smallSize-minBlock-need)
}

// replayLate replays a recording that began late. replayLate begins with the state before event 1, which it computes
// from the events and the list after the last event.
func replayLate(events *schemas.EventColumns, settings Settings, final []schemas.SegmentBlock,
	at []int64) (*Result, error) {
	rows, _ := byAddress(final)
	b, err := rewind(events, settings, rows)
	if err != nil {
		return nil, err
	}
	r, err := New(settings, b.list)
	if err != nil {
		return nil, err
	}
	for i := range r.untraced {
		if open := b.open[r.untraced[i].Address]; open > 0 {
			r.open[int32(-2-i)] = open
		}
	}
	for i := range b.list {
		if i == 0 || b.list[i].SegmentAddress != b.list[i-1].SegmentAddress {
			r.anomalies.LateSegments++
		}
	}
	if err := r.through(events, nil, at); err != nil {
		return nil, err
	}
	res := r.Finish(final)
	res.Rewound = true
	return res, nil
}

// grow extends the block before a free block up to addr, if its size was open. At addr the allocator has placed another
// block. Since free blocks that touch are merged, there was no free memory between the two.
func (r *Replay) grow(free int32, addr uint64) bool {
	h := &r.heap
	i := h.blocks[free].prev
	if i == none || h.blocks[i].end() != h.blocks[free].addr {
		return false
	}
	b := &h.blocks[i]
	more := int64(addr - b.end())
	if open, ok := r.open[b.life]; !ok || more > open {
		return false
	}
	delete(r.open, b.life)
	r.resize(b, r.life(b.life), b.size+more, r.seq)
	b.size += more
	h.at.delete(h.blocks[free].addr)
	h.blocks[free].addr += uint64(more)
	h.blocks[free].size -= more
	h.at.put(addr, free)
	return true
}

// bound sets in the result how much larger the blocks with an open size may be, and how high the peak may be as a
// consequence.
func (r *Replay) bound(res *Result) {
	res.PeakHigh = res.PeakAllocated
	if len(r.open) == 0 {
		return
	}
	type change struct{ seq, bytes int64 }
	var ends []change
	sum := int64(0)
	for life, open := range r.open {
		a := r.life(life)
		a.Open = open
		r.anomalies.LateSlack++
		if a.FreeRequestedSeq == before {
			continue
		}
		sum += open
		ends = append(ends, change{a.FreeRequestedSeq, open})
	}
	slices.SortFunc(ends, func(a, b change) int { return cmp.Compare(a.seq, b.seq) })
	for seq, bytes := range res.Allocated {
		for len(ends) > 0 && ends[0].seq <= int64(seq) && ends[0].seq > 0 {
			sum -= ends[0].bytes
			ends = ends[1:]
		}
		res.PeakHigh = max(res.PeakHigh, bytes+sum)
	}
}
