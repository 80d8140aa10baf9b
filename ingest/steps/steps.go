package steps

import (
	"slices"
	"sort"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// The values of [Result.Rule]: the rules by which steps are found.
const (
	RuleOptimizer = "optimizer"
	RuleUserStep  = "dpsight.step"
	RuleBackward  = "backward"
)

// Step is one complete step. The state after mark BeginK belongs to the step, and the state after mark EndK no longer
// does.
type Step struct {
	Number         int64
	BeginK, EndK   uint32
	StartNS, EndNS int64
	DrainNS        int64 // time of the agent's own drains inside the step
	Microbatches   int32
	Warmup         bool
	Instrumented   bool // also when only a part of the step was instrumented
	Recorded       bool // all of the step was recorded
	Unphased       bool // the agent marked no phases in some part of the step
	Samples        int64
	Tokens         int64 // numbers that the script reported; 0 = none
}

// Span is a stretch of marks in which one phase holds: from mark BeginK until mark EndK. Spans follow each other
// without a gap, from k 0 on.
type Span struct {
	Phase          string
	Under          string // the phase around Phase, if Phase is one of the script's own
	Step           int64  // number of the step; -1 = before the first; the number of steps = after the last complete one
	Microbatch     int32
	Group          int32 // number of one occurrence of a phase, interrupted or not
	BeginK, EndK   uint32
	StartNS, EndNS int64 // times of the span, without a drain at its end
}

// Result has the steps and phases of one process.
type Result struct {
	Rule       string // rule by which steps were found; "" = no step
	Optimizers int
	Thread     uint16 // thread that trains
	Steps      []Step
	Spans      []Span // spans of the step; never empty
	Groups     int32
	// TailInstrumented is true if the part after the last complete step was instrumented, or has no marks.
	TailInstrumented bool
}

// Derive finds the steps and phases in the marks of one process, given in order of k.
func Derive(marks []spool.Mark, names map[uint32]string) *Result {
	training, engine := trainingThreads(marks)
	t := build(marks, func(th uint16) bool { return th == training || engine[th] })
	w := &walker{tree: t, names: names, out: nil}
	if len(marks) > 0 {
		w.put(marks[0].K, schemas.PhaseBetween, schemas.PhaseBetween, w.newGroup())
	} else {
		w.newGroup()
	}
	w.walk(&t.nodes[0], schemas.PhaseBetween, 0)
	r := &Result{Thread: training}
	ends := r.boundaries(t, marks)
	begin := w.firstTraining(len(ends) > 0, marks)
	for len(ends) > 0 && ends[0] <= begin {
		ends = ends[1:]
	}
	if len(ends) == 0 {
		r.Rule = ""
	}
	r.steps(marks, begin, ends)
	r.spans(marks, w, begin, ends)
	r.Groups = w.groups
	return r
}

func (r *Result) boundaries(t *tree, marks []spool.Mark) []uint32 {
	ups := t.updates(&t.nodes[0], nil)
	rule := RuleOptimizer
	if len(ups) == 0 && !slices.ContainsFunc(t.nodes, func(n node) bool { return n.shape == optimizer }) {
		ups, rule = t.backwards(), RuleBackward
	}
	ends, keys := boundaries(ups)
	if rule == RuleOptimizer {
		r.Optimizers = keys
	}
	var user []uint32
	for i := range marks {
		if marks[i].Kind == spool.UserStep {
			user = append(user, marks[i].K)
		}
	}
	r.Rule = rule
	if len(user) > 0 {
		r.Rule = RuleUserStep
		return user
	}
	return ends
}

// firstTraining returns the k at which step 0 begins. Without a training mark, step 0 begins at the first mark, or at 0
// if there are no steps.
func (w *walker) firstTraining(any bool, marks []spool.Mark) uint32 {
	for i, c := range w.out {
		switch c.under {
		case schemas.PhaseForward, schemas.PhaseBackward, schemas.PhaseBackwardNorm, schemas.PhaseBackwardGrad,
			schemas.PhaseClip, schemas.PhaseOptimizer, schemas.PhaseRecompute:
		default:
			continue
		}
		k := c.k
		for j := i - 1; j >= 0; j-- {
			if w.out[j].phase == schemas.PhaseZeroGrad {
				k = w.out[j].k
				break
			}
			if w.out[j].under != schemas.PhaseBetween {
				break
			}
		}
		return k
	}
	if any && len(marks) > 0 {
		return marks[0].K
	}
	return 0
}

// steps fills in the complete steps of the result.
func (r *Result) steps(marks []spool.Mark, begin uint32, ends []uint32) {
	for i, end := range ends {
		r.Steps = append(r.Steps, Step{Number: int64(i), BeginK: begin, EndK: end})
		begin = end
	}
	type seen struct{ any, instrumented, warmup, bare, cuda, unphased bool }
	var s seen
	var mode uint8
	ready := false // before CUDA is initialised there is nothing to record
	at, drain := 0, int64(0)
	if len(r.Steps) == 0 {
		r.TailInstrumented = true
		for i := range marks {
			if marks[i].Kind == spool.Mode {
				if r.TailInstrumented = marks[i].Flags&spool.FlagInstrumented != 0; r.TailInstrumented {
					break
				}
			}
		}
		return
	}
	finish := func(st *Step) {
		st.Warmup, st.Instrumented, st.Recorded, st.Unphased = s.warmup, s.instrumented, s.cuda && !s.bare, s.unphased
		s = seen{}
	}
	for i := range marks {
		m := &marks[i]
		if m.K < r.Steps[0].BeginK {
			switch m.Kind {
			case spool.Mode:
				mode, ready = m.Flags, ready || m.Flags&spool.FlagRecording != 0
			case spool.CudaReady: // recording begins before the agent marks a mode
				mode, ready = mode|spool.FlagRecording, true
			}
			continue
		}
		var st *Step
		if at < len(r.Steps) {
			st = &r.Steps[at]
			if m.K == st.BeginK {
				st.StartNS = m.TimeNS
			}
		}
		switch m.Kind {
		case spool.Mode:
			mode, ready = m.Flags, ready || m.Flags&spool.FlagRecording != 0
		case spool.CudaReady:
			mode, ready = mode|spool.FlagRecording, true
		case spool.DrainBegin:
			drain = m.TimeNS
		case spool.DrainEnd:
			if drain != 0 && st != nil && m.TimeNS > drain {
				st.DrainNS += m.TimeNS - drain
			}
			drain = 0
		case spool.UserStep:
			if st != nil && m.K == st.EndK {
				st.Samples, st.Tokens = reported(m.A), reported(m.B)
			}
		case spool.StepEnd, spool.StepBegin, spool.Tags, spool.UserMark, spool.Exit, spool.Start, spool.Forked,
			spool.TimedOut, spool.HistoryReset: // marks of the agent that may lie between a step's end and its new mode
		default:
			s.any = true
			s.instrumented = s.instrumented || mode&spool.FlagInstrumented != 0
			s.warmup = s.warmup || mode&spool.FlagWarmup != 0
			s.unphased = s.unphased || mode&spool.FlagUnphased != 0
			s.cuda = s.cuda || ready
			s.bare = s.bare || ready && mode&spool.FlagRecording == 0
		}
		if st != nil && m.K == st.EndK {
			st.EndNS = m.TimeNS
			finish(st)
			if at++; at < len(r.Steps) {
				r.Steps[at].StartNS = m.TimeNS
			}
		}
	}
	r.TailInstrumented = s.instrumented || !s.any
}

func reported(v uint64) int64 {
	if v == 0 || v > 1<<62 {
		return 0
	}
	return int64(v - 1)
}

// spans fills in the result's spans: it cuts the phases at the boundaries of steps and around drains.
func (r *Result) spans(marks []spool.Mark, w *walker, begin uint32, ends []uint32) {
	if len(marks) == 0 {
		r.Spans = []Span{{Phase: schemas.PhaseBetween, Under: schemas.PhaseBetween, Step: -1}}
		return
	}
	last := marks[len(marks)-1]
	c := cutter{w: w, begin: begin, ends: ends}
	var drain int64 // time at which the last drain began
	next := 0
	for i := range marks {
		m := &marks[i]
		for next < len(w.out) && w.out[next].k < m.K { // the thread never finished the mark
			w.out[next].k = m.K
		}
		changes := next < len(w.out) && w.out[next].k == m.K
		for next+1 < len(w.out) && w.out[next+1].k <= m.K {
			next++
		}
		cut := changes
		step := c.stepOf(m.K)
		switch {
		case m.Kind == spool.DrainBegin:
			drain = m.TimeNS
		case m.Kind == spool.DrainEnd && drain != 0:
			r.closeSpan(m.K, drain)
			c.open(r, m, step)
			drain = 0
			continue
		}
		if changes {
			c.now = w.out[next]
			next++
		}
		if cut || len(r.Spans) == 0 || step != r.Spans[len(r.Spans)-1].Step {
			r.closeSpan(m.K, m.TimeNS)
			c.open(r, m, step)
		}
	}
	r.closeSpan(last.K+1, last.TimeNS)
	r.Spans[0].BeginK = 0
	for i := range r.Steps {
		s := &r.Steps[i]
		s.Microbatches = int32(c.pairsIn(s.BeginK, s.EndK))
	}
}

func (r *Result) closeSpan(k uint32, timeNS int64) {
	if n := len(r.Spans); n > 0 {
		s := &r.Spans[n-1]
		s.EndK, s.EndNS = k, max(timeNS, s.StartNS)
	}
}

type cutter struct {
	w     *walker
	begin uint32
	ends  []uint32
	step  int
	now   change
}

// stepOf returns the step to which the state after mark k belongs. k must grow from call to call.
func (c *cutter) stepOf(k uint32) int64 {
	if len(c.ends) == 0 {
		if c.begin != 0 && k >= c.begin { // the first step was never completed
			return 0
		}
		return -1
	}
	if k < c.begin {
		return -1
	}
	for c.step < len(c.ends) && c.ends[c.step] <= k {
		c.step++
	}
	return int64(c.step)
}

func (c *cutter) open(r *Result, m *spool.Mark, step int64) {
	s := Span{Phase: c.now.phase, Under: c.now.under, Group: c.now.group, Step: step, BeginK: m.K, StartNS: m.TimeNS}
	from := c.begin
	if step > 0 {
		from = c.ends[step-1]
	}
	if step >= 0 {
		s.Microbatch = int32(max(c.pairsIn(from, m.K+1)-1, 0))
	}
	r.Spans = append(r.Spans, s)
}

// pairsIn counts the forward-backward pairs that begin in [from, to).
func (c *cutter) pairsIn(from, to uint32) int {
	at := func(k uint32) int { return sort.Search(len(c.w.pairs), func(i int) bool { return c.w.pairs[i] >= k }) }
	return at(to) - at(from)
}
