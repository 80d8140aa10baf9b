package join

import (
	"iter"
	"slices"
)

// addresses finds the allocations at an address. addresses is a hash table with open addressing, and has only the
// requested addresses, since most allocations are not tagged.
type addresses struct {
	slots  []uint64 // addresses; 0 = free slot
	first  []int32  // first place of each slot in allocs, and one more place at the end
	allocs []int32  // allocations by slot, in order of birth
	mask   uint64
}

// indexAddresses makes the index of the allocations at the asked addresses, of which there are at most n.
func indexAddresses(f *facts, n int, asked iter.Seq[uint64]) *addresses {
	size := uint64(16)
	for size < 2*uint64(n)+1 {
		size *= 2
	}
	a := &addresses{slots: make([]uint64, size), first: make([]int32, size+1), mask: size - 1}
	for addr := range asked {
		if addr != 0 {
			slot, _ := a.find(addr)
			a.slots[slot] = addr
		}
	}
	for i := range f.allocs {
		if slot, ok := a.find(f.allocs[i].Address); ok {
			a.first[slot+1]++
		}
	}
	for slot := range size {
		a.first[slot+1] += a.first[slot]
	}
	a.allocs = make([]int32, a.first[size])
	next := slices.Clone(a.first)
	for i := range f.allocs {
		if slot, ok := a.find(f.allocs[i].Address); ok {
			a.allocs[next[slot]] = int32(i)
			next[slot]++
		}
	}
	return a
}

// of returns the allocations at an address, in order of birth.
func (a *addresses) of(addr uint64) []int32 {
	slot, ok := a.find(addr)
	if !ok {
		return nil
	}
	return a.allocs[a.first[slot]:a.first[slot+1]]
}

// find returns the slot of an address, or the free slot for it.
func (a *addresses) find(addr uint64) (slot uint64, ok bool) {
	if addr == 0 {
		return 0, false
	}
	const golden = 0x9E3779B97F4A7C15 // a factor that spreads addresses, which are multiples of 512
	for s := (addr * golden >> 20) & a.mask; ; s = (s + 1) & a.mask {
		if a.slots[s] == addr {
			return s, true
		}
		if a.slots[s] == 0 {
			return s, false
		}
	}
}
