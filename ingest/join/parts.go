package join

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// If no instrumented step does the same as a bare step, parts of one may. A unit is one forward-backward pair. The
// units of the bare step are compared with the units of another step: the first with the first, the last with the last,
// and the middle ones with middle ones, since a logical batch may have more physical batches than another. Within two
// units the shortest edit from one to the other matches the events. The first edit ignores the events' sizes, since
// they may all differ. Two events are compared by their actions, their phases, and where their blocks begin or end.

const (
	// neighbours is the number of instrumented steps before and after a bare step with which the bare step is compared.
	neighbours = 4
	// maxEdits is the largest length of an edit between two units.
	maxEdits = 400
	// maxWork is the largest number of comparisons for one device of a rank, over all its steps. Past maxWork, parts of
	// steps are no longer compared. So whether a step has matches may depend on the work that earlier steps took.
	maxWork = 400_000_000
)

// partMatcher compares steps unit by unit.
type partMatcher struct {
	actions map[int]*stepActions // actions of each step
	spare   []*stepActions
	buffer  struct {
		phase            []family
		run, microbatch  []int32
		places, furthest []int32
		trace            []int32
		allocs           []int
	}
	work int
}

// forget frees the actions of a step for reuse.
func (m *partMatcher) forget(i int) {
	if t := m.actions[i]; t != nil {
		m.spare = append(m.spare, t)
	}
	delete(m.actions, i)
}

// stepsWithSharedParts aligns step i with the instrumented steps in which its allocations have matches. The step with
// the most matches comes first, and further steps supply matches that it lacks. A step in which fewer than half of the
// allocations have a match is not used.
func (s *stepMatcher) stepsWithSharedParts(i int) []*alignment {
	first := s.firstAfter(s.at[i].from)
	left := s.firstAfter(s.at[i].to) - first // number of allocations without a match so far
	births, known := left, make([]bool, left)
	var found []*alignment
	taken := map[*alignment]int{}
	near := nearest(s.instrumented, i, neighbours)
	for o := range s.parts.actions { // steps that lie behind are no longer needed
		if len(near) > 0 && o < near[0] {
			s.parts.forget(o)
		}
	}
	near = slices.Clone(near)
	slices.SortStableFunc(near, func(a, b int) int { return cmp.Compare(max(a-i, i-a), max(b-i, i-b)) })
	for _, o := range near {
		al := s.align(i, o)
		if al == nil {
			continue
		}
		allocs := s.parts.buffer.allocs[:0]
		al.pairAllocs(s, func(p matchedPair) { allocs = append(allocs, p.alloc-first) })
		s.parts.buffer.allocs = allocs
		// A step that is not used must not mark its matches as known, so that the next steps can supply them.
		if 2*len(allocs) < births || !slices.ContainsFunc(allocs, func(a int) bool { return !known[a] }) {
			continue
		}
		for _, a := range allocs {
			if !known[a] {
				known[a] = true
				left--
			}
		}
		found, taken[al] = append(found, al), len(allocs)
		if left == 0 {
			break
		}
	}
	s.parts.forget(i)
	slices.SortStableFunc(found, func(a, b *alignment) int { return cmp.Compare(taken[b], taken[a]) })
	return found
}

// align maps the events of step i to those of step o. align returns nil if something in either step is unknown.
func (s *stepMatcher) align(i, o int) *alignment {
	a, b := s.actionsOf(i), s.actionsOf(o)
	if a == nil || b == nil {
		return nil
	}
	n, m := len(a.units), len(b.units)
	al := s.newAlignment(i, o, schemas.LikeParts)
	al.parts = s.parts.mapUnits(a, b, func(u int) int { return counterpart(u, n, m) })
	for u := 0; u+1 < n; u++ {
		if counterpart(u+1, n, m) != counterpart(u, n, m)+1 {
			al.crossing = s.parts.mapUnits(a, b, func(u int) int {
				if u+1 == n || counterpart(u+1, n, m) == counterpart(u, n, m)+1 {
					return -1
				}
				return counterpart(u+1, n, m) - 1
			})
			break
		}
	}
	return al
}

// counterpart returns with which of m units unit i of n units is compared.
func counterpart(i, n, m int) int {
	switch {
	case i == n-1:
		return m - 1
	case m == 1:
		return 0
	}
	return min(i, max(m-2, 0))
}

// mapUnits finds, for each event of a, its place in the unit of b with which the event's unit is compared. The function
// against returns that unit; -1 = none.
func (m *partMatcher) mapUnits(a, b *stepActions, against func(int) int) *unitMap {
	out := &unitMap{reached: make([]int32, len(a.of)), units: make([]unitPair, len(a.units))}
	for u := range a.units {
		p := &out.units[u]
		p.step = a.units[u].stretch
		v := against(u)
		if v < 0 {
			continue
		}
		p.other = b.units[v].stretch
		last, found := p.other.from, m.edit(a, &a.units[u], b, &b.units[v])
		for e := p.step.from + 1; e <= p.step.to; e++ {
			if found != nil && found[e-p.step.from-1] > 0 {
				last = p.other.from + found[e-p.step.from-1]
			}
			out.reached[e] = last
		}
	}
	return out
}

// edit returns, for each event of unit u, its place in unit v, from 1, or 0 if it has none. edit returns nil if the
// units are too different. If the units differ, a first edit finds the factors by which sizes differ, and a second edit
// allows only these factors.
func (m *partMatcher) edit(a *stepActions, u *unit, b *stepActions, v *unit) []int32 {
	x, y := a.sequence(u), b.sequence(v)
	if u.hash == v.hash {
		return m.shortest(x, y, nil)
	}
	all := factors{}
	for i, n := range m.shortest(x, y, nil) {
		if n > 0 {
			all[factor(x.size[i], y.size[n-1])]++
		}
	}
	for factor, n := range all {
		if n <= 2 { // the unit is one block: its birth and its death
			delete(all, factor)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return m.shortest(x, y, all)
}
