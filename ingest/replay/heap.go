package replay

const (
	none = int32(-1) // number that stands for no block and for no run
	free = int32(-1) // number that stands for no life: the block is free
)

// block is a piece of device memory, used or free.
type block struct {
	addr       uint64
	size       int64
	prev, next int32 // neighbours in the same run, by address
	run        int32 // none for an orphan: a used block outside all known segments
	life       int32 // free, or the number of the life that holds the block: see [Replay.life]
	pending    bool  // a free of the block was requested and is not completed
}

func (b *block) end() uint64 { return b.addr + uint64(b.size) }

// run is a contiguous range of reserved memory: a segment from cudaMalloc, or mapped pages of an expandable segment.
type run struct {
	addr         uint64
	size         int64
	head, tail   int32
	stream, pool uint64
	since        int64 // the event that reserved the first part of the run
	expandable   bool
	small        bool // the run belongs to the small pool, as far as its blocks have shown
}

func (r *run) end() uint64 { return r.addr + uint64(r.size) }

// heap is the allocator's memory at one moment. The blocks of a run form a linked list, so splitting and merging take
// constant time. Runs are few and sorted by address. An orphan is missing from its run's list and leaves a hole there,
// so neighbours in the list merge only if their addresses touch.
type heap struct {
	blocks []block
	unused []int32 // indexes of blocks that no longer exist
	at     addrMap
	runs   []run
	idle   []int32 // indexes of runs that no longer exist
	order  []int32 // the runs, by address
}

func newHeap() heap { return heap{at: newAddrMap()} }

func (h *heap) add(b block) int32 {
	var i int32
	if n := len(h.unused); n > 0 {
		i = h.unused[n-1]
		h.unused = h.unused[:n-1]
		h.blocks[i] = b
	} else {
		i = int32(len(h.blocks))
		h.blocks = append(h.blocks, b)
	}
	h.at.put(b.addr, i)
	return i
}

// drop removes a block that is in no run's list.
func (h *heap) drop(i int32) {
	if a := h.blocks[i].addr; h.at.get(a) == i { // an orphan may have held the address first
		h.at.delete(a)
	}
	h.unused = append(h.unused, i)
}

// unlink removes a block from its run's list.
func (h *heap) unlink(i int32) {
	b := &h.blocks[i]
	if b.run == none {
		return
	}
	r := &h.runs[b.run]
	if b.prev != none {
		h.blocks[b.prev].next = b.next
	} else {
		r.head = b.next
	}
	if b.next != none {
		h.blocks[b.next].prev = b.prev
	} else {
		r.tail = b.prev
	}
	b.prev, b.next, b.run = none, none, none
}

// split cuts a block down to size and returns the remainder as a new, free block.
func (h *heap) split(i int32, size int64) int32 {
	b := &h.blocks[i]
	j := h.add(block{addr: b.addr + uint64(size), size: b.size - size, prev: i, next: b.next, run: b.run, life: free})
	b = &h.blocks[i] // add may have moved the block
	if b.next != none {
		h.blocks[b.next].prev = j
	} else {
		h.runs[b.run].tail = j
	}
	b.size, b.next = size, j
	return j
}

// absorb merges the following block into block i, if the two touch and the following block is free.
func (h *heap) absorb(i int32) bool {
	b := &h.blocks[i]
	j := b.next
	if j == none || h.blocks[j].life != free || h.blocks[j].addr != b.end() {
		return false
	}
	n := &h.blocks[j]
	b.size += n.size
	b.next = n.next
	if n.next != none {
		h.blocks[n.next].prev = i
	} else {
		h.runs[b.run].tail = i
	}
	h.drop(j)
	return true
}

// release makes a block free and merges it with its free neighbours.
func (h *heap) release(i int32) {
	b := &h.blocks[i]
	b.life, b.pending = free, false
	if b.run == none {
		h.drop(i)
		return
	}
	h.absorb(i)
	if p := b.prev; p != none && h.blocks[p].life == free {
		h.absorb(p)
	}
}
