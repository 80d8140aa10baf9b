package replay

import "slices"

func (r *Replay) alloc(addr uint64, size int64, stream, pool uint64) {
	need := r.settings.round(size)
	i := r.place(addr, size, need)
	b := &r.heap.blocks[i]
	if b.run != none && pool == 0 {
		pool = r.heap.runs[b.run].pool
	}
	b.life = int32(len(r.traced))
	r.traced = append(r.traced, Alloc{Address: addr, Requested: size, Block: b.size, Stream: stream, Pool: pool,
		AllocSeq: r.seq})
	r.now.Active += b.size
	r.now.Requested += size
	r.now.Allocated += b.size
	if r.now.Allocated > r.now.AllocatedPeak {
		r.now.AllocatedPeak, r.peakSeq = r.now.Allocated, r.seq
	}
}

// place finds the free block that starts at addr and cuts it to the size that the allocator would use.
func (r *Replay) place(addr uint64, size, need int64) int32 {
	h := &r.heap
	i := h.at.get(addr)
	if i == none || h.blocks[i].life != free {
		if i = r.uncover(addr, need, i); i == none {
			return h.add(block{addr: addr, size: need, prev: none, next: none, run: none, life: free})
		}
	}
	if h.blocks[i].size < need {
		r.widen(i, need)
	}
	b := &h.blocks[i]
	if b.size < size {
		r.anomalies.TooSmall++
		h.unlink(i)
		b.size = need
		return i
	}
	rest := b.size - need
	var split bool
	if need <= smallSize { // then the run belongs to the small pool
		split = rest >= minBlock
		if b.prev == none && b.next == none {
			h.runs[b.run].small = true
		}
	} else if run := &h.runs[b.run]; run.expandable || run.small || r.settings.ExpandableSegments && r.mapped {
		// The setting expandable_segments was read at the end of the recording. If segments from cudaMalloc come before
		// the first mapping, the setting was off at that time.
		split = rest >= minBlock
	} else {
		split = rest > smallSize && (r.settings.MaxSplitSize == 0 || need < r.settings.MaxSplitSize)
	}
	if split {
		h.split(i, need)
	}
	return i
}

// uncover makes a free block that starts at addr, where the replay has no free block. i is the used block at addr, if
// there is one. uncover returns none if no segment is known at addr, and the caller then places an orphan.
func (r *Replay) uncover(addr uint64, need int64, i int32) int32 {
	h := &r.heap
	if i != none { // the used block's free was lost
		r.anomalies.LostFrees++
		r.end(i)
		b := &h.blocks[i]
		b.life, b.pending = free, false
		if b.run == none {
			h.drop(i)
			return none
		}
		h.absorb(i)
		return i
	}
	run := h.runAt(addr)
	if run == none {
		return r.late(addr, need)
	}
	i = h.covering(run, addr)
	if i == none {
		r.anomalies.Overlaps++
		return none
	}
	b := &h.blocks[i]
	if b.life == free {
		if r.grow(i, addr) {
			return i
		}
		r.anomalies.SplitInside++
		return h.split(i, int64(addr-b.addr))
	}
	a := r.life(b.life)
	if keep := int64(addr - b.addr); keep >= r.settings.round(a.Requested) {
		// CUDA graph trees restore a pool block by block, even if remainders are large. The settings may also have
		// changed.
		r.anomalies.SlackSplit++
		r.resize(b, a, keep, r.seq)
		return h.split(i, keep)
	}
	r.anomalies.Overlaps++
	return none
}

// late finds room for an alloc outside the known segments. late finds room only if the block reaches into the first
// free block of an expandable segment, whose first pages were mapped before recording. Otherwise late returns none, and
// the block becomes an orphan.
func (r *Replay) late(addr uint64, need int64) int32 {
	r.anomalies.LateBlocks++
	h := &r.heap
	p := h.position(addr)
	if p == len(h.order) || h.runs[h.order[p]].addr >= addr+uint64(need) {
		if need > smallSize && !r.settings.ExpandableSegments {
			r.anomalies.LateSlack++
		}
		return none
	}
	run := &h.runs[h.order[p]]
	i := run.head
	if !run.expandable || i == none || h.blocks[i].life != free || h.blocks[i].addr != run.addr {
		r.anomalies.Overlaps++
		return none
	}
	gap := int64(run.addr - addr)
	h.at.delete(run.addr)
	h.blocks[i].addr, run.addr = addr, addr
	h.blocks[i].size += gap
	run.size += gap
	run.since = 0
	h.at.put(addr, i)
	r.reservedBefore(gap)
	return i
}

// widen enlarges a free block to at least n bytes, if free memory follows it. The free memory is a known free block
// (only after a SplitInside, since free neighbours merge otherwise), or lies after the known pages of an expandable
// segment that was mapped before recording.
func (r *Replay) widen(i int32, n int64) {
	h := &r.heap
	for h.blocks[i].size < n {
		if h.absorb(i) {
			continue
		}
		b := &h.blocks[i]
		run := &h.runs[b.run]
		if !run.expandable || b.next != none || b.end() != run.end() {
			return
		}
		gap := n - b.size
		p := h.position(run.end())
		if p < len(h.order) && h.runs[h.order[p]].addr < b.addr+uint64(n) {
			next := h.order[p]
			if q := &h.runs[next]; !q.expandable || q.stream != run.stream || q.pool != run.pool {
				return
			}
			gap = int64(h.runs[next].addr - run.end())
			b.size += gap
			run.size += gap
			h.join(b.run, next)
			h.order = slices.Delete(h.order, p, p+1)
			h.idle = append(h.idle, next)
		} else {
			b.size += gap
			run.size += gap
		}
		r.reservedBefore(gap)
	}
}

// reservedBefore adds n bytes to the memory that was reserved before recording began.
func (r *Replay) reservedBefore(n int64) {
	if n > 0 {
		r.anomalies.LateSegments++
		r.before.Reserved += n
	}
}

// resize corrects the size of a used block, and the values after the events from the block's birth up to, but not
// including, event to.
func (r *Replay) resize(b *block, a *Alloc, size, to int64) {
	d := size - a.Block
	c := correction{from: a.AllocSeq, to: to, active: d}
	r.now.Active += d
	if b.pending {
		r.corrections = append(r.corrections, correction{from: a.AllocSeq, to: a.FreeRequestedSeq, allocated: d})
	} else {
		c.allocated = d
		r.now.Allocated += d
	}
	r.corrections = append(r.corrections, c)
	a.Block = size
}
