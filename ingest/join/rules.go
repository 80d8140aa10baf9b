package join

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// rules gives owners to the moments that no tag covers.
type rules struct {
	j          *Joined
	workspaces map[int64]bool
	perCall    map[int64]bool // sizes of workspaces that are taken for one call
	seen       map[workspaceKey]bool
	places     map[workspacePlace]bool  // at which workspaces of the first step were made
	later      map[workspaceKey][]int32 // lives of later steps that may be workspaces, in order
	complete   bool                     // some step is
	lastEnd    int64                    // last event of the last step
	groupEnd   []int64
	stepEnd    []int64
	graphs     *graphs
	twins      *twins // nil = there are none
	private    bool   // per-sample gradients, or their norms, are computed
	calls      bool   // a model is called
}

type workspaceKey struct {
	thread uint16
	stream uint64
	size   int64
}

// workspacePlace is what makes the block of a later step the workspace of another stream: the call that it was made in,
// and the block that this call made just before, its result.
type workspacePlace struct {
	size, before int64
	fam          family
	module       uint32
}

func newRules(j *Joined) *rules {
	c := j.ctx
	r := &rules{j: j, workspaces: map[int64]bool{}, seen: map[workspaceKey]bool{}, places: map[workspacePlace]bool{},
		later: map[workspaceKey][]int32{}, graphs: newGraphs(j)}
	for _, s := range workspaceSizes {
		r.workspaces[s] = true
	}
	if c.rank.Workspace > 0 {
		r.workspaces[c.rank.Workspace] = true
	}
	for _, s := range c.rank.Steps.Steps {
		r.stepEnd = append(r.stepEnd, j.seqAt(s.EndK))
	}
	if n := len(r.stepEnd); n > 0 {
		r.complete, r.lastEnd = true, r.stepEnd[n-1]
	}
	for i := range c.tags {
		switch c.tags[i].Kind {
		case spool.TagGradSample, spool.TagNormSample, spool.TagHookActivation, spool.TagSummedGradient:
			r.private = true
		}
	}
	r.perCall = j.perCall(r)
	r.calls = slices.ContainsFunc(c.rank.Steps.Spans, func(s steps.Span) bool {
		return s.Under == schemas.PhaseForward
	})
	r.groupEnd = make([]int64, len(c.groupEnd))
	for g, k := range c.groupEnd {
		r.groupEnd[g] = j.seqAt(k)
	}
	for l := range j.dev.Replay.Allocs {
		a := &j.dev.Replay.Allocs[l]
		if r.workspaces[a.Requested] && !j.untraced(a) && a.FreeRequestedSeq == 0 &&
			c.rank.Steps.Spans[j.births[l].span].Step > 0 {
			key := r.workspaceKey(int32(l))
			r.later[key] = append(r.later[key], int32(l))
		}
	}
	return r
}

// fill appends owners for the parts of a life that owners[first:] leave open.
func (r *rules) fill(owners []owner, first int32, life int32, scratch []owner) (filled, reuse []owner) {
	a := &r.j.dev.Replay.Allocs[life]
	end := lifeEnd(a.FreeRequestedSeq)
	target := r.target(owners[first:], life)
	put := func(category categoryIndex, evidence uint8, from, to int64) {
		o := owner{life: life, category: category, evidence: evidence, begin: from, end: to, observed: to < end,
			module: r.j.births[life].module}
		if to == end {
			o.end = a.FreeRequestedSeq
		}
		owners = append(owners, o)
	}
	add := func(from, to int64) {
		if bucket, ok := r.j.bucket(life); ok {
			put(gradients, lifetime, from, to)
			owners[len(owners)-1].name = bucket
			return
		}
		category, evidence := r.judge(life, to, from == a.AllocSeq && to == end)
		switch {
		case target && evidence == byPhase && (category == other || category == inputs):
			category, evidence = inputs, lifetime
		case category != activations:
		case from > a.AllocSeq: // autograd was seen to let go
			category, evidence = other, byPhase
		case evidence == lifetime:
			if given := r.graphs.givenUp(life); given < to {
				put(category, evidence, from, given)
				category, evidence, from = other, byPhase, given
			}
		}
		put(category, evidence, from, to)
	}
	if int(first) == len(owners) {
		add(a.AllocSeq, end)
		return owners, scratch
	}
	scratch = append(scratch[:0], owners[first:]...)
	if target { // by what name a script keeps it says less than what it is for, unless the user says so
		scratch = slices.DeleteFunc(scratch, func(o owner) bool { return o.category == other && !o.user })
	}
	slices.SortFunc(scratch, func(a, b owner) int { return int(a.begin - b.begin) })
	at := a.AllocSeq
	for _, o := range scratch {
		if o.begin > at {
			add(at, o.begin)
		}
		at = max(at, lifeEnd(o.end))
	}
	if at < end {
		add(at, end)
	}
	return owners, scratch
}

var (
	untraced             = index(schemas.Untraced)
	gradients            = index(schemas.Gradients)
	workspace            = index(schemas.Workspace)
	clipTemporaries      = index(schemas.ClipTemporaries)
	hookActivations      = index(schemas.HookActivations)
	activationGradients  = index(schemas.ActivationGradients)
	forwardTemporaries   = index(schemas.ForwardTemporaries)
	optimizerTemporaries = index(schemas.OptimizerTemporaries)
	optimizerState       = index(schemas.OptimizerState)
	inputs               = index(schemas.Inputs)
	perSampleGradients   = index(schemas.PerSampleGradients)
)

// lossNodes are parts of the names of autograd's nodes for losses.
var lossNodes = []string{"Loss", "CrossEntropy", "KlDiv"}

// target reports whether a block is what a loss compares with, which no call of a model takes, so that no tag says that
// it is an input: one that was born outside every pass, and that the loss's own node in the graph held. What it
// compares with the target is born in forward, so that a script whose model is no module, and has no forward pass that
// is seen, has no targets.
func (r *rules) target(owners []owner, life int32) bool {
	if !r.calls || r.j.untraced(&r.j.dev.Replay.Allocs[life]) {
		return false
	}
	switch families[r.j.ctx.rank.Steps.Spans[r.j.births[life].span].Under] {
	case famOther, famSetupData:
	default:
		return false
	}
	return slices.ContainsFunc(owners, func(o owner) bool {
		node := r.j.ctx.rank.Names[o.name]
		return o.category == activations && slices.ContainsFunc(lossNodes, func(part string) bool {
			return strings.Contains(node, part)
		})
	})
}

// judge is the category of a life where no tag says it, for a stretch that ends at end; whole = the stretch is all of
// it.
func (r *rules) judge(life int32, end int64, whole bool) (categoryIndex, uint8) {
	a, b := &r.j.dev.Replay.Allocs[life], &r.j.births[life]
	if r.j.untraced(a) {
		return untraced, lifetime
	}
	span := &r.j.ctx.rank.Steps.Spans[b.span]
	inside := end <= r.groupEnd[span.Group] // ends inside its phase
	how := byPhase
	if inside {
		how = lifetime
	}
	fam := families[span.Under]
	if whole && r.isWorkspace(life, fam, span.Step) {
		return workspace, lifetime
	}
	if b.dp {
		return clipTemporaries, how
	}
	switch fam {
	case famDP:
		return clipTemporaries, how
	case famForward:
		if inside {
			return forwardTemporaries, lifetime
		}
		if a.FreeRequestedSeq == 0 && r.groupEnd[span.Group] >= r.j.dev.Replay.Events {
			return activations, byPhase // backward never began
		}
		return activations, lifetime
	case famRecompute:
		if inside {
			return forwardTemporaries, lifetime
		}
		return activations, lifetime
	case famEval:
		if inside {
			return forwardTemporaries, lifetime
		}
	case famBackward:
		switch bare := r.alone(life); {
		case bare && !inside: // somebody's gradient, and nobody has said whose: those that only flow end here
			return other, byPhase
		case bare && r.private: // hooks make blocks too, and a bare step does not say where
			return activationGradients, byPhase
		}
		return activationGradients, how
	case famUpdate:
		category, evidence := r.update(a.FreeRequestedSeq, span.Step, inside)
		if r.private && r.alone(life) {
			evidence = byPhase
		}
		return category, evidence
	case famSetupData:
		if !inside {
			return inputs, byPhase
		}
	case famSetupModel:
		if !inside {
			return parameters, byPhase
		}
	case famSetupOptimizer:
		if !inside {
			return optimizerState, byPhase
		}
	}
	return other, byPhase
}

// alone reports whether a life was born in a bare step and has no twin: nothing but its phase tells what it was.
func (r *rules) alone(life int32) bool {
	return !r.j.ctx.instrumented(&r.j.ctx.rank.Steps.Spans[r.j.births[life].span]) &&
		(r.twins == nil || r.twins.of == nil || r.twins.of[life] < 0)
}

// bucket reports whether a reducer made a block and kept it, and its name: it holds a copy of gradients, or they
// themselves.
func (j *Joined) bucket(life int32) (name uint32, ok bool) {
	a := &j.dev.Replay.Allocs[life]
	if len(j.ctx.reducers) == 0 || j.untraced(a) {
		return 0, false
	}
	n := j.ctx.reducing[j.mark(int(a.AllocSeq)-1)]
	if n == 0 {
		return 0, false
	}
	made := j.ctx.reducers[n-1]
	return made.name, made.done > 0 && lifeEnd(a.FreeRequestedSeq) > j.seqAt(made.done)
}

// sinceBirth gives a per-sample gradient that a bare step made, and that a tag of the next step names, to its category
// from its birth on: the hook that made it was not seen, but backward makes such blocks for nothing else.
func (r *rules) sinceBirth(owners []owner, first, life int32) []owner {
	a, span := &r.j.dev.Replay.Allocs[life], &r.j.ctx.rank.Steps.Spans[r.j.births[life].span]
	if folded(families[span.Under]) != famBackward || r.j.untraced(a) || !r.alone(life) {
		return owners
	}
	for _, o := range owners[first:] {
		if o.category == perSampleGradients && o.evidence == tagged && o.begin > a.AllocSeq {
			before := o
			before.begin, before.end, before.observed, before.evidence = a.AllocSeq, o.begin, true, lifetime
			return append(owners, before)
		}
	}
	return owners
}

// unfinished adds autograd to the owners of what hooks hold in a forward pass that no backward followed (an OOM, say):
// what autograd holds is seen when backward begins. Without it the hooks would be charged with all activations.
func (r *rules) unfinished(owners []owner, first, life int32) []owner {
	a, b := &r.j.dev.Replay.Allocs[life], &r.j.births[life]
	span := &r.j.ctx.rank.Steps.Spans[b.span]
	if r.j.untraced(a) || a.FreeRequestedSeq != 0 || families[span.Under] != famForward ||
		r.groupEnd[span.Group] < r.j.dev.Replay.Events {
		return owners
	}
	hook := false
	for _, o := range owners[first:] {
		if o.category == activations {
			return owners
		}
		hook = hook || o.category == hookActivations
	}
	if !hook {
		return owners
	}
	return append(owners, owner{life: life, category: activations, evidence: byPhase, begin: a.AllocSeq,
		module: b.module})
}

// perCall tells which sizes are of workspaces for one call: those of which no block stays. torch up to 2.14 keeps a
// workspace for each thread and stream; a recording shows one way or the other.
func (j *Joined) perCall(r *rules) map[int64]bool {
	out := map[int64]bool{}
	for _, s := range perCallSizes {
		out[s] = true
	}
	if w := j.ctx.rank.Workspace; w > 0 {
		out[w] = true
	}
	for l := range j.dev.Replay.Allocs {
		if a := &j.dev.Replay.Allocs[l]; out[a.Requested] && a.AllocSeq > 0 && r.stays(a) &&
			j.ctx.rank.Steps.Spans[j.births[l].span].Step <= 0 {
			delete(out, a.Requested)
		}
	}
	return out
}

// stays reports whether a block outlives the last step; while no step is complete, the recording.
func (r *rules) stays(a *replay.Alloc) bool {
	if !r.complete {
		return a.FreeRequestedSeq == 0
	}
	return lifeEnd(a.FreeRequestedSeq) > r.lastEnd && r.lastEnd > a.AllocSeq
}

func (r *rules) workspaceKey(life int32) workspaceKey {
	a := &r.j.dev.Replay.Allocs[life]
	return workspaceKey{r.j.ctx.thread[r.j.mark(int(a.AllocSeq)-1)], a.Stream, a.Requested}
}

// workspacePlace is the place that a block was made at; false if no block was made just before it in the same call.
func (r *rules) workspacePlace(life int32) (p workspacePlace, ok bool) {
	if life == 0 {
		return p, false
	}
	lives, births, spans := r.j.dev.Replay.Allocs, r.j.births, r.j.ctx.rank.Steps.Spans
	was, is := &births[life-1], &births[life]
	if r.j.untraced(&lives[life-1]) || was.module != is.module || spans[was.span].Group != spans[is.span].Group ||
		lives[life-1].Stream != lives[life].Stream {
		return p, false
	}
	return workspacePlace{size: lives[life].Requested, before: lives[life-1].Requested,
		fam: families[spans[is.span].Under], module: is.module}, true
}

// isWorkspace reports whether a block that no tag names is a workspace. torch makes one for each thread and stream when
// the first product there needs it, and keeps it. Streams that the first step does not know are met later, by a graph's
// capture say: then a kept block of the size is one only if it is the single one of its thread and stream, and was made
// where the first step made its own: by the same module's call, just after a block of the same size. A script may keep
// a tensor of that size, too.
func (r *rules) isWorkspace(life int32, fam family, step int64) bool {
	a := &r.j.dev.Replay.Allocs[life]
	if r.perCall[a.Requested] && a.FreeRequestedSeq == a.AllocSeq+1 {
		return true
	}
	if !r.workspaces[a.Requested] || fam != famForward && fam != famBackward && fam != famEval || !r.stays(a) {
		return false
	}
	key := r.workspaceKey(life)
	place, placed := r.workspacePlace(life)
	if step > 0 {
		return placed && r.places[place] && !r.seen[key] && len(r.later[key]) == 1 && r.later[key][0] == life
	}
	if r.seen[key] {
		return false
	}
	r.seen[key] = true
	if placed {
		r.places[place] = true
	}
	return true
}

// update judges what the optimizer made.
func (r *rules) update(free, step int64, inside bool) (categoryIndex, uint8) {
	if inside {
		return optimizerTemporaries, lifetime
	}
	next := int(step) + 1
	switch {
	case free == 0 && step == 0,
		next >= 1 && next < len(r.stepEnd) && lifeEnd(free) > r.stepEnd[next]:
		return optimizerState, lifetime
	}
	return optimizerTemporaries, byPhase
}
