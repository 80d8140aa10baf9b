package join

import (
	"cmp"
	"slices"
	"sort"
)

// graphs tell when autograd's graphs were made and given up.
type graphs struct {
	f        *facts
	releases []release // in order
	backward []pass
	forward  []pass // recompute, too
	calls    []call // forward passes and evaluations, in order
}

// call is the marks between which models were called, in training or in evaluation.
type call struct{ begin, end uint32 }

// pass is the events of one phase.
type pass struct{ step, begin, end int64 }

// release is the end of a backward run that gave up its graph.
type release struct {
	seq        int64
	step       int64
	microbatch int32
}

func findGraphs(f *facts) *graphs {
	g, begun := &graphs{f: f}, map[int32]bool{}
	spans := f.context.rank.Steps.Spans
	for _, ks := range f.context.releases {
		for _, k := range ks {
			s := &spans[f.context.span[max(k, 1)-1]] // at k itself the backward phase is over
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
		switch families[spans[i].Under] {
		case forwardFamily, evalFamily:
			if !begun[spans[i].Group] { // other phases may have interrupted it
				g.calls = append(g.calls, call{spans[i].BeginK, f.context.groupEnd[spans[i].Group]})
			}
			begun[spans[i].Group] = true
		}
	}
	return g
}

// keptFrom is the state from which on an output that was tagged at mark k is no result any more, but what the script
// keeps: the next pass is over, and has given results of its own. never = there is none.
func (g *graphs) keptFrom(k uint32) int64 {
	n := sort.Search(len(g.calls), func(i int) bool { return g.calls[i].begin > k })
	if n == len(g.calls) {
		return never
	}
	return g.f.marks.seqAt(g.calls[n].end)
}

// givenUp is the state from which on what forward made, and no tag explains, is no activation any more: the graph that
// it may have belonged to is gone, and the allocation is not. What dies inside a backward run was held by the graph up
// to there, whichever runs ended before it: a generator's activations outlive the discriminator's backward.
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

// unseen reports whether the forward pass of a bare step made an allocation: nobody looked at what its graph held.
func (g *graphs) unseen(alloc int) bool {
	return g.f.family(alloc) == forwardFamily && !g.f.context.instrumented(g.f.birthSpan(alloc))
}

func (g *graphs) inBackward(seq int64) bool {
	n := sort.Search(len(g.backward), func(i int) bool { return g.backward[i].end >= seq })
	return n < len(g.backward) && g.backward[n].begin < seq
}

// heldFrom is the state from which on a graph, or a hook, held what was found in it at mark k: the first forward pass
// of that step that lies after a given state. The graph's nodes themselves have no time.
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
