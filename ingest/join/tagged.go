package join

import (
	"slices"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// ownByTag gives each allocation the owners that its tags prove, and owners that follow from tags without any rule.
func ownByTag(f *facts, g *graphs, tags lists[boundTag], m *matches) lists[owner] {
	t := &tagger{f: f, graphs: g, open: make([]int, len(schemas.Categories))}
	return listsOf(len(f.allocs), len(tags.all)/2, func(all []owner, alloc int) []owner {
		first := len(all)
		if bound := tags.of(alloc); len(bound) > 0 {
			all = t.own(all, alloc, bound)
			all = perSampleFromBirth(f, m, all, first, alloc)
			all = heldByUnfinishedForward(f, all, first, alloc)
		}
		return all
	})
}

// tagger turns the tags of one allocation after another into owners.
type tagger struct {
	f      *facts
	graphs *graphs
	open   []int // by category: index of its owner that is still open, plus 1
}

// own appends the owners that the tags of one allocation prove.
func (t *tagger) own(all []owner, alloc int, bound []boundTag) []owner {
	f, first := t.f, len(all)
	weight := slices.ContainsFunc(bound, func(b boundTag) bool {
		kind := f.context.tags[b.tag].Kind
		return kind == spool.TagParameter || kind == spool.TagBuffer
	})
	named := slices.ContainsFunc(bound, func(b boundTag) bool { return f.context.tags[b.tag].Kind == spool.TagUser })
	clear(t.open)
	for _, b := range bound {
		tag := &f.context.tags[b.tag]
		category := categoryOf(f, tag)
		if weight && category == activations { // autograd has saved a weight
			continue
		}
		if named && tag.Kind == spool.TagHeld { // the user's statement takes precedence over the holder
			continue
		}
		o := t.open[category]
		switch {
		case tag.Untag && o > 0:
			all[o-1].end, all[o-1].observed = max(b.seq, all[o-1].begin), true
			t.open[category] = 0
		case tag.Untag:
		case o > 0:
			saidAgain(&all[o-1], tag)
		default:
			all = append(all, t.begin(all[first:], alloc, b, category))
			t.open[category] = len(all)
		}
	}
	kept := all[:first]
	for _, o := range all[first:] {
		if o.observed && o.end >= f.end(alloc) {
			o.end, o.observed = 0, false
		}
		if o.end == 0 && !o.observed {
			o.end = f.allocs[alloc].FreeRequestedSeq
		}
		if o.begin < endOf(o.end) {
			kept = append(kept, o)
		}
	}
	releaseGraph(f, kept[first:], bound, alloc)
	if k, ok := t.lastOutput(bound); ok {
		t.graphs.give(kept[first:], k)
	}
	return kept
}

// saidAgain adds the name and the module of a tag to an owner that an earlier tag already proved.
func saidAgain(o *owner, tag *spool.Tag) {
	if o.name == 0 {
		o.name = tag.Name
	}
	if o.module == 0 && tag.Kind != spool.TagUser {
		o.module = tag.Module
	}
}

// begin returns the owner that a tag shows for the first time, or for the first time since an untag ended the owner's
// hold.
func (t *tagger) begin(before []owner, alloc int, b boundTag, category categoryIndex) owner {
	tag := &t.f.context.tags[b.tag]
	o := owner{alloc: int32(alloc), category: category, evidence: tagged, name: tag.Name}
	if o.user = tag.Kind == spool.TagUser; !o.user {
		o.module = tag.Module
	}
	o.begin = max(t.beginning(category, alloc, len(before) > 0, b.seq), t.f.allocs[alloc].AllocSeq)
	for _, p := range before {
		// The owner holds the allocation again after an untag. Bare steps do not show from which event on.
		if p.category == category {
			o.begin = max(o.begin, p.end)
		}
	}
	if tag.Kind == spool.TagSavedTensor || tag.Kind == spool.TagHookActivation { // an earlier batch or mask
		o.begin = min(t.graphs.heldFrom(tag.K, o.begin), max(o.begin, b.seq))
	}
	if tag.Kind == spool.TagHeld && t.graphs.unseen(alloc) { // autograd may have held the block as well
		o.begin = max(o.begin, min(t.graphs.givenUp(alloc), b.seq))
	}
	return o
}

// beginning returns the first event just after which an allocation belongs to the category of a tag. The tag was made
// just after event tag. later is true if the allocation already has owners.
func (t *tagger) beginning(category categoryIndex, alloc int, later bool, tag int64) int64 {
	switch beginIndex[category] {
	case fromTag:
		return tag
	case fromDPBirth:
		family := t.f.family(alloc)
		if later || !t.f.births[alloc].dp && family != clipFamily && family != updateFamily {
			return tag
		}
	}
	return t.f.allocs[alloc].AllocSeq
}

// releaseGraph ends autograd's hold on an allocation where the graph is freed, if another owner holds the allocation
// from there to its end. A name in the script does not count as another owner, since the script may also keep the
// graph.
func releaseGraph(f *facts, owners []owner, bound []boundTag, alloc int) {
	end := f.end(alloc)
	released := graphReleased(f, bound)
	for i := range owners {
		o := &owners[i]
		if o.category != activations || o.observed || released <= o.begin || released >= end {
			continue
		}
		if slices.ContainsFunc(owners, func(p owner) bool {
			return p.category != activations && p.category != script && p.begin <= released && endOf(p.end) == end
		}) {
			o.end, o.observed = released, true
		}
	}
}

// lastOutput returns the mark of the latest tag that calls an allocation a model's result.
func (t *tagger) lastOutput(bound []boundTag) (k uint32, ok bool) {
	for _, b := range slices.Backward(bound) {
		if tag := &t.f.context.tags[b.tag]; tag.Kind == spool.TagOutput {
			return tag.K, true
		}
	}
	return 0, false
}

// graphReleased returns the event just after which the last graph that saved an allocation is freed. graphReleased
// returns -1 if the graph is not freed, or if no graph saved the allocation.
func graphReleased(f *facts, bound []boundTag) int64 {
	for _, b := range slices.Backward(bound) {
		tag := &f.context.tags[b.tag]
		if tag.Kind != spool.TagSavedTensor || tag.Untag {
			continue
		}
		released := f.context.releases[f.context.thread[tag.K]]
		if n, _ := slices.BinarySearch(released, tag.K+1); n < len(released) {
			return f.marks.seqAt(released[n])
		}
		return -1
	}
	return -1
}

// perSampleFromBirth makes a block a per-sample gradient from its birth on, if an unmatched bare step made the block in
// backward and a tag of the next step calls it a per-sample gradient. The recording does not show the hook that made
// the block.
func perSampleFromBirth(f *facts, m *matches, all []owner, first, alloc int) []owner {
	if f.family(alloc).recorded() != backwardFamily || f.untraced(alloc) || !m.unmatched(f, alloc) {
		return all
	}
	birth := f.allocs[alloc].AllocSeq
	for _, o := range all[first:] {
		if o.category == perSampleGradients && o.evidence == tagged && o.begin > birth {
			before := o
			before.begin, before.end, before.observed, before.evidence = birth, o.begin, true, lifetime
			return append(all, before)
		}
	}
	return all
}

// heldByUnfinishedForward adds autograd to the owners of an allocation that hooks hold in a forward pass without a
// backward, as after an out-of-memory error. The agent records only at the beginning of backward what autograd holds.
// Without autograd as an owner, hooks would be charged with all activations of that pass.
func heldByUnfinishedForward(f *facts, all []owner, first, alloc int) []owner {
	a, span := &f.allocs[alloc], f.birthSpan(alloc)
	if f.untraced(alloc) || a.FreeRequestedSeq != 0 || f.family(alloc) != forwardFamily ||
		f.marks.seqAt(f.context.groupEnd[span.Group]) < f.device.Replay.Events {
		return all
	}
	hook := false
	for _, o := range all[first:] {
		if o.category == activations {
			return all
		}
		hook = hook || o.category == hookActivations
	}
	if !hook {
		return all
	}
	return append(all, owner{alloc: int32(alloc), category: activations, evidence: byPhase, begin: a.AllocSeq,
		module: f.births[alloc].module})
}

// categoryOf returns the category for a tag's kind, or the category that a user's tag names.
func categoryOf(f *facts, t *spool.Tag) categoryIndex {
	if t.Kind == spool.TagUser {
		return index(f.context.rank.Names[t.Module])
	}
	return tagIndex[t.Kind]
}
