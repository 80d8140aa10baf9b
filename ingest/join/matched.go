package join

// ownLikeMatches gives allocations of bare steps the owners of their matches, and prefetched batches the owners of the
// batches that match them. The rules decide for the remaining parts of their lives.
func ownLikeMatches(r *rules, owners lists[owner], prefetched []bool) lists[owner] {
	if r.matches.matchByAlloc == nil && r.matches.prefetch.matchByAlloc == nil {
		return owners
	}
	n := len(r.f.allocs)
	return listsOf(n, n+n/8, func(all []owner, alloc int) []owner { // most allocations have one owner each
		if isPrefetched(prefetched, alloc) {
			return ownPrefetched(r, all, owners, alloc)
		}
		first := len(all)
		all = append(all, owners.of(alloc)...)
		match, ok := r.matches.of(alloc)
		if !ok {
			return all
		}
		own := len(all)
		for _, o := range owners.of(match) {
			all = ownLike(r, all, owners.of(alloc), o, alloc, match)
		}
		r.graphs.give(all[own:], r.f.birthMark(alloc))
		return r.fill(all, first, alloc)
	})
}

// ownLike appends one owner of an allocation's match to all, the allocation's owners. seen are owners of the allocation
// that a later instrumented step observed. The match's evidence by tag becomes evidence by lifetime. The evidence of a
// rule stays as it is.
func ownLike(r *rules, all, seen []owner, o owner, alloc, match int) []owner {
	m, a := r.matches, &r.f.allocs[alloc]
	al := m.alignments[m.alignment[alloc]]
	if o.begin > al.limit || o.evidence != tagged && len(seen) > 0 { // a rule's verdict against a tag's
		return all
	}
	here := func(seq int64) int64 { // the same moment of this step, for a moment of the other
		return al.moment(m.program, m.program.number[a.AllocSeq], seq, m.crossing[alloc])
	}
	n := o
	n.alloc, n.begin, n.end, n.observed = int32(alloc), max(here(o.begin), a.AllocSeq), a.FreeRequestedSeq, false
	if o.evidence == tagged {
		n.evidence = lifetime
	}
	if o.end != r.f.allocs[match].FreeRequestedSeq && o.end != 0 && o.end <= al.limit {
		n.end, n.observed = here(o.end), o.observed
	}
	for _, s := range seen {
		if s.category == n.category && s.begin < endOf(n.end) {
			n.end, n.observed = s.begin, true
		}
	}
	return appendWithin(all, n, a.FreeRequestedSeq)
}
