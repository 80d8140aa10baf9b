package join

import (
	"slices"
	"sort"
)

// alignment says which event of one step is which of another.
type alignment struct {
	step, like stretch
	other      int   // the step that like is
	limit      int64 // its last event; what came later says nothing
	how        string
	parts      *places // nil = they do the same
	// crossing is for what outlives its unit. A step may have fewer units than the other, or more: where two that
	// follow each other are held against two that do not, a life that goes from one into the next has its twin
	// elsewhere.
	crossing *places
}

// places gives to events of one step their places in another one.
type places struct {
	far   []int32 // by place in step, from 1: how far in its unit of like the events up to it go
	units []partition
}

// partition is a unit of a step, a forward-backward pair with what is around it: (from, to] of both, in places of each.
type partition struct{ step, like stretch }

func (p *places) unit(at int32) int {
	return sort.Search(len(p.units), func(i int) bool { return p.units[i].step.to >= at })
}

// back is the place in like of a place in step; 0 = none.
func (p *places) back(at int32) int32 {
	u := &p.units[p.unit(at)]
	before := u.like.from
	if at-1 > u.step.from {
		before = p.far[at-1]
	}
	if p.far[at] > before {
		return p.far[at]
	}
	return 0
}

// A match is a life and its twin.
type match struct {
	life, twin int
	crossing   bool
}

// workbench is what comparing two steps takes, to be used again for the next two.
type workbench struct {
	born    []int32 // by place in like: the life born there, plus 1
	matches []match
	all     factors
}

// grown gives n zeros.
func grown[T any](buffer []T, n int) []T {
	buffer = slices.Grow(buffer[:0], n)[:n]
	clear(buffer)
	return buffer
}

// pair pairs the lives born in one step with those born in the other.
func (al *alignment) pair(j *Joined, p *program, w *workbench, found func(match)) {
	if al.parts == nil {
		j.pairs(p, al.step, al.like, func(a, o int) { found(match{a, o, false}) })
		return
	}
	lives := j.dev.Replay.Allocs
	w.born = grown(w.born, al.like.len()+1)
	for o := j.born(p, al.like.from); o < len(lives) && p.number[lives[o].AllocSeq] <= al.like.to; o++ {
		w.born[p.number[lives[o].AllocSeq]-al.like.from] = int32(o) + 1
	}
	w.matches, w.all = w.matches[:0], factors{}
	for a := j.born(p, al.step.from); a < len(lives) && p.number[lives[a].AllocSeq] <= al.step.to; a++ {
		b, d := p.number[lives[a].AllocSeq]-al.step.from, p.death(lives[a].FreeRequestedSeq, al.step.to)-al.step.from
		twin := func(births, deaths *places) int {
			o := int(w.born[births.back(b)]) - 1
			if o < 0 || !j.sameFamily(a, o) {
				return -1
			}
			end := p.death(lives[o].FreeRequestedSeq, al.like.to) - al.like.from
			outlives := int(d) > al.step.len()
			if outlives != (int(end) > al.like.len()) || !outlives && deaths.back(d) != end {
				return -1
			}
			return o
		}
		m := match{a, twin(al.parts, al.parts), false}
		if m.twin < 0 && al.crossing != nil && (int(d) > al.step.len() || al.parts.unit(d) > al.parts.unit(b)) {
			m = match{a, twin(al.crossing, al.parts), true}
		}
		if m.twin >= 0 {
			w.all[factor(lives[a].Requested, lives[m.twin].Requested)]++
			w.matches = append(w.matches, m)
		}
	}
	for _, m := range w.matches {
		// else chance may have brought them together
		if !w.all.isOdd(factor(lives[m.life].Requested, lives[m.twin].Requested)) {
			found(m)
		}
	}
}

// place is the program event of step at which what program event n of like did has been done, for a life born at
// program event born.
func (al *alignment) place(born, n int32, crossing bool) int32 {
	if al.parts == nil {
		return max(n+al.step.from-al.like.from, 0)
	}
	at, n := born-al.step.from, n-al.like.from
	if int(n) > al.like.len() {
		return al.step.to + 1
	}
	first := al.parts.unit(at)
	for u := first; u < len(al.parts.units); u++ {
		in := al.parts
		if u == first && crossing {
			in = al.crossing
		}
		part := in.units[u]
		if n > part.like.to {
			continue
		}
		from := max(part.step.from, at-1) // what is done before a block is born is no moment of its life
		i := sort.Search(int(part.step.to-from), func(i int) bool { return in.far[from+1+int32(i)] >= n })
		return al.step.from + min(from+1+int32(i), part.step.to)
	}
	return al.step.to
}

// moment is the event of step that is to it what event seq is to like, for a life born at program event born.
func (al *alignment) moment(p *program, born int32, seq int64, crossing bool) int64 {
	return p.at(al.place(born, p.number[seq], crossing), seq)
}
