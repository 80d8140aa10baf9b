package steps

import "github.com/dpsight/dpsight/schemas/spool"

// shape is the kind of a node in the tree.
type shape uint8

const (
	root shape = iota
	forward
	backward
	optimizer
	zeroGrad
	recompute
	dpStep
	dpBackward
	compiled
	scaler
	// phaseBegin and phaseEnd are the marks of a phase of the script or of Opacus. phaseBegin and phaseEnd are leaves,
	// so the nodes between them keep their siblings.
	phaseBegin
	phaseEnd
)

var shapes = map[spool.Kind]shape{
	spool.ForwardBegin: forward, spool.BackwardBegin: backward, spool.OptimizerBegin: optimizer,
	spool.ZeroGradBegin:  zeroGrad,
	spool.RecomputeBegin: recompute, spool.DPStepBegin: dpStep, spool.DPBackwardBegin: dpBackward,
	spool.CompiledBegin: compiled,
	spool.ScalerBegin:   scaler,
}

// maxDepth is the largest depth of the tree. Real scripts nest only a few spans, but a damaged journal may nest any
// number.
const maxDepth = 200

type node struct {
	shape       shape
	begin, end  uint32 // numbers of the marks
	ended       bool   // the span's own end mark was seen
	flags       uint8
	endFlags    uint8
	whole       bool // one mark stands for the span's begin and end
	thread      uint16
	a           uint64
	up          int32
	kids        []int32
	hasUpdate   bool // an optimizer step lies inside
	hasBackward bool
	hasTraining bool // a backward that trains lies inside
	failed      bool // an allocation failed inside
	initializes bool // a step of an optimizer that only makes its state
}

// tree holds nodes in order of begin; node 0 is the root.
type tree struct {
	nodes    []node
	failures bool // the process died of an exception, or without a report
}

func (t *tree) kid(n *node, i int) *node { return &t.nodes[n.kids[i]] }

// build makes the tree of the marks that keep accepts.
func build(marks []spool.Mark, keep func(thread uint16) bool) *tree {
	t := &tree{nodes: []node{{shape: root, up: -1}}}
	cur, depth := int32(0), 0
	exited, died := false, false
	add := func(m *spool.Mark, s shape) int32 {
		i := int32(len(t.nodes))
		t.nodes = append(t.nodes, node{shape: s, begin: m.K, flags: m.Flags, a: m.A, thread: m.Thread, up: cur})
		t.nodes[cur].kids = append(t.nodes[cur].kids, i)
		return i
	}
	for i := range marks {
		m := &marks[i]
		switch m.Kind {
		case spool.Exit:
			exited = true
		case spool.Exception:
			died = true
		}
		if !keep(m.Thread) {
			continue
		}
		switch {
		case m.Kind == spool.PhaseBegin:
			add(m, phaseBegin)
		case m.Kind == spool.PhaseEnd:
			add(m, phaseEnd)
		case m.Kind == spool.Updated:
			n := &t.nodes[add(m, optimizer)]
			n.end, n.ended, n.whole, n.flags = m.K, true, true, m.Flags&spool.FlagInBackward
		case m.Kind == spool.Raised, m.Kind == spool.OOM && m.Flags&spool.FlagNoted == 0:
			for n := cur; n > 0; n = t.nodes[n].up {
				t.nodes[n].failed = true
			}
			if m.Kind == spool.Raised {
				t.asked(uint32(m.A))
			}
		case m.Kind.Opens():
			if s, ok := shapes[m.Kind]; ok && depth < maxDepth {
				cur = add(m, s)
				depth++
			}
		case m.Kind.Closes():
			s, ok := shapes[m.Kind-1]
			if !ok {
				continue
			}
			n, up := t.opened(cur, s, m, true)
			if n <= 0 {
				n, up = t.opened(cur, s, m, false)
			}
			if n <= 0 {
				continue
			}
			for o := cur; ; o = t.nodes[o].up {
				t.nodes[o].end = m.K
				if o == n {
					break
				}
			}
			t.nodes[n].ended, t.nodes[n].endFlags = true, m.Flags
			cur, depth = t.nodes[n].up, depth-up-1
		}
	}
	t.failures = died || !exited
	t.findInitializations()
	t.summarize()
	return t
}

// opened finds the node at or around cur that the end mark m closes, and how many levels up it is. opened returns a
// node of 0 or less if there is none. Ends of inner nodes may be missing. If same is true, the node must have the
// operand of m: if one optimizer failed inside another, the operand shows to which of the two the end belongs.
func (t *tree) opened(cur int32, s shape, m *spool.Mark, same bool) (n int32, up int) {
	for n = cur; n > 0; n, up = t.nodes[n].up, up+1 {
		if o := &t.nodes[n]; o.shape == s && o.thread == m.Thread && (!same || o.a == m.A) {
			break
		}
	}
	return n, up
}

// asked records that the request at mark k failed. asked sets failed for the nodes around mark k that ended after it or
// have no end mark.
func (t *tree) asked(k uint32) {
	for i := len(t.nodes) - 1; i > 0; i-- {
		if n := &t.nodes[i]; n.begin < k {
			for ; n.up >= 0; n = &t.nodes[n.up] {
				n.failed = n.failed || !n.ended || n.end > k
			}
			return
		}
	}
}

// summarize sets, for each node, which kinds of nodes lie inside it. In the list of nodes, children come after their
// parents.
func (t *tree) summarize() {
	for i := len(t.nodes) - 1; i > 0; i-- {
		n, up := &t.nodes[i], &t.nodes[t.nodes[i].up]
		up.hasUpdate = up.hasUpdate || n.hasUpdate || n.updates() && n.ended
		up.hasBackward = up.hasBackward || n.hasBackward || n.shape == backward
		up.hasTraining = up.hasTraining || n.hasTraining || n.trains()
	}
}

// findInitializations finds the optimizers' steps that only create their state. Marks say so for the steps that torch
// itself makes. A script may also create the state before it trains: this step is the only one of its optimizer before
// the first backward run. If an optimizer steps more than once before the first backward run, or if there is no
// backward run, the script computes gradients without backward.
func (t *tree) findInitializations() {
	early := map[uint64][]int{} // steps before the first backward run, by optimizer
	trained := false
	for i := range t.nodes {
		n := &t.nodes[i]
		switch {
		case n.shape == optimizer && !n.whole && n.flags&spool.FlagInitializes != 0:
			n.initializes = true
		case n.shape == optimizer && !trained && n.updates() && n.ended:
			early[n.a] = append(early[n.a], i)
		case n.shape == backward && !trained && n.flags&(spool.FlagNestedRun|spool.FlagFunctorch) == 0:
			trained = true
			// An enclosing optimizer step runs this backward, as with LBFGS.
			for up := n.up; up > 0; up = t.nodes[up].up {
				if t.nodes[up].shape == optimizer {
					delete(early, t.nodes[up].a)
				}
			}
		}
	}
	for _, steps := range early {
		if trained && len(steps) == 1 && t.stands(steps[0]) {
			t.nodes[steps[0]].initializes = true
		}
	}
}

// stands reports whether an optimizer's step is outermost. Only calls of modules, and steps of Opacus' optimizer or of
// a scaler, may be around it.
func (t *tree) stands(i int) bool {
	for up := t.nodes[i].up; up > 0; up = t.nodes[up].up {
		switch t.nodes[up].shape {
		case optimizer, backward, compiled, dpBackward:
			return false
		}
	}
	return true
}

// updates reports whether n is an optimizer's step that changes weights. A step does not count if an exception ended
// it, or if it only creates the optimizer's state.
func (n *node) updates() bool {
	return n.shape == optimizer && n.endFlags&spool.FlagRepaired == 0 && !n.initializes
}

// trains reports whether a backward run makes gradients for an update, rather than a part of the loss.
func (n *node) trains() bool {
	return n.shape == backward && n.flags&spool.FlagNestedRun == 0 &&
		(n.flags&spool.FlagAccumulate != 0 || n.flags&spool.FlagCreateGraph == 0 || n.flags&spool.FlagFunctorch != 0)
}

// trainingThreads finds the thread that trains, and the threads of autograd's engine.
func trainingThreads(marks []spool.Mark) (training uint16, engine map[uint16]bool) {
	engine = map[uint16]bool{}
	type count struct{ updates, backwards, forwards int }
	counts := map[uint16]*count{}
	var order []uint16
	for i := range marks {
		m := &marks[i]
		c := counts[m.Thread]
		if c == nil {
			c = &count{}
			counts[m.Thread] = c
			order = append(order, m.Thread)
		}
		switch m.Kind {
		case spool.Engine:
			engine[m.Thread] = true
		case spool.OptimizerBegin, spool.DPStepBegin, spool.Updated:
			c.updates++
		case spool.BackwardBegin, spool.DPBackwardBegin, spool.CompiledBegin:
			c.backwards++
		case spool.ForwardBegin:
			c.forwards++
		}
	}
	// If autograd's multithreading is off, the engine runs on the training thread.
	best := count{-1, 0, 0}
	for pass := 0; pass < 2 && best.updates < 0; pass++ {
		for _, th := range order {
			c := *counts[th]
			if pass == 0 && engine[th] && c.backwards == 0 {
				continue
			}
			if c.updates > best.updates || c.updates == best.updates && (c.backwards > best.backwards ||
				c.backwards == best.backwards && c.forwards > best.forwards) {
				training, best = th, c
			}
		}
	}
	return training, engine
}
