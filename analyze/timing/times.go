package timing

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// StepTime is one step of the whole run: the slowest rank's time, and the samples of all ranks together.
type StepTime struct {
	step                 int64
	wallNS, gpuNS        int64 // times of the step in ns; gpuNS 0 = unknown for some rank
	Samples, Tokens      int64 // numbers that the script reported; 0 = not reported
	startNS, endNS       int64
	bare, warmup         bool
	unphased             bool // the step had no phases on some rank
	gpuKnown             bool
	perRank, perRankToks map[int32]int64
}

// Times has a run's timed steps.
type Times struct {
	Steps   []StepTime // steps from which figures come, in order
	all     []StepTime
	Clock   string
	Remarks []Remark
}

// Of returns the steps from which published times come: steps that are neither warm-up nor instrumented. Predicted runs
// have no timed steps. Imported runs have the steps that their file has.
func Of(in *schemas.Tables) Times {
	var t Times
	if in.Manifest.Source == schemas.Predicted {
		return t
	}
	byStep := map[int64]*StepTime{}
	for i := range in.Steps {
		s := &in.Steps[i]
		st := byStep[s.Step]
		if st == nil {
			st = &StepTime{step: s.Step, bare: true, gpuKnown: true, startNS: s.StartNS, endNS: s.EndNS,
				perRank: map[int32]int64{}, perRankToks: map[int32]int64{}}
			byStep[s.Step] = st
		}
		st.bare = st.bare && !s.Instrumented
		st.warmup = st.warmup || s.Warmup
		st.unphased = st.unphased || s.Unphased
		st.gpuKnown = st.gpuKnown && s.GPUNS > 0
		st.wallNS, st.gpuNS = max(st.wallNS, s.WallNS), max(st.gpuNS, s.GPUNS)
		st.startNS, st.endNS = min(st.startNS, s.StartNS), max(st.endNS, s.EndNS)
		// A step has one row for each device, so each rank's samples count once.
		st.perRank[s.Rank] = max(st.perRank[s.Rank], s.Samples)
		st.perRankToks[s.Rank] = max(st.perRankToks[s.Rank], s.Tokens)
	}
	captured := map[int64]bool{}
	for s := range schemas.Captured(in.Phases) {
		captured[s.Step] = true
	}
	instrumented, without := []StepTime{}, []int64{}
	for _, st := range byStep {
		for r := range st.perRank {
			st.Samples += st.perRank[r]
			st.Tokens += st.perRankToks[r]
		}
		t.all = append(t.all, *st)
		switch {
		case st.warmup:
		case st.unphased && !st.gpuKnown: // the only interval of the step contains a drain, at a failure
		case captured[st.step]:
			without = append(without, st.step)
		case st.bare:
			t.Steps = append(t.Steps, *st)
		default:
			instrumented = append(instrumented, *st)
		}
	}
	if len(t.Steps) == 0 && len(instrumented) > 0 {
		t.Steps = instrumented
		t.Remarks = append(t.Remarks, Remark{Kind: RemarkOnlyInstrumented})
	}
	slices.Sort(without)
	t.Remarks = append(t.Remarks, capturedRemarks(without)...)
	byNumber := func(a, b StepTime) int { return cmp.Compare(a.step, b.step) }
	slices.SortFunc(t.Steps, byNumber)
	slices.SortFunc(t.all, byNumber)
	t.Clock = ClockGPU
	for _, s := range t.Steps {
		if !s.gpuKnown {
			t.Clock = ClockWall
		}
	}
	return t
}

func (t *Times) NS(s *StepTime) int64 {
	if t.Clock == ClockGPU {
		return s.gpuNS
	}
	return s.wallNS
}

// Step summarises the times of the timed steps; nil if there are none.
func (t *Times) Step() *Interval {
	var ns []int64
	for i := range t.Steps {
		ns = append(ns, t.NS(&t.Steps[i]))
	}
	return IntervalOver(ns, t.Clock)
}

// Rate returns count(step) per second over all timed steps, or nil if a step did not report it.
func (t *Times) Rate(count func(*StepTime) int64) *float64 {
	var sum, ns int64
	for i := range t.Steps {
		n := count(&t.Steps[i])
		if n == 0 {
			return nil
		}
		sum += n
		ns += t.NS(&t.Steps[i])
	}
	if ns == 0 {
		return nil
	}
	r := float64(sum) / (float64(ns) / 1e9)
	return &r
}

// Phases returns each phase's time per step, over the timed steps whose phases were marked. A part of a phase between
// two marks without a CUDA event (for example around a drain) has no GPU time, and lies outside the timed part of the
// step.
func (t *Times) Phases(in *schemas.Tables) map[string]PhaseTime {
	timed := map[int64]bool{}
	for i := range t.Steps {
		if s := &t.Steps[i]; !s.unphased {
			timed[s.step] = true
		}
	}
	// The table has one row for each device, and each row has the rank's time. So only the occurrences on one device
	// may be added.
	type key struct {
		identity.Place
		phase string
		step  int64
	}
	gpu, wall, seen := map[key]int64{}, map[key]int64{}, map[string]bool{}
	for i := range in.Phases {
		f := &in.Phases[i]
		if !timed[f.Step] {
			continue
		}
		k := key{identity.Place{Rank: f.Rank, Device: f.Device}, f.Phase, f.Step}
		gpu[k] += schemas.OrZero(f.GPUNS)
		wall[k] += f.EndNS - f.StartNS
		seen[f.Phase] = seen[f.Phase] || f.GPUNS != nil
	}
	// A phase's time is that of the slowest rank. A step without the phase counts as 0.
	slowest := func(by map[key]int64) map[string]map[int64]int64 {
		m := map[string]map[int64]int64{}
		for k, ns := range by {
			if m[k.phase] == nil {
				m[k.phase] = map[int64]int64{}
			}
			m[k.phase][k.step] = max(m[k.phase][k.step], ns)
		}
		return m
	}
	series := func(m map[int64]int64) []int64 {
		ns := slices.Collect(maps.Values(m))
		return append(ns, make([]int64, len(timed)-len(ns))...)
	}
	out := map[string]PhaseTime{}
	gpuBy, wallBy := slowest(gpu), slowest(wall)
	for phase := range wallBy {
		pt := PhaseTime{Clock: t.Clock, Wall: IntervalOver(series(wallBy[phase]), ClockWall)}
		if seen[phase] {
			pt.GPU = IntervalOver(series(gpuBy[phase]), ClockGPU)
		}
		out[phase] = pt
	}
	return out
}

type PhaseTime struct {
	Clock     string // clock of the run's step times
	GPU, Wall *Interval
}

// Known returns the phase's time by the clock of the run's steps. A column that mixes GPU times and wall times could
// not be summed.
func (p PhaseTime) Known() *Interval {
	if p.Clock == ClockGPU {
		return p.GPU
	}
	return p.Wall
}
