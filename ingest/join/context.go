package join

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas/spool"
)

// Rank is the part of one process's recording that the join needs.
type Rank struct {
	RunID     string
	Rank      int32
	Marks     []spool.Mark
	Tags      []spool.Tag
	Names     map[uint32]string
	Holders   []spool.HoldersInfo
	Intervals []spool.Interval
	Steps     *steps.Result
	// Untimed is true if the recording has no meaningful GPU times: for a phantom GPU, or an imported file.
	Untimed bool
	// LastK is the mark of the last drain whose events were kept; 0 = no events were lost. A process may die after it
	// drained its tags and before it drained its events. Tags that were drained after the last kept events may name
	// blocks that are not known.
	LastK uint32
	// Workspace is the size that CUBLAS_WORKSPACE_CONFIG gives, or 0.
	Workspace int64
}

// Context has the state at each mark of a rank, such as step and phase, in arrays indexed by k. So the passes look up
// an event's state without a search.
type Context struct {
	rank      *Rank
	span      []int32
	module    []uint32
	thread    []uint16
	dp        []bool // the mark lies inside a DP hook's computation
	recording []bool
	paused    []bool // recording is paused at the mark, between windows of steps
	followed  []bool // the agent followed the script's lines at the mark
	// saysLines is true if the journal says when the agent followed lines.
	saysLines bool
	// releases holds the k at which a backward run ended that did not keep its graph, by thread.
	releases map[uint16][]uint32
	drains   []uint32        // first mark of each drain
	engine   map[uint16]bool // threads of autograd's engine
	// backwardEnds holds the k at which an outermost backward run ended while no other thread had one in progress. At
	// each of these k, autograd's engine threads, which all threads share, are idle.
	backwardEnds []uint32
	tags         []spool.Tag // the tags, in order of k
	reducers     []reducer
	dropping     map[uint32]bool // marks while autocast empties its cache
	surveys      []uint32        // marks of looks at all that the script holds
	reducing     map[uint32]int  // for marks while a reducer makes its buckets: number of the reducer, from 1
	groupEnd     []uint32        // marks at which groups of spans end
	times        Times
}

// NewContext computes the context of all marks of a rank.
func NewContext(r *Rank) *Context {
	maxK := uint32(0)
	if n := len(r.Marks); n > 0 {
		maxK = r.Marks[n-1].K
	}
	n := int(maxK) + 2
	c := &Context{rank: r, span: make([]int32, n), module: make([]uint32, n), thread: make([]uint16, n),
		dp: make([]bool, n), recording: make([]bool, n), paused: make([]bool, n), followed: make([]bool, n),
		releases: map[uint16][]uint32{}, engine: map[uint16]bool{}, reducing: map[uint32]int{}, dropping: map[uint32]bool{}}
	spans := r.Steps.Spans
	for i := range spans {
		for k := spans[i].BeginK; k < min(spans[i].EndK, uint32(n)); k++ {
			c.span[k] = int32(i)
		}
	}
	for k := int(spans[len(spans)-1].EndK); k < n; k++ {
		c.span[k] = int32(len(spans) - 1)
	}
	c.groupEnd = make([]uint32, max(int(r.Steps.Groups), 1))
	for i := range spans {
		c.groupEnd[spans[i].Group] = max(c.groupEnd[spans[i].Group], spans[i].EndK)
	}
	c.walk()
	if r.LastK > 0 {
		for k := int(r.LastK) + 1; k < n; k++ {
			c.recording[k] = false
		}
	}
	c.tags = slices.Clone(r.Tags)
	slices.SortStableFunc(c.tags, func(a, b spool.Tag) int { return cmp.Compare(a.K, b.K) })
	c.times = findTimes(c)
	return c
}

// drainEnd returns the mark at which the drain that began at mark k ended, or k if its end is unknown.
func (c *Context) drainEnd(k uint32) uint32 {
	all := c.rank.Marks
	i, _ := slices.BinarySearchFunc(all, k, func(m spool.Mark, k uint32) int { return cmp.Compare(m.K, k) })
	if end := slices.IndexFunc(all[i:], func(m spool.Mark) bool { return m.Kind == spool.DrainEnd }); end >= 0 {
		return all[i+end].K
	}
	return k
}

// reducer is a stretch of time in which a DDP reducer makes its buckets.
type reducer struct {
	name uint32
	done uint32 // the mark that ends the reducer's work; 0 = the work never ended
}

// threadState has the calls and runs that one thread has begun and not yet ended.
type threadState struct {
	modules  []uint32 // running calls of modules, outermost first
	samplers []uint32 // running DP hooks
	backward []uint32 // modules whose backward runs, outermost first
	runs     []uint8  // flags of the running backward runs
	reducer  int      // the reducer that makes buckets: number from 1
}

func (s *threadState) module() uint32 {
	switch {
	case len(s.samplers) > 0:
		return s.samplers[len(s.samplers)-1]
	case len(s.modules) > 0:
		return s.modules[len(s.modules)-1]
	}
	if n := len(s.backward); n > 0 {
		return s.backward[n-1]
	}
	return 0
}

// pop removes the last v of a stack and everything above it. The entries above have no end mark if an exception left
// their calls.
func pop(stack []uint32, v uint32) []uint32 {
	for i := len(stack) - 1; i >= 0; i-- {
		if stack[i] == v {
			return stack[:i]
		}
	}
	return stack
}

// noThread is the thread of a mark that was never finished.
const noThread = 1<<16 - 1

// maxStack is the largest number of calls under way in a thread; a damaged journal may have more.
const maxStack = 10_000

func (c *Context) walk() {
	running := 0 // threads in a backward run, without the engine's own
	states := map[uint16]*threadState{}
	recording, began, followed, k := true, false, false, uint32(0)
	for i := range c.rank.Marks {
		m := &c.rank.Marks[i]
		s := states[m.Thread]
		if s == nil {
			s = &threadState{}
			states[m.Thread] = s
		}
		id := uint32(m.A)
		switch m.Kind {
		case spool.ForwardBegin: // a forward is outermost by definition, even if ends are missing
			s.modules = append(s.modules[:0], id)
		case spool.ForwardEnd:
			s.modules = s.modules[:0]
		case spool.ModuleBegin:
			if len(s.modules) < maxStack {
				s.modules = append(s.modules, id)
			}
		case spool.ModuleEnd:
			s.modules = pop(s.modules, id)
		case spool.SamplerBegin:
			if len(s.samplers) < maxStack {
				s.samplers = append(s.samplers, id)
			}
		case spool.SamplerEnd:
			s.samplers = pop(s.samplers, id)
		case spool.ModuleBackwardBegin:
			if len(s.backward) < maxStack {
				s.backward = append(s.backward, id)
			}
		case spool.ModuleBackwardEnd:
			s.backward = pop(s.backward, id)
		case spool.Engine:
			c.engine[m.Thread] = true
			s.backward, s.samplers, s.modules = s.backward[:0], s.samplers[:0], s.modules[:0]
		case spool.BackwardBegin:
			s.backward = s.backward[:0]
			if len(s.runs) == 0 && !c.engine[m.Thread] {
				running++
			}
			if len(s.runs) < maxStack {
				s.runs = append(s.runs, m.Flags)
			}
		case spool.BackwardEnd:
			s.backward = s.backward[:0]
			if n := len(s.runs); n > 0 {
				if f := s.runs[n-1]; f&(spool.FlagKeepGraph|spool.FlagNestedRun|spool.FlagFunctorch) == 0 {
					c.releases[m.Thread] = append(c.releases[m.Thread], m.K)
				}
				if s.runs = s.runs[:n-1]; n == 1 && !c.engine[m.Thread] {
					if running--; running == 0 {
						c.backwardEnds = append(c.backwardEnds, m.K)
					}
				}
			}
		case spool.Reducer:
			if s.reducer > 0 && m.A == 0 {
				c.reducers[s.reducer-1].done = m.K
			}
			if s.reducer = 0; m.A > 0 {
				c.reducers = append(c.reducers, reducer{name: id})
				s.reducer = len(c.reducers)
			}
		case spool.CastsDropped:
			if m.A > 0 {
				c.dropping[m.K] = true
			}
		case spool.Survey:
			c.surveys = append(c.surveys, m.K)
		case spool.DrainBegin:
			c.drains = append(c.drains, m.K)
		case spool.CudaReady: // recording begins before the agent marks a mode
			recording, began = true, true
		case spool.Mode:
			recording = m.Flags&spool.FlagRecording != 0
			began = began || recording
			followed = m.Flags&spool.FlagLines != 0
			c.saysLines = c.saysLines || followed
		}
		for ; k < m.K; k++ { // marks that their threads never finished
			c.thread[k], c.recording[k], c.paused[k] = noThread, recording, began && !recording
			c.followed[k] = followed
		}
		c.module[m.K], c.thread[m.K], c.dp[m.K], c.recording[m.K] = s.module(), m.Thread, len(s.samplers) > 0, recording
		c.paused[m.K], c.followed[m.K] = began && !recording, followed
		if s.reducer > 0 {
			c.reducing[m.K] = s.reducer
		}
		k = m.K + 1
	}
}

// At returns the position of mark k: step (-1 = before the first), phase, and module id (0 = none).
func (c *Context) At(k uint32) (step int64, phase string, module uint32) {
	if int(k) >= len(c.span) {
		k = uint32(len(c.span) - 1)
	}
	s := &c.rank.Steps.Spans[c.span[k]]
	return s.Step, s.Phase, c.module[k]
}

// LinesFollowed reports whether an event at the time of mark k can have its line. On a GPU, the agent follows lines
// only in set-up and in instrumented steps, and only until it has used up its time for lines. Afterwards, events still
// carry the last line of their thread.
func (c *Context) LinesFollowed(k uint32) bool {
	if int(k) >= len(c.span) {
		k = uint32(len(c.span) - 1)
	}
	if c.saysLines {
		return c.followed[k]
	}
	return c.linesFollowedIn(&c.rank.Steps.Spans[c.span[k]])
}

// linesFollowedIn reports whether the agent followed lines until the end of a span. If the agent stopped within the
// span, later events may carry an old line of their thread.
func (c *Context) linesFollowedIn(s *steps.Span) bool {
	if !c.saysLines {
		return c.rank.Untimed || c.instrumented(s)
	}
	return c.followed[min(max(s.BeginK, s.EndK-1), uint32(len(c.followed)-2))]
}

// instrumented reports whether a span lies in an instrumented step, in set-up or in an instrumented tail.
func (c *Context) instrumented(s *steps.Span) bool {
	switch r := c.rank.Steps; {
	case s.Step < 0:
		return true
	case s.Step < int64(len(r.Steps)):
		return r.Steps[s.Step].Instrumented
	default:
		return r.TailInstrumented
	}
}

// recordingAt reports whether events were recorded at mark k.
func (c *Context) recordingAt(k uint32) bool { return int(k) < len(c.recording) && c.recording[k] }

// pausedIn reports whether part of a span was not recorded, so that its bytes are unknown.
func (c *Context) pausedIn(s *steps.Span) bool {
	n := uint32(len(c.paused))
	return s.BeginK < n && c.paused[s.BeginK] || s.EndK > s.BeginK && s.EndK <= n && c.paused[s.EndK-1]
}

// Tags returns the rank's tags in order of k.
func (c *Context) Tags() []spool.Tag { return c.tags }
