package join

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// A rule finds the category of an allocation for a part of its life that no tag covers. A rule returns false if it does
// not apply.
type rule func(*rules, *unowned) (verdict, bool)

// ruleList has the rules in order. The first rule that applies decides.
var ruleList = []rule{
	bucketOfGradients,
	untracedBlock,
	libraryWorkspace,
	castOfWeight,
	bornInDPCode,
	lossTarget,
	forwardTemporary,
	keptOutput,
	activation,
	bornInBackward,
	bornInUpdate,
	bornInSetup,
	bornInScript,
	anythingElse,
}

// unowned is a part of an allocation's life without an owner: just after each event from begin up to, but not
// including, end.
type unowned struct {
	*replay.Alloc
	birth      *birth
	span       *steps.Span // the span in which the block was made
	family     family      // family of the span in which the block was made
	untraced   bool
	workspace  bool
	lossTarget bool // the node of a loss held the block
	output     bool // a model returned the block, and has returned another one since
	unmatched  bool // the block belongs to a bare step and has no match
	whole      bool // the judged time is all of the block's life
	inside     bool // the judged time ends inside the phase of the block's birth
	begin, end int64

	alloc int
}

// verdict is the result of a rule: a category with its evidence, and the event until which it holds.
type verdict struct {
	category categoryIndex
	evidence evidence
	name     uint32
	until    int64 // event up to which the verdict holds if it does not hold to the end of the time, else 0
}

// rules has the data about a device that the rules look up.
type rules struct {
	f          *facts
	graphs     *graphs
	matches    *matches
	workspaces []bool  // allocations that are workspaces
	phaseEnd   []int64 // last event of each occurrence of a phase
	stepEnd    []int64 // last event of each step
	events     int64
	private    bool // the run computes per-sample gradients, or their norms
	calls      bool // the run calls a model
	marked     bool // the agent marks what the script calls, and the file is dpsight's own
	scratch    []owner
	time       unowned // the time of a block that is judged
}

func newRules(f *facts, g *graphs, m *matches, workspaces []bool) *rules {
	r := &rules{f: f, graphs: g, matches: m, workspaces: workspaces, events: f.device.Replay.Events}
	for _, s := range f.context.rank.Steps.Steps {
		r.stepEnd = append(r.stepEnd, f.marks.seqAt(s.EndK))
	}
	for _, k := range f.context.groupEnd {
		r.phaseEnd = append(r.phaseEnd, f.marks.seqAt(k))
	}
	r.private = slices.ContainsFunc(f.context.tags, func(t spool.Tag) bool {
		switch t.Kind {
		case spool.TagGradSample, spool.TagNormSample, spool.TagHookActivation, spool.TagSummedGradient:
			return true
		}
		return false
	})
	r.marked = slices.ContainsFunc(f.context.rank.Marks, func(m spool.Mark) bool { return m.Kind == spool.CudaReady })
	r.calls = slices.ContainsFunc(f.context.rank.Steps.Spans, func(s steps.Span) bool {
		return s.Under == schemas.PhaseForward
	})
	return r
}

// unphased reports whether the agent marked no phases when an allocation was made. Without phases, it is unknown
// whether the allocation was made outside all passes.
func (r *rules) unphased(u *unowned) bool {
	steps := r.f.context.rank.Steps.Steps
	n := min(u.span.Step, int64(len(steps))-1)
	return n >= 0 && steps[n].Unphased
}

// applyRules finds owners for all parts of allocations' lives that no tag covers. applyRules skips allocations that
// have a match, since they take the match's owners.
func applyRules(r *rules, tagged lists[owner]) lists[owner] {
	n := len(r.f.allocs)
	return listsOf(n, len(tagged.all)+n-r.matches.count(), func(all []owner, alloc int) []owner {
		first := len(all)
		all = append(all, tagged.of(alloc)...)
		if _, ok := r.matches.of(alloc); ok {
			return all
		}
		return r.fill(all, first, alloc)
	})
}

// fill appends owners for the parts of an allocation's life in which none of its owners, all[first:], holds it.
func (r *rules) fill(all []owner, first, alloc int) []owner {
	u := r.about(alloc, all[first:])
	begin, end := u.AllocSeq, r.f.end(alloc)
	if first == len(all) {
		return r.own(all, u, begin, end)
	}
	r.scratch = append(r.scratch[:0], all[first:]...)
	if u.lossTarget { // a purpose tells more than a name in the script, unless the user stated it
		r.scratch = slices.DeleteFunc(r.scratch, func(o owner) bool { return o.category == script && !o.user })
	}
	slices.SortFunc(r.scratch, func(a, b owner) int { return cmp.Compare(a.begin, b.begin) })
	for _, o := range r.scratch {
		if o.begin > begin {
			all = r.own(all, u, begin, o.begin)
		}
		begin = max(begin, endOf(o.end))
	}
	if begin < end {
		all = r.own(all, u, begin, end)
	}
	return all
}

// about returns the facts about an allocation with the given owners that rules look up.
func (r *rules) about(alloc int, owners []owner) *unowned {
	f, u := r.f, &r.time
	*u = unowned{Alloc: &f.allocs[alloc], alloc: alloc, birth: &f.births[alloc], span: f.birthSpan(alloc),
		family: f.family(alloc), untraced: f.untraced(alloc), workspace: r.workspaces[alloc],
		unmatched: r.matches.unmatched(f, alloc)}
	u.lossTarget = r.isLossTarget(u, owners)
	u.output = slices.ContainsFunc(owners, func(o owner) bool { return o.category == outputs && o.observed })
	return u
}

// own appends the owners that the rules find for an allocation from event begin up to event end.
func (r *rules) own(all []owner, u *unowned, begin, end int64) []owner {
	life := r.f.end(u.alloc)
	for begin < end {
		u.begin, u.end = begin, end
		u.whole, u.inside = begin == u.AllocSeq && end == life, end <= r.phaseEnd[u.span.Group]
		v := r.judge(u)
		until := end
		if v.until != 0 {
			until = min(v.until, end)
		}
		o := owner{alloc: int32(u.alloc), category: v.category, evidence: v.evidence, name: v.name,
			module: u.birth.module, begin: begin, end: until, observed: until < life}
		if until == life {
			o.end = u.FreeRequestedSeq
		}
		all = append(all, o)
		begin = until
	}
	return all
}

// judge returns the verdict of the first rule that applies.
func (r *rules) judge(u *unowned) verdict {
	for _, apply := range ruleList {
		if v, ok := apply(r, u); ok {
			return v
		}
	}
	panic("the last rule applies to everything")
}

// byLifetime returns evidence by lifetime if the part of the life ends inside the phase of the birth, else evidence by
// phase.
func (u *unowned) byLifetime() evidence {
	if u.inside {
		return lifetime
	}
	return byPhase
}
