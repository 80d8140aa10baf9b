package join

import (
	"slices"
	"sort"

	"github.com/dpsight/dpsight/schemas"
)

// twins pairs lives of bare steps with the same lives of instrumented ones: training repeats itself, allocation by
// allocation, and only instrumented steps have tags.
type twins struct {
	program  *program
	of       []int32      // by life: its twin, or -1
	by       []int32      // by life that has a twin: its step in alike
	crossing []bool       // by life that has a twin: it is of another unit than others born beside it have
	alike    []*alignment // bare steps and those that they are like
	// by life of a step that a bare one follows: its twin of a step that an instrumented one follows, or -1; nil = none
	// has
	given    []int32
	handings map[int64]handing // by step that a bare one follows
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
	f := j.newFinder()
	t := &twins{program: f.p}
	for i := range steps {
		if !f.holds(i) {
			continue
		}
		if !steps[i].Instrumented {
			bare := schemas.BareStep{Step: steps[i].Number, Blocks: int64(j.born(f.p, f.at[i].to) - j.born(f.p,
				f.at[i].from))}
			var all []*alignment
			if al := f.like(i, f.tagged); al != nil {
				all = append(all, al)
			} else {
				all = f.likeInParts(i)
			}
			for n, al := range all {
				if n == 0 {
					bare.Like, bare.How = new(steps[al.other].Number), al.how
				}
				bare.Known += t.pairAll(j, al, &f.bench)
			}
			j.BareSteps = append(j.BareSteps, bare)
		}
		if i+1 < len(steps) && !steps[i+1].Instrumented {
			if al := f.like(i, f.before); al != nil {
				next := int32(0)
				if o := al.other; f.holds(i+1) && f.holds(o+1) && f.shapes[i+1] == f.shapes[o+1] {
					next = f.at[o+1].to
				}
				t.handOver(j, steps[i].Number, al, next, &f.bench)
			}
		}
	}
	if t.of == nil && t.given == nil {
		return nil
	}
	return t
}

// finder finds to each step one that is like it.
type finder struct {
	j            *Joined
	p            *program
	at           []stretch
	shapes       []uint64
	instrumented []int
	tagged       map[uint64][]int // instrumented steps by shape
	before       map[uint64][]int // steps before instrumented ones
	parts        partFinder
	bench        workbench
}

func (j *Joined) newFinder() *finder {
	steps := j.ctx.rank.Steps.Steps
	f := &finder{j: j, p: newProgram(j.dev.Events), at: make([]stretch, len(steps)), shapes: make([]uint64, len(steps)),
		tagged: map[uint64][]int{}, before: map[uint64][]int{}}
	for i := range steps {
		f.at[i] = stretch{f.p.number[j.seqAt(steps[i].BeginK)], f.p.number[j.seqAt(steps[i].EndK)]}
		if !f.holds(i) {
			continue
		}
		shape := j.shape(f.p, f.at[i])
		f.shapes[i] = shape
		if steps[i].Instrumented {
			f.instrumented = append(f.instrumented, i)
			f.tagged[shape] = append(f.tagged[shape], i)
		}
		if i+1 < len(steps) && steps[i+1].Instrumented {
			f.before[shape] = append(f.before[shape], i)
		}
	}
	return f
}

// holds reports whether a step has events that can be compared.
func (f *finder) holds(i int) bool {
	return f.j.ctx.rank.Steps.Steps[i].Recorded && f.at[i].to > f.at[i].from
}

// like finds the step that step i is most like, of those of its shape around it.
func (f *finder) like(i int, byShape map[uint64][]int) *alignment {
	candidates := nearest(byShape[f.shapes[i]], i, 2)
	differ := make([]int, len(candidates))
	best := -1
	for n, o := range candidates {
		differ[n] = f.j.otherSizes(f.p, f.at[i], f.at[o])
		if differ[n] >= 0 && (best < 0 || differ[n] < differ[best]) {
			best = n
		}
	}
	if best >= 0 && differ[best] <= f.at[i].len()/20 { // a few differ with the data (distinct ids in a batch)
		return f.aligned(i, candidates[best], schemas.LikeExact)
	}
	order := make([]int, len(candidates))
	for n := range order {
		order[n] = n
	}
	sort.SliceStable(order, func(a, b int) bool { return differ[order[a]] < differ[order[b]] })
	for _, n := range order {
		if o := candidates[n]; differ[n] >= 0 && f.j.scales(f.p, f.at[i], f.at[o]) {
			return f.aligned(i, o, schemas.LikeScaled)
		}
	}
	return nil
}

func (f *finder) aligned(i, o int, how string) *alignment {
	return &alignment{step: f.at[i], like: f.at[o], other: o, how: how,
		limit: f.j.seqAt(f.j.ctx.rank.Steps.Steps[o].EndK)}
}

// pairAll gives the lives born in a bare step that have no twin yet their twins.
func (t *twins) pairAll(j *Joined, al *alignment, w *workbench) int64 {
	lives := j.dev.Replay.Allocs
	if t.of == nil {
		t.of, t.by, t.crossing = slices.Repeat([]int32{-1}, len(lives)), make([]int32, len(lives)),
			make([]bool, len(lives))
	}
	t.alike = append(t.alike, al)
	n := int64(0)
	al.pair(j, t.program, w, func(m match) {
		if t.of[m.life] >= 0 {
			return
		}
		t.of[m.life], t.by[m.life], t.crossing[m.life] = int32(m.twin), int32(len(t.alike)-1), m.crossing
		n++
	})
	return n
}

// nearest is the given steps that lie closest to step i, so many on either side: all of them would be quadratic in the
// number of steps.
func nearest(steps []int, i, each int) []int {
	n := sort.SearchInts(steps, i)
	return steps[max(n-each, 0):min(n+each, len(steps))]
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
		if t.handed(j, l) {
			out, scratch = r.takeAsInput(out, own, int32(l), scratch)
			continue
		}
		out = append(out, own...)
		twin := int32(-1)
		if t.of != nil {
			twin = t.of[l]
		}
		if twin < 0 {
			continue
		}
		a, b := &lives[l], &lives[twin]
		if j.births[l].dtype == 0 {
			j.births[l].dtype, j.births[l].mixed = j.births[twin].dtype, j.births[twin].mixed
		}
		al := t.alike[t.by[l]]
		// the same moment of this step
		here := func(seq int64) int64 { return al.moment(p, p.number[a.AllocSeq], seq, t.crossing[l]) }
		for _, o := range j.owners[j.ownerAt[twin]:j.ownerAt[twin+1]] {
			if o.begin > al.limit || o.evidence != tagged && len(own) > 0 { // a rule's word against a tag's
				continue
			}
			n := o
			n.life, n.begin, n.end, n.observed = int32(l), max(here(o.begin), a.AllocSeq), a.FreeRequestedSeq, false
			if o.evidence == tagged {
				n.evidence = lifetime
			}
			if o.end != b.FreeRequestedSeq && o.end != 0 && o.end <= al.limit {
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
