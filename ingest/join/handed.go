package join

import (
	"slices"

	"github.com/dpsight/dpsight/schemas/spool"
)

// A batch may be made ahead, in the step before the one whose model it is given to. If that one is bare, no tag says
// that it is a batch; but where the same was made for an instrumented step, a tag does.

// handOver pairs the lives of a step which a bare one follows with those of a step like it which an instrumented one
// follows. Where the steps after them do the same too, what becomes of the one batch there becomes of the other: next
// is the end of the instrumented one; else 0.
func (t *twins) handOver(j *Joined, step int64, al *alignment, next int32, w *workbench) {
	if t.given == nil {
		t.given, t.handings = slices.Repeat([]int32{-1}, len(j.dev.Replay.Allocs)), map[int64]handing{}
	}
	t.handings[step] = handing{al.step.from - al.like.from, next}
	al.pair(j, t.program, w, func(m match) { t.given[m.life] = int32(m.twin) })
}

// handing is how the batches that a step made ahead are used: by how many program events later than the other, and the
// last of those that tell.
type handing struct{ shift, next int32 }

// givenInLaterStep reports whether the first tag that says that a block is an input was made after the step that the
// block was born in.
func (j *Joined) givenInLaterStep(life int32, tags []bound) bool {
	c := j.ctx
	for i := range tags {
		if t := &c.tags[tags[i].tag]; t.Kind == spool.TagInput && !t.Untag {
			return c.rank.Steps.Spans[c.span[t.K]].Step > c.rank.Steps.Spans[j.births[life].span].Step
		}
	}
	return false
}

// handed reports whether a life is that of a batch which no tag shows, for it was given to the model in a bare step.
func (t *twins) handed(j *Joined, l int) bool {
	return t.given != nil && t.given[l] >= 0 && j.givenLater[t.given[l]] && !has(j, l, inputs)
}

// has reports whether a tag says that a life is of a category.
func has(j *Joined, l int, category categoryIndex) bool {
	for _, o := range j.owners[j.ownerAt[l]:j.ownerAt[l+1]] {
		if o.category == category && o.evidence == tagged {
			return true
		}
	}
	return false
}

// takeAsInput appends what tags prove of a life, of which own are the owners so far, that it is an input, and what else
// its twin is in the step that it is given to.
func (r *rules) takeAsInput(out, own []owner, life int32, scratch []owner) (appended, reuse []owner) {
	t, first := r.twins, int32(len(out))
	a := &r.j.dev.Replay.Allocs[life]
	for _, o := range own {
		if o.evidence == tagged {
			out = append(out, o)
		}
	}
	out = append(out, owner{life: life, category: inputs, evidence: lifetime, begin: a.AllocSeq,
		end: a.FreeRequestedSeq})
	twin := t.given[life]
	b, by, p := &r.j.dev.Replay.Allocs[twin], t.handings[r.j.ctx.rank.Steps.Spans[r.j.births[life].span].Step],
		t.program
	if by.next == 0 || p.death(b.FreeRequestedSeq, by.next)+by.shift != p.death(a.FreeRequestedSeq, by.next+by.shift) {
		return r.fill(out, first, life, scratch)
	}
	end := int64(p.seq[by.next])
	for _, o := range r.j.owners[r.j.ownerAt[twin]:r.j.ownerAt[twin+1]] {
		if o.evidence != tagged || o.category == inputs || o.begin > end || has(r.j, int(life), o.category) {
			continue
		}
		n := o
		n.life, n.evidence, n.begin, n.end, n.observed = life, lifetime, max(p.later(o.begin, by.shift), a.AllocSeq),
			a.FreeRequestedSeq, false
		if o.end != b.FreeRequestedSeq && o.end != 0 && o.end <= end {
			n.end, n.observed = p.later(o.end, by.shift), o.observed
		}
		if n.begin < lifeEnd(n.end) && lifeEnd(n.end) <= lifeEnd(a.FreeRequestedSeq) {
			out = append(out, n)
		}
	}
	return r.fill(out, first, life, scratch)
}
