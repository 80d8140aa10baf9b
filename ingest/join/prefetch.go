package join

import (
	"slices"

	"github.com/dpsight/dpsight/schemas/spool"
)

// A batch may be prefetched: made in the step before the step whose model uses it. If the step that uses the batch is
// bare, no tag says that the block is a batch. But if the corresponding block was made for an instrumented step, a tag
// of that step shows that it is a batch.

// prefetch matches the allocations of two kinds of steps: steps before a bare step with steps before an
// instrumented one.
type prefetch struct {
	matchByAlloc []int32         // match of each allocation, or -1; nil = no allocation has a match
	by           map[int64]shift // shift of each step that a bare step follows
}

// shift describes where, in the following step, the batches are used that a step prefetched.
type shift struct {
	events int32 // how many program events the step lies behind its match
	end    int32 // last program event of the step after the match, if the bare step does the same; else 0
}

// look aligns step i, which a bare step follows, with a step that an instrumented step follows.
func (p *prefetch) look(s *stepMatcher, i int) {
	al := s.sameOrScaledStep(i, s.beforeByHash)
	if al == nil {
		return
	}
	if p.matchByAlloc == nil {
		p.matchByAlloc, p.by = slices.Repeat([]int32{-1}, len(s.f.allocs)), map[int64]shift{}
	}
	by := shift{events: al.step.from - al.other.from}
	if o := al.otherStep; s.comparable(i+1) && s.comparable(o+1) && s.hashes[i+1] == s.hashes[o+1] {
		by.end = s.at[o+1].to
	}
	p.by[s.f.context.rank.Steps.Steps[i].Number] = by
	al.pairAllocs(s, func(q matchedPair) { p.matchByAlloc[q.alloc] = int32(q.match) })
}

// findPrefetched reports which allocations are batches that were prefetched for a bare step; nil = none.
func findPrefetched(f *facts, tags lists[boundTag], tagged lists[owner], m *matches) []bool {
	if m.prefetch.matchByAlloc == nil {
		return nil
	}
	out := make([]bool, len(f.allocs))
	for alloc, match := range m.prefetch.matchByAlloc {
		out[alloc] = match >= 0 && givenInLaterStep(f, int(match), tags.of(int(match))) &&
			!hasTagged(tagged.of(alloc), inputs)
	}
	return out
}

func isPrefetched(prefetched []bool, alloc int) bool { return prefetched != nil && prefetched[alloc] }

// givenInLaterStep reports whether the first tag that calls an allocation an input was made after the step in which the
// allocation was made.
func givenInLaterStep(f *facts, alloc int, tags []boundTag) bool {
	for _, b := range tags {
		if t := &f.context.tags[b.tag]; t.Kind == spool.TagInput && !t.Untag {
			return f.context.rank.Steps.Spans[f.context.span[t.K]].Step > f.birthSpan(alloc).Step
		}
	}
	return false
}

// ownPrefetched appends the owners of a prefetched batch to all. A prefetched batch has the owners that its tags prove,
// an owner with the category inputs, and the owners that its match has in the step that uses the match.
func ownPrefetched(r *rules, all []owner, owners lists[owner], alloc int) []owner {
	m, first, own := &r.matches.prefetch, len(all), owners.of(alloc)
	a, p := &r.f.allocs[alloc], r.matches.program
	for _, o := range own {
		if o.evidence == tagged {
			all = append(all, o)
		}
	}
	all = append(all, owner{alloc: int32(alloc), category: inputs, evidence: lifetime, begin: a.AllocSeq,
		end: a.FreeRequestedSeq})
	match := int(m.matchByAlloc[alloc])
	b, by := &r.f.allocs[match], m.by[r.f.birthSpan(alloc).Step]
	sameEnd := by.end != 0 &&
		p.freedAt(b.FreeRequestedSeq, by.end)+by.events == p.freedAt(a.FreeRequestedSeq, by.end+by.events)
	if !sameEnd {
		return r.fill(all, first, alloc)
	}
	limit := int64(p.seq[by.end])
	for _, o := range owners.of(match) {
		if o.evidence != tagged || o.category == inputs || o.begin > limit || hasTagged(own, o.category) {
			continue
		}
		n := o
		n.alloc, n.evidence, n.end, n.observed = int32(alloc), lifetime, a.FreeRequestedSeq, false
		n.begin = max(p.later(o.begin, by.events), a.AllocSeq)
		if o.end != b.FreeRequestedSeq && o.end != 0 && o.end <= limit {
			n.end, n.observed = p.later(o.end, by.events), o.observed
		}
		all = appendWithin(all, n, a.FreeRequestedSeq)
	}
	return r.fill(all, first, alloc)
}

// appendWithin appends an owner that was copied from a match if the owner's events lie within the allocation's own
// life.
func appendWithin(all []owner, o owner, free int64) []owner {
	if o.begin < endOf(o.end) && endOf(o.end) <= endOf(free) {
		return append(all, o)
	}
	return all
}
