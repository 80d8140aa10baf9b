package timing

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// stepKinds returns the completed steps of a rank after warm-up with their GPU times: the bare ones and the
// instrumented ones.
func stepKinds(in *schemas.Tables, rank int32) (bare, instrumented map[int64]int64) {
	bare, instrumented = map[int64]int64{}, map[int64]int64{}
	captured := schemas.Captured(in.Phases)
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Rank != rank || s.Warmup || s.GPUNS <= 0 || captured[schemas.RankStep{Rank: rank, Step: s.Step}] {
			continue
		}
		if s.Instrumented {
			instrumented[s.Step] = s.GPUNS
		} else {
			bare[s.Step] = s.GPUNS
		}
	}
	return bare, instrumented
}

// capturedSteps returns, in order, a rank's steps after warm-up that a CUDA graph captured, so that they did not run.
func capturedSteps(in *schemas.Tables, rank int32) (steps []int64) {
	captured := schemas.Captured(in.Phases)
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Rank == rank && !s.Warmup && captured[schemas.RankStep{Rank: rank, Step: s.Step}] &&
			!slices.Contains(steps, s.Step) {
			steps = append(steps, s.Step)
		}
	}
	slices.Sort(steps)
	return steps
}

// ScaledTimes divides one rank's bare step by module and phase, before modules are grouped into rows. The
// RankModuleTime of ScaledTimes has no rows yet.
type ScaledTimes struct {
	RankModuleTime
	Shares []Share // scaled shares, in the order of phases; module 0 is outside all modules
	Idling *Remark // a [RemarkIdling] if the GPU waited in instrumented steps, else nil
}

func ScaleTimes(in *schemas.Tables, rank int32, times []schemas.ModuleTime) (out ScaledTimes, remarks []Remark) {
	bare, instrumented := stepKinds(in, rank)
	phased := phased(in, rank, bare)
	out.RankModuleTime = RankModuleTime{Rank: rank, BareSteps: len(phased), InstrumentedSteps: len(instrumented),
		Phases: []ModuleTimePhase{}, Rows: []ModuleTimeRow{}}
	remarks = capturedRemarks(capturedSteps(in, rank))
	if len(instrumented) == 0 {
		return out, append(remarks, Remark{Kind: RemarkNoInstrumented})
	}
	shares := newShares(times, instrumented)
	out.InstrumentedStepMS = new(middleMS(slices.Collect(maps.Values(instrumented))))
	medians := barePhases(in, rank, phased)
	if len(phased) == 0 {
		remarks = append(remarks, Remark{Kind: RemarkUnscaled})
	}
	scale := shares.Scale(medians)
	within := 0.0
	for _, p := range shares.order {
		row := ModuleTimePhase{Phase: p, InstrumentedMS: shares.Phase[p], Scale: scale(p)}
		if ms, ok := medians[p]; ok {
			row.BareMS = &ms
		}
		for _, s := range shares.rows {
			if s.Phase != p {
				continue
			}
			if s.MS *= row.Scale; s.Module == 0 {
				row.OutsideMS += s.MS
			} else {
				within += s.MS
			}
			out.Shares = append(out.Shares, s)
		}
		out.OutsideMS += row.OutsideMS
		out.Phases = append(out.Phases, row)
	}
	out.StepMS = out.InstrumentedStepMS
	if len(phased) > 0 {
		out.StepMS = new(middleMS(slices.Collect(maps.Values(bare))))
	}
	out.ResidueMS = new(*out.StepMS - (out.OutsideMS + within))
	if out.Idling = out.idling(); out.Idling != nil {
		remarks = append(remarks, *out.Idling)
	}
	return out, remarks
}

// mostWaiting is how much longer instrumented steps may take than bare steps, as a part of the bare steps' time, before
// a remark warns about the modules' shares.
const mostWaiting = 0.1

// idling returns a remark if instrumented steps take much longer than bare steps, because times between CUDA events
// then include idle time of the GPU. idling returns nil otherwise.
func (s *ScaledTimes) idling() *Remark {
	if s.BareSteps == 0 || *s.StepMS <= 0 || *s.InstrumentedStepMS <= (1+mostWaiting)**s.StepMS {
		return nil
	}
	return &Remark{Kind: RemarkIdling, StepMS: *s.StepMS, InstrumentedMS: *s.InstrumentedStepMS}
}

func middleMS(ns []int64) float64 {
	v := make([]float64, len(ns))
	for i, n := range ns {
		v[i] = float64(n) / 1e6
	}
	slices.Sort(v)
	return Middle(v)
}

// phased returns those of the given steps whose phases were marked.
func phased(in *schemas.Tables, rank int32, steps map[int64]int64) map[int64]int64 {
	out := maps.Clone(steps)
	for i := range in.Steps {
		if s := &in.Steps[i]; s.Rank == rank && s.Unphased {
			delete(out, s.Step)
		}
	}
	return out
}

// barePhases returns the median GPU time of each phase in bare steps, in ms. A step without the phase counts as 0.
func barePhases(in *schemas.Tables, rank int32, bare map[int64]int64) map[string]float64 {
	by := map[string]map[int64]int64{}
	device, known := int32(0), false
	for i := range in.Phases {
		f := &in.Phases[i]
		// The table has a row for each device, and each row has the rank's time, so one device is enough.
		if _, ok := bare[f.Step]; !ok || f.Rank != rank || known && f.Device != device {
			continue
		}
		device, known = f.Device, true
		if by[f.Phase] == nil {
			by[f.Phase] = map[int64]int64{}
		}
		by[f.Phase][f.Step] += schemas.OrZero(f.GPUNS)
	}
	out := map[string]float64{}
	for phase, steps := range by {
		ns := append(slices.Collect(maps.Values(steps)), make([]int64, len(bare)-len(steps))...)
		if ms := middleMS(ns); ms > 0 {
			out[phase] = ms
		}
	}
	return out
}

// onceOf is the number of instrumented steps from which on a module's time is ignored if only one of the steps has it.
const onceOf = 4

// Share is one module's median time in one phase of an instrumented step.
type Share struct {
	Phase  string
	Module int64
	Hook   bool
	MS     float64
}

type Shares struct {
	rows  []Share
	Phase map[string]float64 // sums of rows, by phase
	order []string           // names of phases, in the order in which they first came
}

// newShares takes, for each module and phase, the median time over the steps that have a time. So one step in which a
// module waited, for example for a kernel to be loaded, does not decide the module's share. For modules that take
// turns, as experts do, the median is scaled by the share of steps that have them, since medians over all steps would
// be zero. A time that only one of several steps has may be a wait, and is dropped.
func newShares(times []schemas.ModuleTime, steps map[int64]int64) *Shares {
	type key struct {
		phase  string
		module int64
		hook   bool
	}
	ns := map[key]map[int64]int64{}
	s := &Shares{Phase: map[string]float64{}}
	for i := range times {
		t := &times[i]
		if _, ok := steps[t.Step]; !ok {
			continue
		}
		k := key{t.Phase, t.Module, t.DPHook}
		if ns[k] == nil {
			ns[k] = map[int64]int64{}
		}
		ns[k][t.Step] += t.GPUNS
		if !slices.Contains(s.order, t.Phase) {
			s.order = append(s.order, t.Phase)
		}
	}
	for k, by := range ns {
		ms := 0.0
		if len(by) > 1 || len(steps) < onceOf {
			ms = middleMS(slices.Collect(maps.Values(by))) * float64(len(by)) / float64(len(steps))
		}
		s.rows = append(s.rows, Share{k.phase, k.module, k.hook, ms})
	}
	slices.SortFunc(s.rows, func(a, b Share) int { // sorted: maps have no order, and sums of floats depend on it
		return cmp.Or(cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Module, b.Module), schemas.CompareDPHook(a.Hook,
			b.Hook))
	})
	for _, r := range s.rows {
		s.Phase[r.Phase] += r.MS
	}
	return s
}

// Scale returns a function that gives, for a phase, the factor from its time in instrumented steps to its time in bare
// steps. Recompute is timed separately in instrumented steps only. In bare steps it counts as backward, so recompute
// and backward have the same factor.
func (s *Shares) Scale(bare map[string]float64) func(phase string) float64 {
	family := func(p string) string {
		switch p {
		case schemas.PhaseBackward, schemas.PhaseBackwardNorm, schemas.PhaseBackwardGrad, schemas.PhaseRecompute:
			if s.Phase[schemas.PhaseRecompute] > 0 && bare[schemas.PhaseRecompute] == 0 {
				return schemas.PhaseBackward
			}
		}
		return p
	}
	from, to := map[string]float64{}, map[string]float64{}
	for _, p := range slices.Sorted(maps.Keys(s.Phase)) {
		from[family(p)] += s.Phase[p]
	}
	for _, p := range slices.Sorted(maps.Keys(bare)) {
		to[family(p)] += bare[p]
	}
	return func(p string) float64 {
		switch f := family(p); {
		case len(bare) == 0:
			return 1
		case from[f] == 0:
			return 0
		default:
			return to[f] / from[f]
		}
	}
}
