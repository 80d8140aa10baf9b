package join

import (
	"slices"
	"sort"
)

// graphs knows when autograd's graphs were made and given up.
type graphs struct {
	j        *Joined
	releases []release // in order
	backward []pass
	forwards []pass
}

// pass is a stretch of events inside one phase.
type pass struct{ step, begin, end int64 }

// release is the end of a backward run that gave up its graph.
type release struct {
	seq        int64
	step       int64
	microbatch int32
}

func newGraphs(j *Joined) *graphs {
	g := &graphs{j: j}
	spans := j.ctx.rank.Steps.Spans
	for _, ks := range j.ctx.releases {
		for _, k := range ks {
			s := &spans[j.ctx.span[max(k, 1)-1]] // at k itself the backward phase is over
			g.releases = append(g.releases, release{j.seqAt(k), s.Step, s.Microbatch})
		}
	}
	slices.SortFunc(g.releases, func(a, b release) int { return int(a.seq - b.seq) })
	for i := range spans {
		p := pass{spans[i].Step, j.seqAt(spans[i].BeginK), j.seqAt(spans[i].EndK)}
		switch families[spans[i].Under] {
		case famBackward:
			g.backward = append(g.backward, p)
		case famForward, famRecompute:
			g.forwards = append(g.forwards, p)
		}
	}
	return g
}

// givenUp is the state from which on a block that forward left, and that no tag explains, is no activation any more:
// the graph that it may have belonged to is gone, and the block is not. What dies inside a backward run was held by the
// graph up to there, whichever runs ended before it (a generator's activations outlive the discriminator's backward).
func (g *graphs) givenUp(life int32) int64 {
	a := &g.j.dev.Replay.Allocs[life]
	free := lifeEnd(a.FreeRequestedSeq)
	if g.inBackward(free) {
		return free
	}
	born := &g.j.ctx.rank.Steps.Spans[g.j.births[life].span]
	last := free
	n := sort.Search(len(g.releases), func(i int) bool { return g.releases[i].seq > a.AllocSeq })
	for i, r := range g.releases[n:] {
		if r.seq >= free || i > 0 && (r.step != born.Step || r.microbatch != born.Microbatch) {
			break
		}
		last = r.seq
	}
	return last
}

// unseen reports whether forward made a block in a bare step: what its graph held nobody has looked at.
func (g *graphs) unseen(life int32) bool {
	born := &g.j.ctx.rank.Steps.Spans[g.j.births[life].span]
	return families[born.Under] == famForward && !g.j.ctx.instrumented(born)
}

func (g *graphs) inBackward(seq int64) bool {
	n := sort.Search(len(g.backward), func(i int) bool { return g.backward[i].end >= seq })
	return n < len(g.backward) && g.backward[n].begin < seq
}

// heldFrom is the state from which on what a walk at mark k found in a graph, or what a hook had kept by then, was
// held: the first forward pass of that step that lies after a given state. The nodes themselves have no time.
func (g *graphs) heldFrom(k uint32, after int64) int64 {
	c := g.j.ctx
	step := c.rank.Steps.Spans[c.span[min(int(k), len(c.span)-1)]].Step
	n := sort.Search(len(g.forwards), func(i int) bool { return g.forwards[i].end > after })
	for _, f := range g.forwards[n:] {
		if f.step == step {
			return max(after, f.begin)
		}
	}
	return after
}
