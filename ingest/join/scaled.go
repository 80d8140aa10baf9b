package join

import "github.com/dpsight/dpsight/schemas"

// sizesThatDiffer counts the events of two steps whose sizes differ. sizesThatDiffer returns -1 if the steps do
// different things.
func (s *stepMatcher) sizesThatDiffer(a, b stretch) int {
	n := a.len()
	if n != b.len() {
		return -1
	}
	sizes, differ := s.f.device.Events.Size, 0
	for i := 1; i <= n; i++ {
		x, y := s.program.seq[int(a.from)+i]-1, s.program.seq[int(b.from)+i]-1
		if s.f.actions[x] != s.f.actions[y] {
			return -1
		}
		if sizes[x] != sizes[y] {
			differ++
		}
	}
	return differ
}

// isScaled reports whether two steps that do the same differ only in the size of the batch. Nearly all allocations must
// be made in the same phase and freed at the same place as their matches, and at most one factor in twenty may be odd.
func (s *stepMatcher) isScaled(a, b stretch) bool {
	all, sizes := factors{}, s.f.device.Events.Size
	births, same := 0, 0
	for i := 1; i <= a.len(); i++ {
		x, y := s.program.seq[int(a.from)+i]-1, s.program.seq[int(b.from)+i]-1
		switch s.f.actions[x] {
		case schemas.ActionGap:
			return false
		case schemas.ActionAlloc:
			all[factor(sizes[x], sizes[y])]++
			births++
		}
	}
	s.pairInPlace(a, b, func(x, y int) {
		if s.sameRecordedFamily(x, y) {
			same++
		}
	})
	return all.odd()*20 <= births && (births-same)*20 <= births
}

// pairInPlace pairs the allocations of one step with those that are made and freed at the same places of another
// step that does the same.
func (s *stepMatcher) pairInPlace(step, other stretch, found func(alloc, match int)) {
	allocs, p := s.f.allocs, s.program
	shift := step.from - other.from
	a, o := s.firstAfter(step.from), s.firstAfter(other.from)
	for ; a < len(allocs) && o < len(allocs); a, o = a+1, o+1 {
		birth := p.number[allocs[a].AllocSeq]
		if birth > step.to || birth-shift != p.number[allocs[o].AllocSeq] {
			break
		}
		// Equal blocks may be freed in another order, so only allocations with the same end match.
		if p.freedAt(allocs[a].FreeRequestedSeq, step.to)-shift == p.freedAt(allocs[o].FreeRequestedSeq, other.to) {
			found(a, o)
		}
	}
}

// sameRecordedFamily reports whether two allocations were made in phases of the same family, as far as bare steps show
// it.
func (s *stepMatcher) sameRecordedFamily(a, b int) bool {
	return s.f.family(a).recorded() == s.f.family(b).recorded()
}

// factors count pairs of allocations by the factor between their sizes. A batch of another size scales its blocks by
// the same factor, scales attention over longer sequences by the square of a factor, and does not change the other
// blocks. Which blocks have which factor does not matter. A factor that no other pair has is odd, unless it is 1. Equal
// quotients round to equal floats, so floats can be keys.
type factors map[float64]int

func factor(a, b int64) float64 { return float64(a) / float64(max(b, 1)) }

func (f factors) odd() int {
	n := 0
	for x := range f {
		if f.isOdd(x) {
			n++
		}
	}
	return n
}

func (f factors) isOdd(x float64) bool { return f[x] == 1 && x != 1 }
