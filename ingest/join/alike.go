package join

import "github.com/dpsight/dpsight/schemas"

// shape hashes what a step's program events do.
func (j *Joined) shape(p *program, s stretch) uint64 {
	h := uint64(14695981039346656037)
	for _, seq := range p.seq[s.from+1 : s.to+1] {
		h = (h ^ uint64(j.dev.Events.Action[seq-1])) * 1099511628211
	}
	return h
}

// otherSizes counts the events that differ in size; -1 = what is done differs.
func (j *Joined) otherSizes(p *program, a, b stretch) int {
	n := a.len()
	if n != b.len() {
		return -1
	}
	e, differ := j.dev.Events, 0
	for i := 1; i <= n; i++ {
		x, y := p.seq[int(a.from)+i]-1, p.seq[int(b.from)+i]-1
		if e.Action[x] != e.Action[y] {
			return -1
		}
		if e.Size[x] != e.Size[y] {
			differ++
		}
	}
	return differ
}

// factors counts the pairs of blocks by the factor that their sizes differ by: a batch of another size makes everything
// of it larger by the same factor, attention over longer sequences by its square, and leaves the rest. That does not
// say which blocks grow; a block whose factor no other pair has is odd, but for one that did not grow. Equal quotients
// round to equal floats.
type factors map[float64]int

func factor(a, b int64) float64 { return float64(a) / float64(max(b, 1)) }

// scales reports whether step a is step b with other sizes: what is done is known to be the same. It must be so in
// every respect but the sizes: nearly every block dies where its twin does and was born in the same phase, and at most
// one factor in twenty is odd.
func (j *Joined) scales(p *program, a, b stretch) bool {
	all, e := factors{}, j.dev.Events
	births, same := 0, 0
	for i := 1; i <= a.len(); i++ {
		x, y := p.seq[int(a.from)+i]-1, p.seq[int(b.from)+i]-1
		switch e.Action[x] {
		case schemas.ActionGap:
			return false
		case schemas.ActionAlloc:
			all[factor(e.Size[x], e.Size[y])]++
			births++
		}
	}
	j.pairs(p, a, b, func(x, y int) {
		if j.sameFamily(x, y) {
			same++
		}
	})
	return all.odd()*20 <= births && (births-same)*20 <= births
}

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

// pairs pairs the lives born in one step with those born at the same places of another one that does the same.
func (j *Joined) pairs(p *program, step, like stretch, found func(life, twin int)) {
	lives := j.dev.Replay.Allocs
	shift := step.from - like.from
	for a, o := j.born(p, step.from), j.born(p, like.from); a < len(lives) && o < len(lives); a, o = a+1, o+1 {
		if p.number[lives[a].AllocSeq] > step.to || p.number[lives[a].AllocSeq]-shift != p.number[lives[o].AllocSeq] {
			break
		}
		// Of equal blocks that are freed in another order only those with the same end are twins.
		if p.death(lives[a].FreeRequestedSeq, step.to)-shift == p.death(lives[o].FreeRequestedSeq, like.to) {
			found(a, o)
		}
	}
}

// sameFamily reports whether two lives were born in phases that the rules treat alike. Recompute is seen in
// instrumented steps only: elsewhere it is a part of backward.
func (j *Joined) sameFamily(a, b int) bool { return j.family(a) == j.family(b) }

func (j *Joined) family(l int) family {
	return folded(families[j.ctx.rank.Steps.Spans[j.births[l].span].Under])
}

func folded(f family) family {
	if f == famRecompute {
		return famBackward
	}
	return f
}
