package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// A Cell is one experiment of a study with all its repeats: what a table has a row of and a figure a bar. Its Summary
// is that of the repeat with the median peak, whose breakdown it shows, with times, rates and energy over all repeats.
type Cell struct {
	Summary
	Label  string
	RunIDs []string // of all repeats, in the study's order
	// Good is how many repeats ended well; figures are over these, or over all where there is none.
	Good int
	// PeakLow and PeakHigh are the lowest and the highest peak of those; nil without any.
	PeakLow, PeakHigh *int64
	// Baseline is what the cell is compared with, nil without any: one cell for all that were recorded with the same
	// parameters, or the run that somebody named.
	Baseline *Cell
	Overhead *OverheadRun // nil without a baseline
}

// IsBaseline reports whether others are compared with the cell.
func (c *Cell) IsBaseline() bool { return c.Baseline != nil && c.Baseline.RunID == c.RunID }

// content tells experiments apart: what a suite hashed, else name, parameters and command; and what the run was made
// on. Without a suite and without a method it is the run: nobody knows what a script did the second time.
func (s *Summary) content() string {
	key := s.Key
	switch {
	case key != "":
	case s.Method() != "":
		key = s.Name + "\x00" + commandText(s.command)
	default:
		return s.RunID
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\x00%s", key, s.Source)
	if s.Key == "" { // a suite's key says what was asked for; further repetitions may be bare to save disk
		fmt.Fprintf(&b, "\x00%v", s.Bare())
	}
	for _, f := range s.facts {
		fmt.Fprintf(&b, "\x00%s=%s%s", f.What, f.Value, f.whole)
	}
	return b.String()
}

// Cells groups runs by experiment, in the order in which each first came.
func Cells(runs []Summary) []Cell {
	groups := map[string][]*Summary{}
	var order []string
	for i := range runs {
		k := runs[i].content()
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], &runs[i])
	}
	cells := make([]Cell, len(order))
	ids, started := make([]Identity, len(order)), make([]time.Time, len(order))
	for i, k := range order {
		cells[i] = newCell(groups[k])
		ids[i], started[i] = cells[i].Identity, groups[k][0].Started
	}
	for i, label := range Labels(ids, started) {
		cells[i].Label = label
	}
	return cells
}

// newCell reduces the repeats of one experiment.
func newCell(runs []*Summary) Cell {
	var c Cell
	var good []*Summary
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
	c.Warnings = mergeWarnings(likeFirst(good, c.Bare()))
	c.throttled = throttle{}
	for _, r := range good {
		c.throttled.add(r.throttled)
		if r.PeakBytes == nil {
			continue
		}
		if c.PeakLow == nil || *r.PeakBytes < *c.PeakLow {
			c.PeakLow = r.PeakBytes
		}
		if c.PeakHigh == nil || *r.PeakBytes > *c.PeakHigh {
			c.PeakHigh = r.PeakBytes
		}
	}
	if len(runs) == 1 {
		return c
	}
	if len(good) > 1 {
		c.repeatTimes(good)
	}
	if c.PeakLow != nil && *c.PeakLow != *c.PeakHigh {
		c.Warnings = append(c.Warnings, fmt.Sprintf("the peaks of %d repeats differ: %s to %s; what is broken down "+
			"is the median one", len(good), mib(*c.PeakLow), mib(*c.PeakHigh)))
	}
	if c.Good > 0 && c.Good < len(runs) {
		var how []string
		for _, s := range sortedKeys(endings) {
			how = append(how, fmt.Sprintf("%d %s", endings[s], s))
		}
		c.Warnings = append(c.Warnings, fmt.Sprintf("%d of %d repeats did not end well (%s): figures are of the others",
			len(runs)-c.Good, len(runs), strings.Join(how, ", ")))
	}
	return c
}

// middleRun is the run with the median peak, the lower one of two; those that are broken down before those that are
// not.
func middleRun(runs []*Summary) *Summary {
	keep := func(test func(*Summary) bool) {
		if some := slices.Collect(func(yield func(*Summary) bool) {
			for _, r := range runs {
				if test(r) && !yield(r) {
					return
				}
			}
		}); len(some) > 0 {
			runs = some
		}
	}
	keep(func(r *Summary) bool { return r.PeakBytes != nil })
	keep((*Summary).BrokenDown)
	keep(func(r *Summary) bool { return !r.Bare() })
	if runs[0].PeakBytes == nil {
		return runs[0]
	}
	sorted := slices.SortedStableFunc(slices.Values(runs), func(a, b *Summary) int {
		return cmp.Compare(*a.PeakBytes, *b.PeakBytes)
	})
	return sorted[(len(sorted)-1)/2]
}

// repeatTimes puts medians over the repeats in the place of one run's.
func (c *Cell) repeatTimes(runs []*Summary) {
	median := func(of func(*Summary) *float64) *float64 {
		if v := summarise(collect(runs, of), OverRepeats, ""); v != nil {
			return &v.Median
		}
		return nil
	}
	c.JoulesPerStep = median(func(r *Summary) *float64 { return r.JoulesPerStep })
	c.JoulesPerSample = median(func(r *Summary) *float64 { return r.JoulesPerSample })
	if c.JoulesPerStep != nil {
		c.NoEnergy = ""
	}
	if c.StepMS == nil {
		return
	}
	// GPU time and wall time have no median, nor have rates by the one and by the other.
	clock := c.StepMS.Clock
	for _, r := range runs {
		if r.StepMS != nil && r.StepMS.Clock == ClockGPU {
			clock = ClockGPU
		}
	}
	alike := slices.DeleteFunc(slices.Clone(runs), func(r *Summary) bool {
		return r.StepMS == nil || r.StepMS.Clock != clock
	})
	if n := len(runs) - len(alike); n > 0 {
		c.Warnings = append(c.Warnings, fmt.Sprintf("times and rates are of %d of %d repeats: the others have none "+
			"by the same clock (%s)", len(alike), len(runs), clock))
	}
	runs = alike
	c.SamplesPerS = median(func(r *Summary) *float64 { return r.SamplesPerS })
	c.TokensPerS = median(func(r *Summary) *float64 { return r.TokensPerS })
	c.StepMS = summarise(collect(runs, func(r *Summary) *float64 { return &r.StepMS.Median }), OverRepeats, clock)
	c.phaseTimes = phaseTimesOver(runs, clock, summarise)
}

// collect gathers the values that runs have.
func collect(runs []*Summary, of func(*Summary) *float64) []float64 {
	var out []float64
	for _, r := range runs {
		if v := of(r); v != nil {
			out = append(out, *v)
		}
	}
	return out
}

// likeFirst leaves out bare repetitions of what is recorded in full: that they are not broken down is meant so.
func likeFirst(runs []*Summary, bare bool) []*Summary {
	return slices.DeleteFunc(slices.Clone(runs), func(r *Summary) bool { return r.Bare() && !bare })
}

// mergeWarnings lists each warning of the runs once.
func mergeWarnings(runs []*Summary) []string {
	out := []string{}
	for _, r := range runs {
		for _, w := range r.Warnings {
			if !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	return out
}

// LendEnergy gives runs whose timed steps are too short for the GPU's energy counter the energy of a bare run of the
// same experiment among others, as a study does with those that are in it.
func LendEnergy(runs, others []Summary) {
	bare := map[string]*Cell{}
	cells := Cells(others)
	for i := range cells {
		if c := &cells[i]; c.Bare() && c.Good > 0 && c.JoulesPerStep != nil {
			bare[c.experiment()] = c
		}
	}
	for i := range runs {
		r := &runs[i]
		if c := bare[twinKey(&r.Identity, r.Key, r.script, r.facts)]; c != nil && r.wantsEnergy() {
			r.Warnings = slices.Clone(r.Warnings)
			r.borrowEnergy(&c.Summary)
		}
	}
}

// wantsEnergy reports whether the run ended well without any energy, though its GPU was sampled.
func (s *Summary) wantsEnergy() bool {
	return s.JoulesPerStep == nil && s.NoEnergy != "" && s.Status == schemas.StatusOK && !s.Bare()
}

func (s *Summary) borrowEnergy(bare *Summary) {
	s.JoulesPerStep, s.JoulesPerSample, s.NoEnergy = bare.JoulesPerStep, bare.JoulesPerSample, ""
	s.Warnings = append(s.Warnings, "energy is that of the bare run of the same experiment")
}

// withoutTwins takes out the bare runs of experiments that are there in full, and names them. What a bare run is for,
// the proof that recording moves nothing, is the table of costs; beside its twin in a figure it is the same bar twice.
// Energy needs an unbroken series of uninstrumented steps, which only a bare run has: its twin is given it.
func withoutTwins(cells []Cell) (kept []Cell, left []string) {
	full := map[string]*Cell{}
	for i := range cells {
		if c := &cells[i]; !c.Bare() && c.Good > 0 { // beside one that failed, the bare run is all there is
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
			twin.borrowEnergy(&c.Summary)
		}
	}
	for i := range cells {
		if c := &cells[i]; !c.Bare() || full[c.experiment()] == nil {
			kept = append(kept, *c)
		}
	}
	return kept, left
}

// experiment is what a bare run and its twin have in common.
func (c *Cell) experiment() string { return twinKey(&c.Identity, c.Key, c.script, c.facts) }

// twinKey is what a bare run and its twin have in common: all but how many steps they took.
func twinKey(id *Identity, key, script string, facts []Fact) string {
	if id.Method() == "" && key == "" {
		return id.RunID
	}
	var b strings.Builder
	b.WriteString(id.Source)
	if id.Method() == "" {
		b.WriteString("\x00" + script + "\x00" + commandText(id.command))
	}
	for _, f := range facts {
		if f.What != "num_iter" && f.What != "warmup_iter" {
			fmt.Fprintf(&b, "\x00%s=%s%s", f.What, f.Value, f.whole)
		}
	}
	return b.String()
}
