package join

import (
	"slices"
	"sort"
)

// alignment maps the events of one step to the events of another. The units of an alignment are the forward-backward
// pairs of a step.
type alignment struct {
	step, other stretch
	otherStep   int
	limit       int64 // last event of the other step that counts
	how         string
	parts       *unitMap // nil = both steps do the same
	// crossing maps the events of allocations that outlive their unit. The two steps may have different numbers of
	// units, so two consecutive units may be compared with two units that are not consecutive. An allocation that
	// passes from one of these units to the next then has its match in another unit.
	crossing *unitMap
}

// unitMap maps the events of one step to places in another step. A place is the number of a program event within its
// step, from 1.
type unitMap struct {
	reached []int32 // how far in its unit of the other step the events up to each place of the step go
	units   []unitPair
}

// unitPair is a unit of a step and the unit of the other step with which it is compared. The two units of a unitPair
// are ranges of places.
type unitPair struct{ step, other stretch }

// unit returns the index of the unit in which a place lies.
func (m *unitMap) unit(place int32) int {
	return sort.Search(len(m.units), func(i int) bool { return m.units[i].step.to >= place })
}

// otherPlace returns the place in the other step that corresponds to a place in this step; 0 = there is none.
func (m *unitMap) otherPlace(place int32) int32 {
	u := &m.units[m.unit(place)]
	before := u.other.from
	if place-1 > u.step.from {
		before = m.reached[place-1]
	}
	if m.reached[place] > before {
		return m.reached[place]
	}
	return 0
}

// matchedPair is an allocation and its match.
type matchedPair struct {
	alloc, match int
	crossing     bool
}

// workbench holds the buffers for comparing two steps, which are reused for the next two.
type workbench struct {
	born    []int32 // allocation made at each place of the other step, plus 1
	pairs   []matchedPair
	factors factors
}

// grown returns a slice of n zeros, in the buffer's memory if it is large enough.
func grown[T any](buffer []T, n int) []T {
	buffer = slices.Grow(buffer[:0], n)[:n]
	clear(buffer)
	return buffer
}

// pairAllocs calls found with each pair of an allocation in one step and its match in the other step.
func (al *alignment) pairAllocs(s *stepMatcher, found func(matchedPair)) {
	if al.parts == nil {
		s.pairInPlace(al.step, al.other, func(a, o int) { found(matchedPair{a, o, false}) })
		return
	}
	allocs, number, w := s.f.allocs, s.program.number, &s.bench
	w.born = grown(w.born, al.other.len()+1)
	for o := s.firstAfter(al.other.from); o < len(allocs) && number[allocs[o].AllocSeq] <= al.other.to; o++ {
		w.born[number[allocs[o].AllocSeq]-al.other.from] = int32(o) + 1
	}
	w.pairs, w.factors = w.pairs[:0], factors{}
	for a := s.firstAfter(al.step.from); a < len(allocs) && number[allocs[a].AllocSeq] <= al.step.to; a++ {
		if p := al.findMatch(s, a); p.match >= 0 {
			w.factors[factor(allocs[a].Requested, allocs[p.match].Requested)]++
			w.pairs = append(w.pairs, p)
		}
	}
	for _, p := range w.pairs {
		// If the sizes of a pair differ by a factor that no other pair has, the two may have been paired by chance.
		if !w.factors.isOdd(factor(allocs[p.alloc].Requested, allocs[p.match].Requested)) {
			found(p)
		}
	}
}

// findMatch finds the allocation of the other step that is allocated and freed at the places that correspond to those
// of allocation a. The result's match is -1 if the other step has no such allocation.
func (al *alignment) findMatch(s *stepMatcher, a int) matchedPair {
	allocs, p := s.f.allocs, s.program
	birth := p.number[allocs[a].AllocSeq] - al.step.from
	death := p.freedAt(allocs[a].FreeRequestedSeq, al.step.to) - al.step.from
	outlives := int(death) > al.step.len()
	find := func(births, deaths *unitMap) int {
		o := int(s.bench.born[births.otherPlace(birth)]) - 1
		if o < 0 || !s.sameRecordedFamily(a, o) {
			return -1
		}
		end := p.freedAt(allocs[o].FreeRequestedSeq, al.other.to) - al.other.from
		if outlives != (int(end) > al.other.len()) || !outlives && deaths.otherPlace(death) != end {
			return -1
		}
		return o
	}
	found := matchedPair{a, find(al.parts, al.parts), false}
	if found.match < 0 && al.crossing != nil && (outlives || al.parts.unit(death) > al.parts.unit(birth)) {
		return matchedPair{a, find(al.crossing, al.parts), true}
	}
	return found
}

// place returns the program event of this step that corresponds to program event n of the other step, for an allocation
// whose birth is program event birth.
func (al *alignment) place(birth, n int32, crossing bool) int32 {
	if al.parts == nil {
		return max(n+al.step.from-al.other.from, 0)
	}
	at, n := birth-al.step.from, n-al.other.from
	if int(n) > al.other.len() {
		return al.step.to + 1
	}
	first := al.parts.unit(at)
	for u := first; u < len(al.parts.units); u++ {
		in := al.parts
		if u == first && crossing {
			in = al.crossing
		}
		part := in.units[u]
		if n > part.other.to {
			continue
		}
		from := max(part.step.from, at-1) // the time before an allocation is made is not part of its life
		i := sort.Search(int(part.step.to-from), func(i int) bool { return in.reached[from+1+int32(i)] >= n })
		return al.step.from + min(from+1+int32(i), part.step.to)
	}
	return al.step.to
}

// moment returns the event of this step that corresponds to event seq of the other step, for an allocation whose birth
// is program event birth.
func (al *alignment) moment(p *program, birth int32, seq int64, crossing bool) int64 {
	return p.at(al.place(birth, p.number[seq], crossing), seq)
}
