package join

import (
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// Where no instrumented step does the same as a bare one, parts of it may. Each forward-backward pair of the bare step,
// a unit, is held against one of the other: the first against the first, the last against the last, and those between
// against those between; a logical batch may have more physical ones than another. Within a pair of units the shortest
// edit from one to the other says which event is which. Sizes are left out of that: they are what differs. What is
// compared of an event says more than that it allocates: in which phase, and where the block that it is about ends or
// began.

const (
	// candidates is how many instrumented steps on either side a bare one is held against.
	candidates = 4
	// maxEdits bounds how much two units may differ.
	maxEdits = 400
	// maxWork bounds the comparisons of a recording: past it steps that differ from all others go without a twin.
	maxWork = 400_000_000
)

// partFinder compares steps part by part.
type partFinder struct {
	tokens map[int]*tokens // by step
	spare  []*tokens
	buffer struct {
		phase           []family
		run, microbatch []int32
		places          []int32
		furthest        []int32
		trace           []int32
		lives           []int
	}
	work int
}

// forget gives up what a step does.
func (s *partFinder) forget(i int) {
	if t := s.tokens[i]; t != nil {
		s.spare = append(s.spare, t)
	}
	delete(s.tokens, i)
}

// likeInParts finds the instrumented steps that blocks of step i have twins in, the one with the most first: what that
// one does not have another may. None, where fewer than half of the blocks have a twin in any.
func (f *finder) likeInParts(i int) []*alignment {
	first := f.j.born(f.p, f.at[i].from)
	left := f.j.born(f.p, f.at[i].to) - first // blocks without a twin so far
	births, known := left, make([]bool, left)
	var found []*alignment
	taken := map[*alignment]int{}
	near := nearest(f.instrumented, i, candidates)
	for o := range f.parts.tokens { // what is behind is not needed any more
		if len(near) > 0 && o < near[0] {
			f.parts.forget(o)
		}
	}
	near = slices.Clone(near)
	slices.SortStableFunc(near, func(a, b int) int { return max(a-i, i-a) - max(b-i, i-b) })
	for _, o := range near {
		al := f.align(i, o)
		if al == nil {
			continue
		}
		lives := f.parts.buffer.lives[:0]
		al.pair(f.j, f.p, &f.bench, func(m match) { lives = append(lives, m.life-first) })
		f.parts.buffer.lives = lives
		// Only what is taken hides from those behind it what they have too.
		if 2*len(lives) < births || !slices.ContainsFunc(lives, func(l int) bool { return !known[l] }) {
			continue
		}
		for _, l := range lives {
			if !known[l] {
				known[l] = true
				left--
			}
		}
		found, taken[al] = append(found, al), len(lives)
		if left == 0 {
			break
		}
	}
	f.parts.forget(i)
	slices.SortStableFunc(found, func(a, b *alignment) int { return taken[b] - taken[a] })
	return found
}

// align finds which event of step i is which of step o.
func (f *finder) align(i, o int) *alignment {
	a, b := f.tokensOf(i), f.tokensOf(o)
	if a == nil || b == nil {
		return nil
	}
	n, m := len(a.units), len(b.units)
	al := f.aligned(i, o, schemas.LikeParts)
	al.parts = f.places(a, b, func(u int) int { return like(u, n, m) })
	for u := 0; u+1 < n; u++ {
		if like(u+1, n, m) != like(u, n, m)+1 {
			al.crossing = f.places(a, b, func(u int) int {
				if u+1 == n || like(u+1, n, m) == like(u, n, m)+1 {
					return -1
				}
				return like(u+1, n, m) - 1
			})
			break
		}
	}
	return al
}

// places finds the place of each event in the unit of b that its own unit is held against; -1 = none.
func (f *finder) places(a, b *tokens, against func(int) int) *places {
	p := &places{far: make([]int32, len(a.of)), units: make([]partition, len(a.units))}
	for u := range a.units {
		part := &p.units[u]
		part.step = a.units[u].stretch
		v := against(u)
		if v < 0 {
			continue
		}
		part.like = b.units[v].stretch
		last, found := part.like.from, f.edit(a, &a.units[u], b, &b.units[v])
		for e := part.step.from + 1; e <= part.step.to; e++ {
			if found != nil && found[e-part.step.from-1] > 0 {
				last = part.like.from + found[e-part.step.from-1]
			}
			p.far[e] = last
		}
	}
	return p
}

// like is the unit of m that unit i of n is held against.
func like(i, n, m int) int {
	switch {
	case i == n-1:
		return m - 1
	case m == 1:
		return 0
	}
	return min(i, max(m-2, 0))
}

// edit gives, by event of one unit, its place in the other from 1, or 0; nil = they are too different. Where they
// differ, sizes have a say after all: a first edit shows by which factors sizes differ, and a second one keeps to
// those.
func (f *finder) edit(a *tokens, u *unit, b *tokens, v *unit) []int32 {
	x, y := sequence{a.of[u.from+1 : u.to+1], a.size[u.from+1 : u.to+1]}, sequence{b.of[v.from+1 : v.to+1],
		b.size[v.from+1 : v.to+1]}
	all := factors{}
	if u.hash != v.hash {
		for i, n := range f.parts.shortest(x, y, nil) {
			if n > 0 {
				all[factor(x.size[i], y.size[n-1])]++
			}
		}
		for factor, n := range all {
			if n <= 2 { // a block of its own: its birth and its death
				delete(all, factor)
			}
		}
		if len(all) == 0 {
			return nil
		}
		return f.parts.shortest(x, y, all)
	}
	return f.parts.shortest(x, y, nil)
}
