package join

import (
	"sort"

	"github.com/dpsight/dpsight/schemas"
)

// program numbers the events that the program caused: allocs and requests to free. Segments come and go, and frees
// complete, as the allocator sees fit; so one step repeats another in these events only.
type program struct {
	number []int32 // by seq: program events up to it
	seq    []int32 // by number: its seq
}

func newProgram(e *schemas.EventColumns) *program {
	p := &program{number: make([]int32, e.Len()+1), seq: []int32{0}}
	for i, a := range e.Action {
		if a == schemas.ActionAlloc || a == schemas.ActionFreeRequested {
			p.seq = append(p.seq, int32(i+1))
		}
		p.number[i+1] = int32(len(p.seq) - 1)
	}
	return p
}

// stretch is the program events of one step: (from, to].
type stretch struct{ from, to int32 }

// twins pairs lives of bare steps with the same lives of instrumented ones: training repeats itself, allocation by
// allocation, and only instrumented steps have tags.
type twins struct {
	program *program
	of      []int32 // by life: its twin, or -1
	limit   []int64 // by life: last event of the twin's step; what came later says nothing
}

// findTwins gives nil if no life has a twin.
func (j *Joined) findTwins() *twins {
	steps := j.ctx.rank.Steps.Steps
	bare := false
	for i := range steps {
		bare = bare || steps[i].Recorded && !steps[i].Instrumented
	}
	if !bare {
		return nil
	}
	t := &twins{program: newProgram(j.dev.Events)}
	at := make([]stretch, len(steps))
	byShape := map[uint64][]int{} // instrumented steps
	for i := range steps {
		at[i] = stretch{t.program.number[j.seqAt(steps[i].BeginK)], t.program.number[j.seqAt(steps[i].EndK)]}
		if steps[i].Instrumented && steps[i].Recorded && at[i].to > at[i].from {
			h := j.shape(t.program, at[i])
			byShape[h] = append(byShape[h], i)
		}
	}
	for i := range steps {
		if !steps[i].Recorded || steps[i].Instrumented || at[i].to == at[i].from {
			continue
		}
		like, fewest := -1, 0
		for _, o := range nearest(byShape[j.shape(t.program, at[i])], i) {
			if d := j.otherSizes(t.program, at[i], at[o]); d >= 0 && (like < 0 || d < fewest) {
				like, fewest = o, d
			}
		}
		if like >= 0 {
			t.pair(j, at[i], at[like], j.seqAt(steps[like].EndK))
		}
	}
	if t.of == nil {
		return nil
	}
	return t
}

// pair pairs the lives born in one step with those born in the other.
func (t *twins) pair(j *Joined, step, like stretch, limit int64) {
	lives, p := j.dev.Replay.Allocs, t.program
	if t.of == nil {
		t.of, t.limit = make([]int32, len(lives)), make([]int64, len(lives))
		for l := range t.of {
			t.of[l] = -1
		}
	}
	born := func(after int32) int { // lives are in order of birth
		return sort.Search(len(lives), func(l int) bool { return p.number[lives[l].AllocSeq] > after })
	}
	shift := step.from - like.from
	for a, o := born(step.from), born(like.from); a < len(lives) && o < len(lives); a, o = a+1, o+1 {
		if p.number[lives[a].AllocSeq] > step.to || p.number[lives[a].AllocSeq]-shift != p.number[lives[o].AllocSeq] {
			break
		}
		// Of equal blocks that are freed in another order only those with the same end are twins.
		if death(p, lives[a].FreeRequestedSeq, step.to)-shift == death(p, lives[o].FreeRequestedSeq, like.to) {
			t.of[a], t.limit[a] = int32(o), limit
		}
	}
}

// death is the program event that ends a life, or the first one after the step if it outlives that.
func death(p *program, free int64, to int32) int32 {
	if free == 0 || p.number[free] > to {
		return to + 1
	}
	return p.number[free]
}

// nearest is the up to four of the given steps that lie closest to step i on either side: all of them would be quadratic in
// the number of steps.
func nearest(steps []int, i int) []int {
	n := sort.SearchInts(steps, i)
	return steps[max(n-2, 0):min(n+2, len(steps))]
}

// shape hashes what a step's program events do.
func (j *Joined) shape(p *program, s stretch) uint64 {
	h := uint64(14695981039346656037)
	for _, seq := range p.seq[s.from+1 : s.to+1] {
		h = (h ^ uint64(j.dev.Events.Action[seq-1])) * 1099511628211
	}
	return h
}

// otherSizes counts the events that differ in size; -1 = what is done differs, or more than one size in twenty: another
// step. A few differ with the data (distinct ids in a batch).
func (j *Joined) otherSizes(p *program, a, b stretch) int {
	n := int(a.to - a.from)
	if n != int(b.to-b.from) {
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
	if differ > n/20 {
		return -1
	}
	return differ
}

// ownTwins gives lives of bare steps the owners of their twins, and fills what is left by rule.
func (j *Joined) ownTwins(t *twins, r *rules) {
	lives, p := j.dev.Replay.Allocs, t.program
	out := make([]owner, 0, len(j.owners)+len(j.owners)/4)
	at := make([]int32, len(lives)+1)
	var scratch []owner
	for l := range lives {
		at[l] = int32(len(out))
		own := j.owners[j.ownerAt[l]:j.ownerAt[l+1]]
		out = append(out, own...)
		twin := t.of[l]
		if twin < 0 {
			continue
		}
		a, b := &lives[l], &lives[twin]
		shift := p.number[a.AllocSeq] - p.number[b.AllocSeq]
		here := func(seq int64) int64 { // the same moment of this step
			n := min(max(p.number[seq]+shift, 0), int32(len(p.seq)-1))
			return int64(p.seq[n])
		}
		for _, o := range j.owners[j.ownerAt[twin]:j.ownerAt[twin+1]] {
			if o.begin > t.limit[l] {
				continue
			}
			n := o
			n.life, n.begin, n.end, n.observed = int32(l), max(here(o.begin), a.AllocSeq), a.FreeRequestedSeq, false
			if o.evidence == tagged {
				n.evidence = lifetime
			}
			if o.end != b.FreeRequestedSeq && o.end != 0 && o.end <= t.limit[l] {
				n.end, n.observed = here(o.end), o.observed
			}
			for _, q := range own { // a later instrumented step saw it too
				if q.category == n.category && q.begin < lifeEnd(n.end) {
					n.end, n.observed = q.begin, true
				}
			}
			if n.begin < lifeEnd(n.end) && lifeEnd(n.end) <= lifeEnd(a.FreeRequestedSeq) {
				out = append(out, n)
			}
		}
		out, scratch = r.fill(out, at[l], int32(l), scratch)
	}
	at[len(lives)] = int32(len(out))
	j.owners, j.ownerAt = out, at
}
