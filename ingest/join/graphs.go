package join

import (
	"cmp"
	"slices"
	"sort"

	"github.com/dpsight/dpsight/schemas/spool"
)

// graphs says when autograd's graphs were made and when backward runs freed them.
type graphs struct {
	f        *facts
	releases []release // releases of graphs, in order
	backward []pass
	forward  []pass              // forward passes, including recomputed ones
	called   map[uint16][]call   // outermost calls of models, by thread and in order
	again    map[uint64][]uint32 // marks at which calls of each model begin, in order
}

// call is an outermost call of a model.
type call struct {
	k     uint32
	model uint64
}

// pass is the range of events of one phase in a step.
type pass struct{ step, begin, end int64 }

// release is the end of a backward run that freed its graph.
type release struct {
	seq        int64
	step       int64
	microbatch int32
}

func findGraphs(f *facts) *graphs {
	g := &graphs{f: f, called: map[uint16][]call{}, again: map[uint64][]uint32{}}
	spans := f.context.rank.Steps.Spans
	for _, ks := range f.context.releases {
		for _, k := range ks {
			s := &spans[f.context.span[max(k, 1)-1]] // at mark k itself the backward phase is over
			g.releases = append(g.releases, release{f.marks.seqAt(k), s.Step, s.Microbatch})
		}
	}
	slices.SortFunc(g.releases, func(a, b release) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.step, b.step), cmp.Compare(a.microbatch, b.microbatch))
	})
	for i := range spans {
		p := pass{spans[i].Step, f.marks.seqAt(spans[i].BeginK), f.marks.seqAt(spans[i].EndK)}
		switch families[spans[i].Under] {
		case backwardFamily:
			g.backward = append(g.backward, p)
		case forwardFamily, recomputeFamily:
			g.forward = append(g.forward, p)
		}
	}
	for _, m := range f.context.rank.Marks {
		if m.Kind == spool.ForwardBegin && m.Flags&spool.FlagInBackward == 0 {
			g.called[m.Thread] = append(g.called[m.Thread], call{m.K, m.A})
			g.again[m.A] = append(g.again[m.A], m.K)
		}
	}
	return g
}

// keptFrom returns the event from which on an output of mark k counts as kept by the script and no longer as a result:
// the model that was called last at mark k has been called again, and the pass of that call has ended. keptFrom returns
// never if that did not happen.
func (g *graphs) keptFrom(k uint32) int64 {
	c := g.f.context
	called := g.called[c.thread[min(int(k), len(c.thread)-1)]]
	n := sort.Search(len(called), func(i int) bool { return called[i].k > k })
	if n == 0 {
		return never
	}
	again := g.again[called[n-1].model]
	n = sort.Search(len(again), func(i int) bool { return again[i] > k })
	if n == len(again) {
		return never
	}
	span := c.span[min(int(again[n]), len(c.span)-1)]
	return g.f.marks.seqAt(c.groupEnd[c.rank.Steps.Spans[span].Group])
}

// give ends the hold of the owner outputs on an allocation that a model returned at mark k, if the script kept it
// beyond the model's next call. give also ends, at the same event, the hold of owners that received the result, such as
// a loss.
func (g *graphs) give(owners []owner, k uint32) {
	kept := g.keptFrom(k)
	for i := range owners {
		o := &owners[i]
		if o.category != outputs || o.observed || o.user || kept >= endOf(o.end) {
			continue
		}
		o.end, o.observed = max(kept, o.begin), true
		for j := range owners {
			p := &owners[j]
			if p.category == inputs && !p.user && o.begin <= p.begin && p.begin < o.end && o.end < endOf(p.end) {
				p.end, p.observed = o.end, true
			}
		}
	}
}

// givenUp returns the event from which on an untagged allocation of forward is no longer an activation: the graph to
// which it may have belonged was freed, but the allocation is still live. If a backward run frees the allocation, the
// graph held it until then, even if other backward runs ended before. A generator's activations, for example, outlive
// the discriminator's backward.
func (g *graphs) givenUp(alloc int) int64 {
	end := g.f.end(alloc)
	if g.inBackward(end) {
		return end
	}
	born := g.f.birthSpan(alloc)
	last := end
	seq := g.f.allocs[alloc].AllocSeq
	n := sort.Search(len(g.releases), func(i int) bool { return g.releases[i].seq > seq })
	for i, r := range g.releases[n:] {
		if r.seq >= end || i > 0 && (r.step != born.Step || r.microbatch != born.Microbatch) {
			break
		}
		last = r.seq
	}
	return last
}

// unseen reports whether the forward pass of a bare step made an allocation. The recording then does not show whether
// the graph held the allocation.
func (g *graphs) unseen(alloc int) bool {
	return g.f.family(alloc) == forwardFamily && !g.f.context.instrumented(g.f.birthSpan(alloc))
}

func (g *graphs) inBackward(seq int64) bool {
	n := sort.Search(len(g.backward), func(i int) bool { return g.backward[i].end >= seq })
	return n < len(g.backward) && g.backward[n].begin < seq
}

// heldFrom returns the event from which on a graph, or a hook, held the tensors that were found in it at mark k.
// heldFrom returns the given event, or the beginning of the step's first forward pass that ends after it, whichever is
// later. The graph's nodes themselves have no time.
func (g *graphs) heldFrom(k uint32, after int64) int64 {
	f := g.f
	step := f.context.rank.Steps.Spans[f.context.span[min(int(k), len(f.context.span)-1)]].Step
	n := sort.Search(len(g.forward), func(i int) bool { return g.forward[i].end > after })
	for _, p := range g.forward[n:] {
		if p.step == step {
			return max(after, p.begin)
		}
	}
	return after
}
