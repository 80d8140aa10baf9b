package join

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

var (
	parameters  = index(schemas.Parameters)
	activations = index(schemas.Activations)
)

// own gives every moment of every life its owners.
func (j *Joined) own(tags []bound) {
	slices.SortStableFunc(tags, func(a, b bound) int { return cmp.Compare(a.life, b.life) })
	lives := j.dev.Replay.Allocs
	r := newRules(j)
	twins := j.findTwins()
	r.twins = twins
	j.givenLater = make([]bool, len(lives))
	firstPass := make([]owner, 0, len(lives)+len(tags)/2)
	at := make([]int32, len(lives)+1)
	var scratch []owner
	t := 0
	for l := range lives {
		from := t
		for t < len(tags) && int(tags[t].life) == l {
			t++
		}
		at[l] = int32(len(firstPass))
		j.births[l].dtyped(j.ctx.tags, tags[from:t])
		j.givenLater[l] = j.givenInLaterStep(int32(l), tags[from:t])
		firstPass = r.fromTags(firstPass, tags[from:t], int32(l))
		firstPass = r.sinceBirth(firstPass, at[l], int32(l))
		firstPass = r.unfinished(firstPass, at[l], int32(l))
		if twins == nil || twins.of == nil || twins.of[l] < 0 {
			firstPass, scratch = r.fill(firstPass, at[l], int32(l), scratch)
		}
	}
	at[len(lives)] = int32(len(firstPass))
	j.owners, j.ownerAt = firstPass, at
	if twins != nil {
		j.ownTwins(twins, r)
	}
	for l := range lives {
		slices.SortFunc(j.owners[j.ownerAt[l]:j.ownerAt[l+1]], func(a, b owner) int {
			return cmp.Or(cmp.Compare(a.category, b.category), cmp.Compare(a.begin, b.begin))
		})
	}
}

// dtyped notes what the tensors that were tagged in a block are made of.
func (b *birth) dtyped(all []spool.Tag, tags []bound) {
	for i := range tags {
		switch d := all[tags[i].tag].DType; {
		case d == 0 || d == b.dtype:
		case b.dtype == 0:
			b.dtype = d
		default:
			b.mixed = true
		}
	}
}

// dtypeName is the name of a block's dtype; empty if none is known.
func (b *birth) dtypeName() string {
	if b.mixed {
		return schemas.MixedDTypes
	}
	return b.dtype.String()
}

// lifeEnd is a life's last state plus one, with "never" as the greatest number.
func lifeEnd(free int64) int64 {
	if free == 0 {
		return 1<<62 - 1
	}
	return free
}

// fromTags appends the ownerships that the tags of one life prove.
func (r *rules) fromTags(out []owner, tags []bound, life int32) []owner {
	if len(tags) == 0 {
		return out
	}
	j := r.j
	a := &j.dev.Replay.Allocs[life]
	weight := false
	for _, b := range tags {
		k := j.ctx.tags[b.tag].Kind
		weight = weight || k == spool.TagParameter || k == spool.TagBuffer
	}
	first := len(out)
	var open [32]int32 // by category: index in out, plus 1
	for _, b := range tags {
		t := &j.ctx.tags[b.tag]
		category := j.category(t)
		if weight && category == activations { // autograd saved a weight
			continue
		}
		o := open[category]
		switch {
		case t.Untag && o > 0:
			out[o-1].end, out[o-1].observed = max(b.seq, out[o-1].begin), true
			open[category] = 0
		case t.Untag:
		case o > 0:
			// what the user says, not by what name the script keeps it
			if t.Kind == spool.TagUser && category == other && !out[o-1].user {
				out[o-1].user, out[o-1].name, out[o-1].begin = true, t.Name, a.AllocSeq
			}
			if out[o-1].name == 0 {
				out[o-1].name = t.Name
			}
			if out[o-1].module == 0 && t.Kind != spool.TagUser {
				out[o-1].module = t.Module
			}
		default:
			n := owner{life: life, category: category, evidence: tagged, user: t.Kind == spool.TagUser, name: t.Name}
			if t.Kind != spool.TagUser {
				n.module = t.Module
			}
			n.begin = max(j.beginning(category, life, len(out) > first, b.seq), a.AllocSeq)
			for _, before := range out[first:] {
				// it let go, and has taken hold once more since: when, bare steps do not tell
				if before.category == category {
					n.begin = max(n.begin, before.end)
				}
			}
			// a batch, a mask: it was there before
			if t.Kind == spool.TagSavedTensor || t.Kind == spool.TagHookActivation {
				n.begin = min(r.graphs.heldFrom(t.K, n.begin), max(n.begin, b.seq))
			}
			if t.Kind == spool.TagHeld && r.graphs.unseen(life) { // autograd may have held it as well
				n.begin = max(n.begin, min(r.graphs.givenUp(life), b.seq))
			}
			out = append(out, n)
			open[category] = int32(len(out))
		}
	}
	kept := out[:first]
	for _, o := range out[first:] {
		if o.observed && o.end >= lifeEnd(a.FreeRequestedSeq) {
			o.end, o.observed = 0, false
		}
		if o.end == 0 && !o.observed {
			o.end = a.FreeRequestedSeq
		}
		if o.begin < lifeEnd(o.end) {
			kept = append(kept, o)
		}
	}
	j.release(kept[first:], tags, a.FreeRequestedSeq)
	return kept
}

func (j *Joined) category(t *spool.Tag) categoryIndex {
	if t.Kind == spool.TagUser {
		return index(j.ctx.rank.Names[t.Module])
	}
	return tagIndex[t.Kind]
}

// beginning is the first state of a tagged ownership.
func (j *Joined) beginning(category categoryIndex, life int32, later bool, tag int64) int64 {
	birth := j.dev.Replay.Allocs[life].AllocSeq
	switch beginIndex[category] {
	case fromTag:
		return tag
	case fromDPBirth:
		b := &j.births[life]
		fam := families[j.ctx.rank.Steps.Spans[b.span].Under]
		if later || !(b.dp || fam == famDP || fam == famUpdate) {
			return tag
		}
	}
	return birth
}

// release ends autograd's ownership where the graph is given up, if another owner holds the block from there to its
// end. That a script keeps it, by a name, says nothing: it may keep the graph as well.
func (j *Joined) release(owners []owner, tags []bound, free int64) {
	for i := range owners {
		o := &owners[i]
		if o.category != activations || o.observed {
			continue
		}
		last := -1
		for n, b := range tags {
			if t := &j.ctx.tags[b.tag]; t.Kind == spool.TagSavedTensor && !t.Untag {
				last = n
			}
		}
		if last < 0 {
			continue
		}
		k := j.ctx.tags[tags[last].tag].K
		released := j.ctx.releases[j.ctx.thread[k]]
		n, _ := slices.BinarySearch(released, k+1)
		if n == len(released) {
			continue
		}
		end := j.seqAt(released[n])
		if end <= o.begin || end >= lifeEnd(free) {
			continue
		}
		for m := range owners {
			if p := &owners[m]; m != i && p.category != activations && p.category != other && p.begin <= end &&
				lifeEnd(p.end) == lifeEnd(free) {
				o.end, o.observed = end, true
				break
			}
		}
	}
}
