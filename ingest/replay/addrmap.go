package replay

import (
	"math/bits"
	"math/rand/v2"
)

// addrMap maps the start address of a block to its index. addrMap is a hash table with linear probing, at most half
// full, without tombstones. With Go's map, the whole replay takes about twice as long, since each event needs a lookup
// and half of the events also an insertion or a deletion.
type addrMap struct {
	slots []slot
	n     int
	shift uint
	mult  uint64 // an odd random factor, so that no trace can be written to collide
}

type slot struct {
	addr  uint64 // address of the slot; 0 = empty
	block int32
}

func newAddrMap() addrMap {
	m := addrMap{mult: rand.Uint64() | 1}
	m.resize(1 << 10)
	return m
}

func (m *addrMap) home(addr uint64) int { return int(addr * m.mult >> m.shift) }

func (m *addrMap) resize(size int) {
	old := m.slots
	m.slots = make([]slot, size)
	m.shift = uint(64 - bits.TrailingZeros(uint(size)))
	m.n = 0
	for _, s := range old {
		if s.addr != 0 {
			m.put(s.addr, s.block)
		}
	}
}

// get returns the block that starts at addr, or none.
func (m *addrMap) get(addr uint64) int32 {
	mask := len(m.slots) - 1
	for i := m.home(addr); ; i++ {
		s := &m.slots[i&mask]
		if s.addr == addr && addr != 0 {
			return s.block
		}
		if s.addr == 0 {
			return none
		}
	}
}

// put sets the block of addr, which must not be 0.
func (m *addrMap) put(addr uint64, block int32) {
	if 2*m.n >= len(m.slots) {
		m.resize(2 * len(m.slots))
	}
	mask := len(m.slots) - 1
	for i := m.home(addr); ; i++ {
		s := &m.slots[i&mask]
		if s.addr == addr {
			s.block = block
			return
		}
		if s.addr == 0 {
			*s = slot{addr, block}
			m.n++
			return
		}
	}
}

// delete removes addr and closes the gap, so that a probe may stop at the first empty slot.
func (m *addrMap) delete(addr uint64) {
	mask := len(m.slots) - 1
	i := m.home(addr) & mask
	for ; m.slots[i].addr != addr; i = (i + 1) & mask {
		if m.slots[i].addr == 0 {
			return
		}
	}
	m.n--
	for j := i; ; {
		j = (j + 1) & mask
		s := m.slots[j]
		if s.addr == 0 {
			break
		}
		// The entry s may move to slot i unless its home slot lies cyclically in (i, j].
		if h := m.home(s.addr) & mask; (j-h)&mask >= (j-i)&mask {
			m.slots[i] = s
			i = j
		}
	}
	m.slots[i] = slot{}
}
