package replay

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// model is a caching allocator written for clarity. model has slices of blocks and linear searches, and no index. The
// model shares no code with the replay, chooses blocks as torch does (best fit by stream and pool), and writes the
// trace that torch would write.
type model struct {
	divisions  [16]int64
	maxSplit   int64 // 0 is no limit
	expandable bool
	graph      uint64 // the private pool for allocations; 0 is no private pool
	hidePools  bool   // if true, the trace does not name private pools, as in torch 2.11

	top      uint64
	segments []*mseg
	trace    schemas.EventColumns
	now      Counters
	history  []Counters // counters after each event; history[0] holds the counters before the first event
	seen     [3]int     // number of splits, of merges and of blocks with slack
}

type mseg struct {
	stream, pool uint64
	small        bool
	expandable   bool
	limit        uint64 // the end of an expandable segment's address range
	blocks       []*mblock
}

type mblock struct {
	addr            uint64
	size, requested int64
	mapped          bool
	used, pending   bool
	shared          bool // a stream other than the block's uses the block
	seg             *mseg
}

func (b *mblock) free() bool { return b.mapped && !b.used && !b.pending }

func newModel() *model {
	return &model{top: 0x7f0000000000, history: []Counters{{}}}
}

func (m *model) emit(a schemas.Action, addr uint64, size int64, stream, pool uint64) {
	if m.hidePools {
		pool = 0
	}
	m.trace.Append(a, addr, size, stream, 0, 0, 0, pool)
	m.now.Seq++
	m.now.AllocatedPeak = max(m.now.AllocatedPeak, m.now.Allocated)
	m.now.ReservedPeak = max(m.now.ReservedPeak, m.now.Reserved)
	m.history = append(m.history, m.now)
}

func (m *model) roundUp(n int64) int64 {
	if n < 512 {
		return 512
	}
	i := bits.Len64(uint64(n)) - 1 - 20
	d := m.divisions[max(0, min(15, i))]
	if d > 1 && n > 512*d {
		step := int64(1) << (bits.Len64(uint64(n)) - 1 - (bits.Len64(uint64(d)) - 1))
		return (n + step - 1) / step * step
	}
	return (n + 511) / 512 * 512
}

func (m *model) malloc(n int64, stream uint64) *mblock {
	size := m.roundUp(n)
	small := size <= 1<<20
	b := m.find(size, small, stream)
	if b == nil {
		b = m.grow(size, small, stream)
	}
	rest := b.size - size
	split := rest >= 512
	if !small && !m.expandable {
		split = rest > 1<<20 && (m.maxSplit == 0 || size < m.maxSplit)
	}
	if split {
		m.insertAfter(b, &mblock{addr: b.addr + uint64(size), size: rest, mapped: true, seg: b.seg})
		b.size = size
		m.seen[0]++
	} else if rest >= 512 {
		m.seen[2]++
	}
	b.used, b.requested = true, n
	m.now.Allocated += b.size
	m.now.Active += b.size
	m.now.Requested += n
	m.emit(schemas.ActionAlloc, b.addr, n, stream, b.seg.pool)
	return b
}

func (m *model) insertAfter(b, n *mblock) {
	i := slices.Index(b.seg.blocks, b)
	b.seg.blocks = slices.Insert(b.seg.blocks, i+1, n)
}

func (m *model) find(size int64, small bool, stream uint64) *mblock {
	var best *mblock
	for _, s := range m.segments {
		if s.stream != stream || s.small != small || s.pool != m.graph || s.expandable && !m.expandable {
			continue
		}
		for _, b := range s.blocks {
			if b.free() && b.size >= size && (best == nil || b.size < best.size || b.size == best.size &&
				b.addr < best.addr) {
				best = b
			}
		}
	}
	if best == nil || m.maxSplit > 0 && (size < m.maxSplit && best.size >= m.maxSplit || size >= m.maxSplit &&
		best.size >= size+20<<20) {
		return nil
	}
	return best
}

func (m *model) grow(size int64, small bool, stream uint64) *mblock {
	if m.expandable {
		return m.growExpandable(size, small, stream)
	}
	n := int64(2 << 20)
	if !small {
		n = 20 << 20
		if size >= 10<<20 {
			n = (size + 2<<20 - 1) / (2 << 20) * (2 << 20)
		}
	}
	s := &mseg{stream: stream, pool: m.graph, small: small}
	b := &mblock{addr: m.top, size: n, mapped: true, seg: s}
	m.top += uint64(n) // this segment touches the last one, and their blocks must not merge
	s.blocks = []*mblock{b}
	m.segments = append(m.segments, s)
	m.now.Reserved += n
	m.emit(schemas.ActionSegmentAlloc, b.addr, n, stream, s.pool)
	return b
}

func (m *model) growExpandable(size int64, small bool, stream uint64) *mblock {
	page := int64(20 << 20)
	if small {
		page = 2 << 20
	}
	for {
		for _, s := range m.segments {
			if !s.expandable || s.stream != stream || s.small != small || s.pool != m.graph {
				continue
			}
			for i, b := range s.blocks {
				// Check whether one unmapped block, or a free block with an unmapped block after it, has enough address
				// space for the request.
				j, room := i, int64(0)
				for j < len(s.blocks) && (s.blocks[j].free() || !s.blocks[j].mapped) && room < size {
					room += s.blocks[j].size
					j++
				}
				if room < size || b.mapped && (i+1 == len(s.blocks) || s.blocks[i+1].mapped) {
					continue
				}
				if !b.mapped {
					b = m.mapPages(b, min(size, b.size), page)
				}
				for b.size < size {
					u := s.blocks[slices.Index(s.blocks, b)+1]
					b = m.mapPages(u, min(size-b.size, u.size), page)
				}
				return b
			}
		}
		s := &mseg{stream: stream, pool: m.graph, small: small, expandable: true}
		s.blocks = []*mblock{{addr: m.top, size: 2 << 30, seg: s}}
		m.top += 2 << 30
		s.limit = m.top
		m.segments = append(m.segments, s)
	}
}

// mapPages maps the first n bytes of an unmapped block, in whole pages, and returns the free block that contains them.
func (m *model) mapPages(u *mblock, n, page int64) *mblock {
	n = min((n+page-1)/page*page, u.size)
	s := u.seg
	addr := u.addr
	if n < u.size {
		m.insertAfter(u, &mblock{addr: u.addr + uint64(n), size: u.size - n, seg: s})
		u.size = n
	}
	u.mapped = true
	b := m.merge(u)
	m.now.Reserved += n
	m.emit(schemas.ActionSegmentMap, addr, n, s.stream, s.pool)
	return b
}

// merge joins a block with its neighbours if they are also free, or also unmapped. merge returns the joined block.
func (m *model) merge(b *mblock) *mblock {
	s := b.seg
	same := func(c *mblock) bool { return c.mapped == b.mapped && !c.used && !c.pending }
	i := slices.Index(s.blocks, b)
	if i+1 < len(s.blocks) && same(s.blocks[i+1]) {
		b.size += s.blocks[i+1].size
		s.blocks = slices.Delete(s.blocks, i+1, i+2)
		m.seen[1]++
	}
	if i > 0 && same(s.blocks[i-1]) {
		b.addr = s.blocks[i-1].addr
		b.size += s.blocks[i-1].size
		s.blocks = slices.Delete(s.blocks, i-1, i)
		m.seen[1]++
	}
	return b
}

func (m *model) release(b *mblock) {
	b.used = false
	m.now.Allocated -= b.size
	m.emit(schemas.ActionFreeRequested, b.addr, b.requested, b.seg.stream, b.seg.pool)
	if b.shared {
		b.pending = true
		return
	}
	m.complete(b)
}

func (m *model) complete(b *mblock) {
	b.pending, b.shared = false, false
	m.now.Active -= b.size
	m.now.Requested -= b.requested
	m.emit(schemas.ActionFreeCompleted, b.addr, b.requested, b.seg.stream, b.seg.pool)
	m.merge(b)
}

// emptyCache releases segments without used blocks, and the free pages of expandable segments.
func (m *model) emptyCache() {
	var left []*mseg
	for _, s := range m.segments {
		switch {
		case s.expandable:
			m.unmapPages(s)
			left = append(left, s)
		case len(s.blocks) == 1 && s.blocks[0].free():
			m.now.Reserved -= s.blocks[0].size
			m.emit(schemas.ActionSegmentFree, s.blocks[0].addr, s.blocks[0].size, s.stream, s.pool)
		default:
			left = append(left, s)
		}
	}
	m.segments = left
}

func (m *model) unmapPages(s *mseg) {
	page := uint64(20 << 20)
	if s.small {
		page = 2 << 20
	}
	base := s.limit - 2<<30
	for _, b := range slices.Clone(s.blocks) {
		if !b.free() {
			continue
		}
		lo := base + (b.addr-base+page-1)/page*page
		hi := base + (b.addr+uint64(b.size)-base)/page*page
		if b.addr+uint64(b.size) == s.limit {
			hi = s.limit
		}
		if lo >= hi {
			continue
		}
		if b.addr+uint64(b.size) > hi {
			m.insertAfter(b, &mblock{addr: hi, size: int64(b.addr + uint64(b.size) - hi), mapped: true, seg: s})
		}
		u := &mblock{addr: lo, size: int64(hi - lo), seg: s}
		if b.addr < lo {
			b.size = int64(lo - b.addr)
			m.insertAfter(b, u)
		} else {
			s.blocks[slices.Index(s.blocks, b)] = u
		}
		m.now.Reserved -= u.size
		addr, size := u.addr, u.size
		m.merge(u)
		m.emit(schemas.ActionSegmentUnmap, addr, size, s.stream, s.pool)
	}
}

// list returns the allocator's own list as torch writes it, with one segment for each contiguous mapped range.
func (m *model) list() []schemas.SegmentBlock {
	var rows []schemas.SegmentBlock
	for _, s := range m.segments {
		from := len(rows)
		close := func() {
			var size int64
			for i := from; i < len(rows); i++ {
				size += rows[i].BlockBytes
			}
			for i := from; i < len(rows); i++ {
				rows[i].SegmentAddress, rows[i].SegmentBytes = rows[from].Address, size
			}
			from = len(rows)
		}
		for _, b := range s.blocks {
			if !b.mapped {
				close()
				continue
			}
			row := schemas.SegmentBlock{Seq: m.now.Seq, Stream: s.stream, Pool: s.pool, Expandable: s.expandable,
				SegmentType: "large", Address: b.addr, BlockBytes: b.size, State: schemas.BlockInactive}
			if s.small {
				row.SegmentType = "small"
			}
			if b.used {
				row.State, row.RequestedBytes = schemas.BlockActive, b.requested
			} else if b.pending {
				row.State, row.RequestedBytes = schemas.BlockPendingFree, b.requested
			}
			rows = append(rows, row)
		}
		close()
	}
	return rows
}

// run makes n random allocations and frees. The number of allocated blocks stays near live.
func (m *model) run(rnd *rand.Rand, n, live int, streams uint64, each func()) {
	var held, pending []*mblock
	take := func(list *[]*mblock) *mblock {
		i := rnd.IntN(len(*list))
		b := (*list)[i]
		*list = slices.Delete(*list, i, i+1)
		return b
	}
	for range n {
		switch p := rnd.IntN(1000); {
		case p < 3:
			// Like torch's release_cached_blocks, the model first waits for all other streams.
			for len(pending) > 0 {
				m.complete(take(&pending))
			}
			m.emptyCache()
		case p < 6:
			m.emit(schemas.ActionSnapshot, 0, m.now.Active, 0, 0)
		case p < 9:
			m.emit(schemas.ActionOOM, 12345, 40<<30, 0, 0)
		case p < 60 && len(pending) > 0:
			m.complete(take(&pending))
		case len(held) > 0 && rnd.IntN(2*live) < len(held):
			b := take(&held)
			if b.shared = streams > 1 && rnd.IntN(4) == 0; b.shared {
				pending = append(pending, b)
			}
			m.release(b)
		default:
			var size int64
			switch rnd.IntN(6) {
			case 0:
				size = 1 + rnd.Int64N(512)
			case 1:
				size = 512 * (1 + rnd.Int64N(64))
			case 2, 3:
				size = 1 + rnd.Int64N(1<<20)
			case 4:
				size = 1<<20 + rnd.Int64N(9<<20)
			default:
				size = 1 << 20 * (1 + rnd.Int64N(60))
			}
			held = append(held, m.malloc(size, rnd.Uint64N(streams)*0x1000))
		}
		if each != nil {
			each()
		}
	}
}
