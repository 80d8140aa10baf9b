package compare

import (
	"cmp"
	"slices"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/repeats"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// A Cell is one experiment of a study with all its repeats: a row of a table or a bar of a figure. A Cell's Summary
// comes from the repeat with the median peak and shows that repeat's breakdown. Times, rates and energy are medians
// over all repeats.
type Cell struct {
	analyze.Summary
	Label  string
	RunIDs []string // ids of all repeats, in the study's order
	// Good is how many repeats ended well. The cell's figures are taken over these repeats, or over all repeats if none
	// ended well.
	Good int
	// PeakLow is the lowest peak among the repeats that Good describes, and PeakHigh the highest. In PeakHigh a bounded
	// peak counts with its upper bound. PeakLow and PeakHigh are nil if no repeat has a peak.
	PeakLow, PeakHigh *int64
	// Baseline is the cell to compare with: the baseline of the same parameters, or the run that the user named.
	// Baseline is nil if there is no such cell.
	Baseline *Cell
	Overhead *OverheadRun // nil if the study has no baseline
	Remarks  []Remark     // on the cell's runs and their differences
}

// IsBaseline reports whether this cell is its own baseline.
func (c *Cell) IsBaseline() bool { return c.Baseline != nil && c.Baseline.RunID == c.RunID }

// Cells groups runs by experiment, in the order of each experiment's first run.
func Cells(runs []analyze.Summary) []Cell {
	all := make([]*analyze.Summary, len(runs))
	for i := range runs {
		all[i] = &runs[i]
	}
	groups := repeats.Experiments(all)
	cells := make([]Cell, len(groups))
	ids, started := make([]identity.Identity, len(groups)), make([]time.Time, len(groups))
	for i, group := range groups {
		cells[i] = NewCell(group)
		ids[i], started[i] = cells[i].Identity, group[0].Started
	}
	for i, label := range identity.Labels(ids, started) {
		cells[i].Label = label
	}
	return cells
}

// NewCell makes one cell of the repeats of one experiment.
func NewCell(runs []*analyze.Summary) Cell {
	var c Cell
	var good []*analyze.Summary
	endings := map[string]int{}
	for _, r := range runs {
		c.RunIDs = append(c.RunIDs, r.RunID)
		if r.Status == schemas.StatusOK {
			good = append(good, r)
		} else {
			endings[r.Status]++
		}
	}
	c.Good = len(good)
	if len(good) == 0 {
		good = runs
	}
	c.Summary = *middleRun(good)
	c.Remarks = mergeRemarks(likeFirst(good, c.Bare()))
	c.Throttled = timing.Throttle{}
	highest, bounded := int64(0), (*analyze.Summary)(nil)
	for _, r := range good {
		c.Throttled.Add(r.Throttled)
		if r.PeakBytes == nil {
			continue
		}
		if c.PeakLow == nil || *r.PeakBytes < *c.PeakLow {
			c.PeakLow = r.PeakBytes
		}
		highest = max(highest, *r.PeakBytes)
		if high := r.PeakAtMost(); c.PeakHigh == nil || *high > *c.PeakHigh {
			c.PeakHigh = high
		}
		if bounded == nil && r.Bounded() {
			bounded = r
		}
	}
	if bounded != nil && !c.Bounded() { // the bounds of another repeat reach into the cell's range
		c.Identity.PeakLowBytes, c.Identity.PeakHighBytes = c.PeakLow, c.PeakHigh
	}
	if len(runs) == 1 {
		return c
	}
	if len(good) > 1 {
		c.repeatTimes(good)
		c.Remarks = append(c.Remarks, poolingRemarks(good)...)
	}
	if c.PeakLow != nil && *c.PeakLow != highest {
		c.Remarks = append(c.Remarks, Remark{Kind: RemarkPeaksDiffer, N: len(good), Low: *c.PeakLow, High: highest})
	}
	if c.Good > 0 && c.Good < len(runs) {
		bad := Remark{Kind: RemarkBadRepeats, N: len(runs) - c.Good, Of: len(runs)}
		for _, s := range identity.SortedKeys(endings) {
			bad.Endings = append(bad.Endings, Ending{s, endings[s]})
		}
		c.Remarks = append(c.Remarks, bad)
	}
	return c
}

// middleRun returns the run with the median peak, or of two middle runs the one with the lower peak. Runs with a
// breakdown come before runs without.
func middleRun(runs []*analyze.Summary) *analyze.Summary {
	keep := func(test func(*analyze.Summary) bool) {
		if some := slices.Collect(func(yield func(*analyze.Summary) bool) {
			for _, r := range runs {
				if test(r) && !yield(r) {
					return
				}
			}
		}); len(some) > 0 {
			runs = some
		}
	}
	keep(func(r *analyze.Summary) bool { return r.PeakBytes != nil })
	keep((*analyze.Summary).BrokenDown)
	keep(func(r *analyze.Summary) bool { return !r.Bare() })
	if runs[0].PeakBytes == nil {
		return runs[0]
	}
	sorted := slices.SortedStableFunc(slices.Values(runs), func(a, b *analyze.Summary) int {
		return cmp.Compare(*a.PeakBytes, *b.PeakBytes)
	})
	return sorted[(len(sorted)-1)/2]
}

// repeatTimes replaces the times of the cell's single run by medians over all repeats.
func (c *Cell) repeatTimes(runs []*analyze.Summary) {
	median := func(of func(*analyze.Summary) *float64) *float64 {
		if v := timing.Summarise(Collect(runs, of), timing.OverRepeats, ""); v != nil {
			return &v.Median
		}
		return nil
	}
	c.JoulesPerStep = median(func(r *analyze.Summary) *float64 { return r.JoulesPerStep })
	c.JoulesPerSample = median(func(r *analyze.Summary) *float64 { return r.JoulesPerSample })
	if c.JoulesPerStep != nil {
		c.NoEnergy = ""
	}
	if c.StepMS == nil {
		return
	}
	// GPU times and wall times have no common median, and neither have rates computed from these times.
	clock := c.StepMS.Clock
	for _, r := range runs {
		if r.StepMS != nil && r.StepMS.Clock == timing.ClockGPU {
			clock = timing.ClockGPU
		}
	}
	alike := slices.DeleteFunc(slices.Clone(runs), func(r *analyze.Summary) bool {
		return r.StepMS == nil || r.StepMS.Clock != clock
	})
	if n := len(runs) - len(alike); n > 0 {
		c.Remarks = append(c.Remarks, Remark{Kind: RemarkClocks, N: len(alike), Of: len(runs), What: clock})
	}
	runs = alike
	c.SamplesPerS = median(func(r *analyze.Summary) *float64 { return r.SamplesPerS })
	c.TokensPerS = median(func(r *analyze.Summary) *float64 { return r.TokensPerS })
	c.StepMS = timing.Summarise(Collect(runs, func(r *analyze.Summary) *float64 { return &r.StepMS.Median }),
		timing.OverRepeats, clock)
	c.PhaseTimes = PhaseTimesOver(runs, clock, timing.Summarise)
}

// Collect returns the values that of returns for runs, without nil values.
func Collect(runs []*analyze.Summary, of func(*analyze.Summary) *float64) []float64 {
	var out []float64
	for _, r := range runs {
		if v := of(r); v != nil {
			out = append(out, *v)
		}
	}
	return out
}

// likeFirst leaves out bare repeats of an experiment that was recorded in full. Bare repeats have no breakdown by
// design.
func likeFirst(runs []*analyze.Summary, bare bool) []*analyze.Summary {
	return slices.DeleteFunc(slices.Clone(runs), func(r *analyze.Summary) bool { return r.Bare() && !bare })
}

// LendEnergy gives energy to runs whose timed steps are too short for the GPU's energy counter. The energy comes from a
// bare run of the same experiment in others. Within a study, bare runs pass energy to full runs in the same way.
func LendEnergy(runs, others []analyze.Summary) {
	bare := map[string]*Cell{}
	cells := Cells(others)
	for i := range cells {
		if c := &cells[i]; c.Bare() && c.Good > 0 && c.JoulesPerStep != nil {
			bare[c.experiment()] = c
		}
	}
	for i := range runs {
		r := &runs[i]
		if c := bare[identity.TwinKey(&r.Identity, r.Key, r.Script, r.RunFacts)]; c != nil && wantsEnergy(r) {
			borrowEnergy(r, &c.Summary)
			r.EnergyLent = true
		}
	}
}

// wantsEnergy reports whether the run ended well and has no energy, although its GPU was sampled.
func wantsEnergy(s *analyze.Summary) bool {
	return s.JoulesPerStep == nil && s.NoEnergy != "" && s.Status == schemas.StatusOK && !s.Bare()
}

func borrowEnergy(s *analyze.Summary, bare *analyze.Summary) {
	s.JoulesPerStep, s.JoulesPerSample, s.NoEnergy = bare.JoulesPerStep, bare.JoulesPerSample, ""
}

// withoutTwins removes the bare runs of experiments that were also recorded in full, and names them. A bare run appears
// in the table of costs, where it shows what recording changes. In a figure a bare run would only be a second bar
// beside its twin's. Energy needs an unbroken series of uninstrumented steps. If only the bare run has such a series,
// withoutTwins passes its energy to the twin.
func withoutTwins(cells []Cell) (kept []Cell, left []string) {
	full := map[string]*Cell{}
	for i := range cells {
		if c := &cells[i]; !c.Bare() && c.Good > 0 { // if the full run failed, only the bare run is left
			full[c.experiment()] = c
		}
	}
	for i := range cells {
		c := &cells[i]
		twin := full[c.experiment()]
		if !c.Bare() || twin == nil {
			continue
		}
		left = append(left, c.Label)
		if twin.JoulesPerStep == nil && c.JoulesPerStep != nil && c.Good > 0 {
			borrowEnergy(&twin.Summary, &c.Summary)
			twin.Remarks = append(twin.Remarks, Remark{Kind: RemarkEnergyLent})
		}
	}
	for i := range cells {
		if c := &cells[i]; !c.Bare() || full[c.experiment()] == nil {
			kept = append(kept, *c)
		}
	}
	return kept, left
}

// experiment returns a key that is equal for a bare run and its full twin.
func (c *Cell) experiment() string { return identity.TwinKey(&c.Identity, c.Key, c.Script, c.RunFacts) }

// StepBy returns the run's median step time as the given clock measured it; nil if that clock did not measure the run's
// steps.
func StepBy(s *analyze.Summary, clock string) *float64 {
	if clock == "" || s.StepMS == nil || s.StepMS.Clock != clock {
		return nil
	}
	return &s.StepMS.Median
}

// PhaseTimesOver returns the times of all phases that some repeat has. summary reduces a phase's medians over the
// repeats. In a repeat without the phase, the phase counts as 0.
func PhaseTimesOver(repeats []*analyze.Summary, clock string, summary func(values []float64, over,
	clock string) *timing.Interval) map[string]timing.PhaseTime {
	phases := map[string]timing.PhaseTime{}
	for _, r := range repeats {
		for name := range r.PhaseTimes {
			phases[name] = timing.PhaseTime{Clock: clock}
		}
	}
	for name := range phases {
		over := func(of func(timing.PhaseTime) *timing.Interval, clock string) *timing.Interval {
			known := false
			medians := Collect(repeats, func(r *analyze.Summary) *float64 {
				t, has := r.PhaseTimes[name]
				v := of(t)
				known = known || v != nil
				if has && v == nil {
					return nil
				}
				return new(v.MedianOrZero())
			})
			if !known {
				return nil
			}
			return summary(medians, timing.OverRepeats, clock)
		}
		phases[name] = timing.PhaseTime{Clock: clock, GPU: over(func(t timing.PhaseTime) *timing.Interval {
			return t.GPU
		}, timing.ClockGPU),
			Wall: over(func(t timing.PhaseTime) *timing.Interval { return t.Wall }, timing.ClockWall)}
	}
	return phases
}
