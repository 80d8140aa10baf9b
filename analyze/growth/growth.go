package growth

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// A Growth describes by how much the memory that a device holds grows from one step, or pass, to the next.
type Growth struct {
	Trend
	Unit Unit
	Gaps bool // some steps between them were not recorded
	// Spans are the events of each recorded step, or pass, in the series that grows.
	Spans []memory.Span
	// Step is the step that contains all passes; nil if no step contains them, or if the growth is by steps.
	Step *int64
	Line *schemas.Line // line with which each pass of a [LinePass] begins
	// GivenBack is true if most of what the passes left behind was freed before the recording ended.
	GivenBack bool
	// Exhaustion is when the growth fills the device; nil if unknown, or if the growth is not steady.
	Exhaustion *Exhaustion
}

// Unit is what repeats while memory grows: a step or a kind of pass.
type Unit string

// The units.
const (
	Step Unit = "step"
	// EvaluationPass is a forward pass that trains nothing. Passes are the unit if several follow each other, without
	// a step or within one step.
	EvaluationPass Unit = "evaluation_pass"
	// LinePass begins each time that a line of the script asks for memory. Line passes are the unit if the run has
	// neither steps nor evaluation passes.
	LinePass Unit = "line_pass"
)

// A Low is the lowest allocated in a step or a pass, and the first event after which the allocated was that low.
type Low struct {
	At    int64 // number of the step, or of the pass, from 0
	Event int64
	Bytes int64
	High  int64 // highest allocated in the step
}

// An Exhaustion is the step, or pass, at which the device's memory is full if the growth continues. The exhaustion
// lies between Earliest and Latest with the confidence of the slope's bounds.
type Exhaustion struct {
	LimitBytes           int64 // bytes of the device that the process can use
	At, Earliest, Latest int64
}

// farthest limits how far ahead an exhaustion is predicted: this many times the number of steps from which the slope
// was computed.
const farthest = 1_000

// Of finds the growth of a device's memory from its ledger and its peak. Steps take precedence over passes, since
// evaluation passes within the steps would also show what the steps keep.
func Of(in *schemas.Tables, p identity.Place, l *memory.Ledger, peak memory.Moment, peakBytes int64) *Growth {
	f := finder{in: in, p: p, l: l, peak: peak.Event, peakBytes: peakBytes}
	steps := f.steps()
	if g := f.best([]series{steps}); g != nil {
		return g
	}
	passes, evaluates := f.evaluations()
	if g := f.best(passes); g != nil || evaluates || len(steps.spans) > 0 {
		return g
	}
	return f.best([]series{f.linePasses()})
}

type finder struct {
	in        *schemas.Tables
	p         identity.Place
	l         *memory.Ledger
	peak      int64 // event at which the allocated is highest
	peakBytes int64
}

// A series is a list of steps or passes, in order, over which memory may grow.
type series struct {
	unit  Unit
	spans []span
	step  *int64
	line  *schemas.Line
}

// A span is a step or a pass: its number and its events (begin, end]. The state just after begin counts too.
type span struct{ at, begin, end int64 }

// steps returns the recorded steps after warm-up. If no step comes after warm-up, steps returns all recorded steps, as
// for a script whose steps were recognised only by their backward passes.
func (f *finder) steps() series {
	all, warm := series{unit: Step}, series{unit: Step}
	for i := range f.in.Steps {
		x := &f.in.Steps[i]
		if x.Rank != f.p.Rank || x.Device != f.p.Device || !x.Recorded {
			continue
		}
		s := span{x.Step, x.BeginSeq, x.EndSeq}
		all.spans = append(all.spans, s)
		if !x.Warmup {
			warm.spans = append(warm.spans, s)
		}
	}
	s := warm
	if len(warm.spans) == 0 {
		s = all
	}
	slices.SortFunc(s.spans, func(a, b span) int { return cmp.Compare(a.at, b.at) })
	return s
}

// evaluations returns the forward passes that train nothing, as one series for each step and one for the passes outside
// of all steps. Each pass lasts until the next pass begins. evaluates is true if there are evaluation passes at all,
// even if they are too few to judge.
func (f *finder) evaluations() (out []series, evaluates bool) {
	known := memory.PhasesWithBytes(f.in)
	by := map[int64][]*schemas.Phase{}
	for i := range f.in.Phases {
		if x := &f.in.Phases[i]; x.Rank == f.p.Rank && x.Device == f.p.Device && x.Phase == schemas.PhaseEval && known(x) {
			by[x.Step] = append(by[x.Step], x)
		}
	}
	for step, phases := range by {
		if len(phases) < least {
			continue
		}
		slices.SortStableFunc(phases, func(a, b *schemas.Phase) int { return cmp.Compare(a.BeginK, b.BeginK) })
		s := series{unit: EvaluationPass}
		if step >= 0 && len(f.in.Steps) > 0 {
			s.step = new(step)
		}
		for i, x := range phases {
			s.spans = append(s.spans, span{int64(i), x.BeginSeq, x.EndSeq})
			if i > 0 {
				s.spans[i-1].end = x.BeginSeq
			}
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b series) int { return cmp.Compare(a.spans[0].begin, b.spans[0].begin) })
	return out, len(by) > 0
}

// linePasses returns passes that begin at one line of a loop: the line whose blocks hold most at the peak. A pass
// begins where this line requests a block and another line requested the block before.
func (f *finder) linePasses() series {
	begins, held := map[int64][]int64{}, map[int64]int64{}
	last := int64(0)
	for i := range f.in.Allocations {
		a := &f.in.Allocations[i]
		if a.Rank != f.p.Rank || a.Device != f.p.Device || a.Line == 0 {
			continue
		}
		if a.Line != last {
			begins[a.Line] = append(begins[a.Line], a.AllocSeq)
		}
		last = a.Line
		if a.LiveAt(f.peak) {
			held[a.Line] += a.BlockBytes
		}
	}
	s := series{unit: LinePass}
	for i := range f.in.Lines {
		l := &f.in.Lines[i]
		if l.Rank == f.p.Rank && len(begins[l.Line]) >= least &&
			(s.line == nil || held[l.Line] > held[s.line.Line]) {
			s.line = l
		}
	}
	if s.line == nil {
		return s
	}
	all := begins[s.line.Line]
	for i, seq := range all[:len(all)-1] { // no event follows the last pass, so it is unknown what it leaves
		s.spans = append(s.spans, span{int64(i), seq, all[i+1] - 1})
	}
	return s
}

// best returns the growth with the most bytes among several series, or nil if no series grows.
func (f *finder) best(all []series) (best *Growth) {
	for _, s := range all {
		if len(s.spans) < least {
			continue
		}
		lows := f.lows(s.spans)
		t := trendOf(lows, len(all))
		if t == nil || !t.matters(f.peakBytes) {
			continue
		}
		g := &Growth{Trend: *t, Unit: s.unit, Step: s.step, Line: s.line}
		for _, x := range s.spans {
			g.Spans = append(g.Spans, memory.Span{From: x.begin, To: x.end})
		}
		g.Gaps = s.unit == Step && s.hasGaps(g.First.At, g.Last.At)
		if s.unit != Step && !f.kept(g) {
			continue
		}
		if g.Steady && !g.GivenBack {
			g.Exhaustion = f.exhaustion(t, lows)
		}
		if best == nil || g.Bytes() > best.Bytes() {
			best = g
		}
	}
	return best
}

// hasGaps reports whether a step between two steps is missing from the series.
func (s *series) hasGaps(from, to int64) bool {
	n := int64(0)
	for _, x := range s.spans {
		if from <= x.at && x.at <= to {
			n++
		}
	}
	return to-from >= n
}

// Bytes returns how many bytes the last step or pass holds more than the first.
func (g *Growth) Bytes() int64 { return g.Last.Bytes - g.First.Bytes }

// Steps returns over how many steps, or passes, the growth was added.
func (g *Growth) Steps() int64 { return g.Last.At - g.First.At }

// kept sets GivenBack and reports whether the growth matters. The growth matters if the memory was not given back, or
// if much of it is live at the peak: an evaluation that holds its outputs only until it ends does not raise a peak at
// another moment.
func (f *finder) kept(g *Growth) bool {
	events := int64(0)
	if v := identity.Verdict(f.in, f.p); v != nil {
		events = v.Events
	}
	var left, atPeak, atEnd int64
	for i := range f.l.Len() {
		if f.l.LiveAt(i, g.First.Event) || !f.l.LiveAt(i, g.Last.Event) {
			continue
		}
		requested, slack := f.l.Bytes(i)
		bytes := requested + slack
		left += bytes
		if f.l.LiveAt(i, f.peak) {
			atPeak += bytes
		}
		if f.l.LiveAt(i, max(events, g.Last.Event)) {
			atEnd += bytes
		}
	}
	g.GivenBack = atEnd < left/2
	return !g.GivenBack || memory.AtLeast(atPeak, f.peakBytes, percentInAll)
}

// lows returns the low of each span. The spans must be in order and must not overlap.
func (f *finder) lows(spans []span) []Low {
	out := make([]Low, 0, len(spans))
	var allocated, since int64 // bytes allocated, and the event since which they are
	next := 0
	// begin adds a low for each span that has begun before an event, with the bytes allocated at the span's beginning.
	begin := func(before int64) {
		for ; next < len(spans) && spans[next].begin < before; next++ {
			out = append(out, Low{spans[next].at, max(since, spans[next].begin), allocated, allocated})
		}
	}
	changes := f.l.Changes()
	for i := 0; i < len(changes); {
		seq := changes[i].Seq()
		begin(seq)
		for ; i < len(changes) && changes[i].Seq() == seq; i++ {
			allocated += changes[i].Bytes
		}
		since = seq
		if k := len(out) - 1; k >= 0 && seq <= spans[k].end {
			if allocated < out[k].Bytes {
				out[k].Event, out[k].Bytes = seq, allocated
			}
			out[k].High = max(out[k].High, allocated)
		}
	}
	begin(math.MaxInt64)
	return out
}

// exhaustion computes the step from which the growing lows leave no room for the largest difference between a step's
// highest and lowest. exhaustion returns nil if the bounds of the slope are too wide.
func (f *finder) exhaustion(t *Trend, lows []Low) *Exhaustion {
	limit := f.limit()
	if limit == 0 || t.SlopeLow <= 0 || t.SlopeHigh > 2*t.SlopeLow {
		return nil
	}
	var above int64
	for _, l := range lows {
		above = max(above, l.High-l.Bytes)
	}
	room := float64(limit - t.Last.Bytes - above)
	in := func(slope float64) int64 { return t.Last.At + max(1, int64(math.Ceil(room/slope))) }
	if room < 0 || room/t.Slope > farthest*float64(t.Last.At-t.First.At) {
		return nil
	}
	return &Exhaustion{LimitBytes: limit, At: in(t.Slope), Earliest: in(t.SlopeHigh), Latest: in(t.SlopeLow)}
}

// limit returns how many bytes of the device the process can take: the phantom GPU's memory, a limit that the process
// set, or the whole device. limit returns 0 if the limit is not known, or if the run died at it.
func (f *finder) limit() (limit int64) {
	m := f.in.Manifest
	switch {
	case m.Source == schemas.Predicted && m.Phantom != nil:
		limit = m.Phantom.MemoryBytes
	case m.Source == schemas.Measured && len(m.GPUs) > 0:
		limit = m.GPUs[0].TotalBytes
		for _, g := range m.GPUs { // it is unknown which GPU has torch's ordinal
			if g.TotalBytes != limit {
				return 0
			}
		}
	}
	for i := range f.in.Report.OOMs {
		o := &f.in.Report.OOMs[i]
		switch {
		case o.Rank != f.p.Rank || o.Device != f.p.Device:
		case o.Fatal:
			return 0
		case o.LimitBytes > 0 && o.LimitBytes < limit:
			limit = o.LimitBytes
		}
	}
	return limit
}
