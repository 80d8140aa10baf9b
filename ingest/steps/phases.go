package steps

import (
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// change says which phase holds from mark k on.
type change struct {
	k     uint32
	phase string
	under string // the phase of dpsight's vocabulary beneath a phase of the script
	group int32
}

// walker walks a tree of spans and derives its phases.
type walker struct {
	*tree
	names     map[uint32]string
	out       []change
	groups    int32
	inForward bool // the first forward call that trains has begun, and its backward has not
	forwardG  int32
	pairs     []uint32 // mark at which each pair of forward and backward begins
	pairBegin uint32   // mark at which the present pair began; 0 = none
}

// level is one node of the tree that the walker has entered and not yet left.
type level struct {
	base      string
	group     int32
	open      []change // the script's phases that were opened at this level
	forwardAt int      // how many such phases were open when forward began; -1 = forward began at another level
}

func (w *walker) newGroup() int32 {
	w.groups++
	return w.groups - 1
}

func (w *walker) put(k uint32, phase, under string, group int32) {
	if k == 0 {
		return
	}
	if n := len(w.out); n > 0 {
		last := &w.out[n-1]
		if last.phase == phase && last.under == under && last.group == group {
			return
		}
		if last.k == k {
			*last = change{k, phase, under, group}
			return
		}
	}
	w.out = append(w.out, change{k, phase, under, group})
}

// back returns to the phase that holds between the children of a level.
func (w *walker) back(k uint32, l *level) {
	n := len(l.open)
	switch {
	case n > 0 && (!w.inForward || l.forwardAt < 0 || n > l.forwardAt):
		c := l.open[n-1]
		w.put(k, c.phase, c.under, c.group)
	case w.inForward:
		w.put(k, schemas.PhaseForward, schemas.PhaseForward, w.forwardG)
	default:
		w.put(k, l.base, l.base, l.group)
	}
}

// beginForward begins the phase forward, unless it has already begun.
func (w *walker) beginForward(k uint32, l *level) {
	if !w.inForward {
		w.inForward, w.forwardG = true, w.newGroup()
	}
	l.forwardAt = len(l.open)
	if w.pairBegin == 0 {
		w.pairBegin = k
	}
	w.put(k, schemas.PhaseForward, schemas.PhaseForward, w.forwardG)
}

// beginBackward ends the phase forward.
func (w *walker) beginBackward(k uint32) {
	if w.pairBegin == 0 {
		w.pairBegin = k
	}
	w.pairs = append(w.pairs, w.pairBegin)
	w.pairBegin = 0
}

func (w *walker) endForward(l *level) { w.inForward, l.forwardAt = false, -1 }

func (w *walker) walk(n *node, base string, group int32) {
	l := &level{base: base, group: group, forwardAt: -1}
	follows := w.follows(n)
	for i := 0; i < len(n.kids); i++ {
		c := w.kid(n, i)
		switch c.shape {
		case phaseBegin:
			w.openPhase(c, l)
		case phaseEnd:
			if len(l.open) > 0 {
				l.open = l.open[:len(l.open)-1]
				l.forwardAt = min(l.forwardAt, len(l.open))
				w.back(c.begin, l)
			}
		case forward:
			w.forward(n, c, l, follows[i])
		case backward:
			i = w.backward(n, c, i, l)
		case dpBackward:
			w.twoPass(c, l)
		case recompute:
			w.put(c.begin, schemas.PhaseRecompute, schemas.PhaseRecompute, w.newGroup())
			w.back(c.end, l)
		case optimizer, dpStep:
			if c.initializes {
				w.initialization(c, l)
				continue
			}
			w.endForward(l)
			w.pairBegin = 0 // the forward had no marked backward
			w.inside(c, schemas.PhaseOptimizer, l)
		case scaler:
			w.inside(c, schemas.PhaseOptimizer, l)
		case zeroGrad:
			w.put(c.begin, schemas.PhaseZeroGrad, schemas.PhaseZeroGrad, w.newGroup())
			w.back(c.end, l)
		case compiled:
			w.compiled(c, l)
		}
	}
}

// initialization handles an optimizer's step that only creates its state. Before training has begun, this step is a
// set-up phase.
func (w *walker) initialization(c *node, l *level) {
	if !w.training() {
		w.inside(c, schemas.PhaseSetupOptimizer, l)
	}
}

// training reports whether training has begun.
func (w *walker) training() bool { return w.inForward || w.pairBegin != 0 || len(w.pairs) > 0 }

// inside walks a node, which is a separate phase.
func (w *walker) inside(c *node, phase string, l *level) {
	g := l.group
	// An optimizer's step inside a step of Opacus' optimizer or of the scaler belongs to the same update.
	if phase != schemas.PhaseOptimizer || l.base != phase {
		g = w.newGroup()
	}
	w.put(c.begin, phase, phase, g)
	w.walk(c, phase, g)
	w.endForward(l)
	w.back(c.end, l)
}

var vocabulary = map[string]bool{
	schemas.PhaseForward: true, schemas.PhaseBackward: true, schemas.PhaseBackwardNorm: true,
	schemas.PhaseBackwardGrad: true,
	schemas.PhaseClip:         true, schemas.PhaseAccumulate: true, schemas.PhaseNoise: true,
	schemas.PhaseRecompute: true,
	schemas.PhaseOptimizer: true, schemas.PhaseZeroGrad: true, schemas.PhaseEval: true, schemas.PhaseBetween: true,
}

func (w *walker) openPhase(c *node, l *level) {
	name := w.names[uint32(c.a)]
	if name == "" {
		name = schemas.PhaseBetween
	}
	under, group := l.base, l.group
	switch {
	case w.inForward:
		under, group = schemas.PhaseForward, w.forwardG
	case len(l.open) > 0:
		under, group = l.open[len(l.open)-1].under, l.open[len(l.open)-1].group
	}
	if c.flags&spool.FlagSetup != 0 && w.training() {
		// A script may move its loss function to the device in each iteration, so a call that moves a module during
		// training is no set-up.
		name = under
		if n := len(l.open); n > 0 && !w.inForward {
			name = l.open[n-1].phase
		}
	} else if vocabulary[name] || strings.HasPrefix(name, "setup.") {
		under, group = name, w.newGroup()
	}
	l.open = append(l.open, change{phase: name, under: under, group: group})
	w.put(c.begin, name, under, group)
}

// follow describes which siblings follow a child in the tree.
type follow struct {
	backward     bool // a backward ran before the next update
	evalBackward bool // a backward ran before the next update, and no call in training mode before the backward
	work         bool // something ran: a call, a backward or an update
}

// follows returns, for each child of a node, what follows it. follows goes once through the children from the right,
// since a search from each forward call would take quadratic time in evaluation loops.
func (w *walker) follows(n *node) []follow {
	out := make([]follow, len(n.kids))
	var f follow
	for i := len(n.kids) - 1; i >= 0; i-- {
		out[i] = f
		switch c := w.kid(n, i); {
		case c.shape == backward, c.shape == dpBackward, c.shape == compiled && c.hasBackward:
			f = follow{true, true, true}
		case c.shape == optimizer, c.shape == dpStep:
			f = follow{work: true}
		case c.shape == forward:
			f.work = true
			if c.flags&spool.FlagTraining != 0 && c.flags&spool.FlagGrad != 0 {
				f.evalBackward = false
			}
		case c.shape == scaler, c.shape == compiled:
			f.work = true
		}
	}
	return out
}

func (w *walker) forward(n, c *node, l *level, after follow) {
	const trainingCall = spool.FlagGrad | spool.FlagTraining
	grad := c.flags&spool.FlagGrad != 0
	training := c.flags&spool.FlagTraining != 0
	// the surrounding marks determine the call's phase
	if c.flags&spool.FlagInBackward != 0 || n.shape == backward || n.shape == recompute {
		w.walk(c, l.base, l.group)
		w.back(c.end, l)
		return
	}
	differentiable := grad && c.endFlags&spool.FlagDifferentiable != 0 || c.flags&spool.FlagGraphModule != 0
	used := after.backward
	if !training && grad {
		used = after.evalBackward
	}
	switch n.shape {
	case optimizer, forward, compiled, scaler:
		used = true
	}
	cut := c.flags&trainingCall == trainingCall && (c.failed || !after.work && w.failures &&
		(!c.ended || differentiable))
	switch {
	case differentiable && used || c.hasTraining || cut:
		w.beginForward(c.begin, l)
		w.walk(c, schemas.PhaseForward, w.forwardG)
		w.back(c.end, l)
	case grad && !differentiable, c.endFlags&spool.FlagHost != 0:
		w.back(c.begin, l)
	default:
		g := w.newGroup()
		w.put(c.begin, schemas.PhaseEval, schemas.PhaseEval, g)
		w.back(c.end, l)
	}
}

// backward handles the backward run at child i of n, and returns the index of the last child that it handled.
func (w *walker) backward(n, c *node, i int, l *level) int {
	if c.flags&spool.FlagNestedRun != 0 { // a reentrant checkpoint, or functorch inside a DP hook
		w.walk(c, l.base, l.group)
		return i
	}
	if !c.trains() && (n.shape == forward || w.inForward) {
		w.back(c.begin, l)
		return i
	}
	second := w.secondPass(n, c, i)
	w.beginBackward(c.begin)
	w.endForward(l)
	if second < 0 {
		w.inside(c, schemas.PhaseBackward, l)
		return i
	}
	w.inside(c, schemas.PhaseBackwardNorm, l)
	clip := &level{base: schemas.PhaseClip, group: w.newGroup(), forwardAt: -1}
	w.back(c.end, clip)
	for j := i + 1; j < second; j++ {
		w.small(w.kid(n, j), clip)
	}
	w.inside(w.kid(n, second), schemas.PhaseBackwardGrad, l)
	return second
}

// secondPass finds the second run of a two-pass backward without Opacus' mark; -1 = there is none.
func (w *walker) secondPass(n, c *node, i int) int {
	if c.flags&spool.FlagKeepGraph == 0 || !c.trains() {
		return -1
	}
	cleared, open := false, 0
	for j := i + 1; j < len(n.kids); j++ {
		switch d := w.kid(n, j); d.shape {
		case zeroGrad:
			cleared = true
		case phaseBegin:
			open++
		case phaseEnd:
			if open--; open < 0 {
				return -1
			}
		case backward:
			if cleared && open == 0 && d.trains() {
				return j
			}
			return -1
		default:
			return -1
		}
	}
	return -1
}

// small handles the nodes that may lie between the passes of a two-pass backward, such as a zero_grad.
func (w *walker) small(c *node, l *level) {
	switch c.shape {
	case zeroGrad:
		w.put(c.begin, schemas.PhaseZeroGrad, schemas.PhaseZeroGrad, w.newGroup())
		w.back(c.end, l)
	case phaseBegin:
		w.openPhase(c, l)
	case phaseEnd:
		if len(l.open) > 0 {
			l.open = l.open[:len(l.open)-1]
			w.back(c.begin, l)
		}
	}
}

// twoPass handles the backward of Opacus' two-pass loss, which reduces the loss, runs backward, clips, and runs
// backward again.
func (w *walker) twoPass(x *node, l *level) {
	last := -1
	for i := range x.kids {
		if w.kid(x, i).shape == backward {
			last = i
		}
	}
	if !w.inForward {
		w.forwardG = w.newGroup()
	}
	w.inForward = false
	if w.pairBegin == 0 {
		w.pairBegin = x.begin
	}
	between := &level{base: schemas.PhaseForward, group: w.forwardG, forwardAt: -1}
	w.back(x.begin, between)
	passes := 0
	for i := range x.kids {
		c := w.kid(x, i)
		if c.shape != backward {
			w.small(c, between)
			continue
		}
		phase := schemas.PhaseBackwardGrad
		if passes == 0 {
			phase = schemas.PhaseBackwardNorm
			w.beginBackward(c.begin)
		}
		passes++
		w.endForward(l)
		between = &level{base: schemas.PhaseClip, group: w.newGroup(), forwardAt: -1}
		if i == last && passes > 1 {
			between = &level{base: l.base, group: l.group, forwardAt: -1}
		}
		w.inside(c, phase, between)
	}
	w.endForward(l)
	w.back(x.end, l)
}

// compiled handles a compiled region. Marks inside the region exist only where its graph breaks.
func (w *walker) compiled(c *node, l *level) {
	switch {
	case c.hasBackward:
		w.beginForward(c.begin, l)
		w.walk(c, schemas.PhaseOptimizer, w.newGroup())
		w.endForward(l)
		w.back(c.end, l)
	case c.hasUpdate:
		w.endForward(l)
		w.put(c.begin, schemas.PhaseOptimizer, schemas.PhaseOptimizer, w.newGroup())
		w.back(c.end, l)
	case c.flags&spool.FlagGrad != 0:
		w.beginForward(c.begin, l)
	default:
		w.put(c.begin, schemas.PhaseEval, schemas.PhaseEval, w.newGroup())
		w.back(c.end, l)
	}
}
