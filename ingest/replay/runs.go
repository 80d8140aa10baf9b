package replay

import "slices"

// position returns the index, in order, of the first run that ends after addr.
func (h *heap) position(addr uint64) int {
	p, _ := slices.BinarySearchFunc(h.order, addr, func(r int32, a uint64) int {
		if h.runs[r].end() > a {
			return 1
		}
		return -1
	})
	return p
}

// runAt returns the run that contains addr, or none.
func (h *heap) runAt(addr uint64) int32 {
	if p := h.position(addr); p < len(h.order) && h.runs[h.order[p]].addr <= addr {
		return h.order[p]
	}
	return none
}

// covering returns the block of run r that contains addr. covering searches the run's list block by block, since only
// unmaps and events that contradict the replay need it.
func (h *heap) covering(r int32, addr uint64) int32 {
	if i := h.at.get(addr); i != none && h.blocks[i].run == r {
		return i
	}
	for i := h.runs[r].head; i != none; i = h.blocks[i].next {
		if b := &h.blocks[i]; b.end() > addr {
			if b.addr <= addr {
				return i
			}
			return none
		}
	}
	return none
}

func (h *heap) addRun(r run) int32 {
	var i int32
	if n := len(h.idle); n > 0 {
		i = h.idle[n-1]
		h.idle = h.idle[:n-1]
		h.runs[i] = r
	} else {
		i = int32(len(h.runs))
		h.runs = append(h.runs, r)
	}
	h.order = slices.Insert(h.order, h.position(r.addr), i)
	return i
}

// reserve adds a range that overlaps no run, as one free block. If the range consists of pages that are mapped next to
// pages of the same expandable segment, reserve adds it to their run. The trace does not name the segment, so pages of
// the same stream and pool count as one.
func (h *heap) reserve(n run) {
	joins := func(r *run) bool { return n.expandable && r.expandable && r.stream == n.stream && r.pool == n.pool }
	p := h.position(n.addr)
	r, after := none, none
	if p > 0 {
		if q := h.order[p-1]; h.runs[q].end() == n.addr && joins(&h.runs[q]) {
			r = q
		}
	}
	if p < len(h.order) {
		if q := h.order[p]; h.runs[q].addr == n.end() && joins(&h.runs[q]) {
			after = q
		}
	}
	if r != none {
		h.runs[r].size += n.size
	} else {
		n.head, n.tail = none, none
		r = h.addRun(n)
		p++ // now the place of the following run
	}
	i := h.add(block{addr: n.addr, size: n.size, prev: h.runs[r].tail, next: none, run: r, life: free})
	if t := h.runs[r].tail; t != none {
		h.blocks[t].next = i
	} else {
		h.runs[r].head = i
	}
	h.runs[r].tail = i
	if after != none {
		h.join(r, after)
		h.order = slices.Delete(h.order, p, p+1)
		h.idle = append(h.idle, after)
	}
	h.release(i)
}

// join appends the blocks of run s to run r, which must end where s begins.
func (h *heap) join(r, s int32) {
	for i := h.runs[s].head; i != none; i = h.blocks[i].next {
		h.blocks[i].run = r
	}
	h.link(h.runs[r].tail, h.runs[s].head)
	if h.runs[r].head == none {
		h.runs[r].head = h.runs[s].head
	}
	if h.runs[s].tail != none {
		h.runs[r].tail = h.runs[s].tail
	}
	h.runs[r].size += h.runs[s].size
	h.runs[r].since = min(h.runs[r].since, h.runs[s].since)
}

// link makes two blocks neighbours in their run's list; either may be none.
func (h *heap) link(i, j int32) {
	if i != none {
		h.blocks[i].next = j
	}
	if j != none {
		h.blocks[j].prev = i
	}
}

// unreserve removes a range of reserved memory. unreserve returns how many of the range's bytes were in known runs, and
// how many used blocks it found there. The used blocks in the range become orphans, since they are still allocated
// according to the trace.
func (h *heap) unreserve(addr uint64, size int64) (known int64, used int) {
	end := addr + uint64(size)
	for {
		p := h.position(addr)
		if p == len(h.order) || h.runs[h.order[p]].addr >= end {
			return known, used
		}
		r := h.order[p]
		lo, hi := max(addr, h.runs[r].addr), min(end, h.runs[r].end())
		known += int64(hi - lo)
		used += h.cut(p, lo, hi)
	}
}

// cut removes [lo, hi) from the run with index p in order, and returns how many used blocks became orphans.
func (h *heap) cut(p int, lo, hi uint64) (used int) {
	r := h.order[p]
	i := h.covering(r, lo)
	if i == none { // lo lies in a gap that an orphan left
		i = h.runs[r].head
		for i != none && h.blocks[i].addr < lo {
			i = h.blocks[i].next
		}
	}
	for i != none && h.blocks[i].addr < hi {
		if h.blocks[i].life == free {
			if a := h.blocks[i].addr; a < lo {
				i = h.split(i, int64(lo-a))
			}
			if h.blocks[i].end() > hi {
				h.split(i, int64(hi-h.blocks[i].addr))
			}
		}
		next := h.blocks[i].next
		h.unlink(i)
		if h.blocks[i].life == free {
			h.drop(i)
		} else {
			used++
		}
		i = next
	}
	// Block i is the first block after hi. The blocks from i on become a new run, unless the range was the beginning of
	// the run.
	old := h.runs[r]
	switch {
	case lo == old.addr && hi == old.end():
		h.order = slices.Delete(h.order, p, p+1)
		h.idle = append(h.idle, r)
	case lo == old.addr:
		h.runs[r].addr, h.runs[r].size = hi, int64(old.end()-hi)
	case hi == old.end():
		h.runs[r].size = int64(lo - old.addr)
	default:
		rest := old
		rest.addr, rest.size, rest.head = hi, int64(old.end()-hi), i
		left := none
		if i != none {
			left = h.blocks[i].prev
		} else {
			left, rest.tail = old.tail, none
		}
		h.runs[r].size, h.runs[r].tail = int64(lo-old.addr), left
		if left == none {
			h.runs[r].head = none
		} else {
			h.blocks[left].next = none
		}
		s := h.addRun(rest)
		if i != none {
			h.blocks[i].prev = none
		}
		for j := i; j != none; j = h.blocks[j].next {
			h.blocks[j].run = s
		}
	}
	return used
}
