package analyze

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// ComponentProfile describes a run as simpler profilers do, which add up tensor sizes by component and read the
// allocator's counters between phases. ComponentProfile has the totals of a few components, and the state of memory at
// fixed points of the training loop. A field is nil if the run does not have its value.
type ComponentProfile struct {
	identity.Identity
	MeanStepMS *float64 // mean over the timed steps, since the tools that are compared report a mean
	PeakBytes  *int64
	// Components are the bytes of components at the peak. Each block counts once, so the components do not sum to more
	// than the peak. Components is nil if the peak is not broken down.
	Components *Components
	// HeldByHooks are the bytes that DP hooks hold at the peak, alone or together with autograd.
	HeldByHooks *int64
	// EndAllocated and EndReserved are the bytes allocated and reserved at the end of the last step.
	EndAllocated, EndReserved *int64
	Points                    []MemoryPoint // points by iteration, then in the order of [Point]
	Remarks                   []Remark
}

// Components are the bytes of the components at the peak.
type Components struct {
	Parameters, Gradients, HookActivations, NormSamples, ClipTemporaries, OptimizerState int64
}

// MemoryPoint is the state of memory at one point of the training loop.
type MemoryPoint struct {
	Point     Point
	Iteration int // number of the step after warm-up, from 0; -1 = the point belongs to no step
	// Highest is the highest allocated in recorded steps since the point after warm-up. For points before that, it is
	// the highest since the start.
	Allocated, Reserved, Highest *int64
	// TimeNS is the time in ns since the epoch at which the process was at the point. For a process on a phantom GPU,
	// TimeNS only orders the points and says nothing about a GPU's times.
	TimeNS *int64
}

// A Point names the place in the training loop of a [MemoryPoint].
type Point int

// The points, in the order of a loop.
const (
	ModelLoaded Point = iota
	WrappedWithDP
	OptimizerCreated
	AfterWarmup
	BeforeForward
	AfterForward
	AfterBackward
	AfterStep
)

// Profile makes the component profile of a run.
func Profile(in schemas.Tables) ComponentProfile {
	s := Summarize(in)
	c := ComponentProfile{Identity: s.Identity, PeakBytes: s.PeakBytes, Points: []MemoryPoint{}, Remarks: s.Remarks}
	if s.Status != schemas.StatusOK {
		c.PeakBytes = nil // the bytes until the run's early end do not show what the run needs
	} else if s.BrokenDown() {
		d := s.Main()
		of := func(name schemas.Category) int64 { return d.Category(name).Bytes }
		c.Components = &Components{Parameters: of(schemas.Parameters), Gradients: of(schemas.Gradients),
			HookActivations: of(schemas.HookActivations),
			NormSamples:     of(schemas.NormSamples), ClipTemporaries: of(schemas.ClipTemporaries),
			OptimizerState: of(schemas.OptimizerState)}
		held := d.Category(schemas.HookActivations).HeldBytes
		c.HeldByHooks = &held
	}
	t := timing.Of(&in)
	if len(t.Steps) > 0 {
		var sum int64
		for i := range t.Steps {
			sum += t.NS(&t.Steps[i])
		}
		mean := float64(sum) / 1e6 / float64(len(t.Steps))
		c.MeanStepMS = &mean
	}
	c.points(&in, &s)
	return c
}

// A walk collects the points of the training loop on one device.
type walk struct {
	in     *schemas.Tables
	p      identity.Place
	traced bool // the recording has events of the device
	// recorded is true if the phases of the current step have bytes. Phases of later steps in a long run have none.
	recorded bool
	phases   []*schemas.Phase
	out      []MemoryPoint
	resets   int64 // event from which on Highest counts
}

// points fills in the points of the main device.
func (c *ComponentProfile) points(in *schemas.Tables, s *Summary) {
	device, rank := s.Device()
	w := walk{in: in}
	for _, p := range identity.Places(in) {
		if p.String() == device && p.Rank == rank {
			w.p = p
		}
	}
	if v := identity.Verdict(in, w.p); v != nil {
		w.traced = v.Events > 0
		w.recorded = w.traced
	}
	for i := range in.Phases {
		if f := &in.Phases[i]; f.Rank == w.p.Rank && f.Device == w.p.Device {
			w.phases = append(w.phases, f)
		}
	}
	slices.SortStableFunc(w.phases, func(a, b *schemas.Phase) int { return cmp.Compare(a.BeginK, b.BeginK) })
	w.setup(c.Method())
	var steps []*schemas.Step
	for i := range in.Steps {
		if t := &in.Steps[i]; t.Rank == w.p.Rank && t.Device == w.p.Device {
			steps = append(steps, t)
		}
	}
	slices.SortStableFunc(steps, func(a, b *schemas.Step) int { return cmp.Compare(a.Step, b.Step) })
	iteration := 0
	for i, t := range steps {
		if t.Warmup {
			if i+1 == len(steps) || !steps[i+1].Warmup {
				w.endOf(AfterWarmup, -1, t)
				w.resets = t.EndSeq
			}
			continue
		}
		w.step(t, iteration)
		iteration++
	}
	if len(steps) > 0 {
		last := steps[len(steps)-1]
		c.EndAllocated, c.EndReserved = last.AllocatedEnd, last.ReservedEnd
	}
	c.Points = append(c.Points, w.out...)
}

// setup adds the points before the first step. Plain training has no point WrappedWithDP.
func (w *walk) setup(method string) {
	last := func(names ...string) (found *schemas.Phase) {
		for _, f := range w.phases {
			if f.Step < 0 && slices.Contains(names, f.Phase) {
				found = f
			}
		}
		return found
	}
	w.after(ModelLoaded, -1, last(schemas.PhaseSetupModel))
	if method != identity.MethodVanilla {
		w.after(WrappedWithDP, -1, last(schemas.PhaseSetupWrap, schemas.PhaseSetupPrivacy))
	}
	w.after(OptimizerCreated, -1, last(schemas.PhaseSetupOptimizer))
}

// step adds the points of one iteration. With several microbatches, the iteration begins with the first forward and
// ends with the last.
func (w *walk) step(t *schemas.Step, iteration int) {
	w.recorded = w.traced && t.Recorded
	var first, forward, backward, update *schemas.Phase
	for _, f := range w.phases {
		if f.Step != t.Step {
			continue
		}
		switch {
		case f.Phase == schemas.PhaseForward:
			if first == nil {
				first = f
			}
			forward = f
		case f.Phase == schemas.PhaseBackward || strings.HasPrefix(f.Phase, schemas.PhaseBackward+"."):
			backward = f
		case f.Phase == schemas.PhaseOptimizer:
			update = f
		}
	}
	if first == nil {
		w.out = append(w.out, MemoryPoint{Point: BeforeForward, Iteration: iteration})
	} else {
		w.add(BeforeForward, iteration, first.BeginSeq, schemas.OrZero(first.AllocatedBegin), first.StartNS)
	}
	w.after(AfterForward, iteration, forward)
	w.after(AfterBackward, iteration, backward)
	if w.recorded && update != nil {
		w.after(AfterStep, iteration, update)
	} else {
		w.endOf(AfterStep, iteration, t)
	}
}

// after adds the point at a phase's end. If f is nil, after adds a point whose values are unknown.
func (w *walk) after(p Point, iteration int, f *schemas.Phase) {
	if f == nil {
		w.out = append(w.out, MemoryPoint{Point: p, Iteration: iteration})
		return
	}
	w.add(p, iteration, f.EndSeq, schemas.OrZero(f.AllocatedEnd), f.EndNS)
}

// endOf adds the point at a step's end. torch's own counters give the step's bytes even if no event was recorded.
func (w *walk) endOf(p Point, iteration int, t *schemas.Step) {
	if w.traced && t.Recorded {
		w.add(p, iteration, t.EndSeq, schemas.OrZero(t.AllocatedEnd), t.EndNS)
		return
	}
	m := MemoryPoint{Point: p, Iteration: iteration, Allocated: t.AllocatedEnd, Reserved: t.ReservedEnd,
		TimeNS: identity.Known(t.EndNS)}
	if p == AfterWarmup { // nothing was recorded since
		m.Highest = m.Allocated
	}
	w.out = append(w.out, m)
}

func (w *walk) add(p Point, iteration int, seq, allocated, ns int64) {
	m := MemoryPoint{Point: p, Iteration: iteration, TimeNS: identity.Known(ns)}
	if w.recorded {
		m.Allocated, m.Reserved = &allocated, memory.ReservedAt(w.in, w.p, seq)
		if p == AfterWarmup { // the tools reset torch's counter at this point
			m.Highest = &allocated
		} else {
			highest := max(allocated, w.highest(seq))
			m.Highest = &highest
		}
	}
	w.out = append(w.out, m)
}

// highest returns the highest allocated over the phases that lie entirely between the reset and an event.
func (w *walk) highest(seq int64) (bytes int64) {
	for _, f := range w.phases {
		if f.BeginSeq >= w.resets && f.EndSeq <= seq {
			bytes = max(bytes, schemas.OrZero(f.PeakBytes), schemas.OrZero(f.AllocatedBegin))
		}
	}
	return bytes
}
