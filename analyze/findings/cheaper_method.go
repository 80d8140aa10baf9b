package findings

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/clipping"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

const (
	cheaperPeakPercent = 2   // least percentage of the peak that another method saves with a step no longer
	cheaperTimePercent = 5   // least percentage of the step that another method saves with a peak no higher
	samePeakPercent    = 0.1 // largest percentage of the peak by which a peak counts as no higher
)

// dpMethods are the methods that all compute the same clipped and noised sum of gradients.
var dpMethods = append([]string{"loop", "dpsgd"}, clipping.OneLayer...)

// A Trial has all repeats of one method of an experiment that a store has, whether recorded or bare. A trial's figures
// are medians over its runs, since a comparison of single runs would depend on which repeats were picked.
type Trial struct {
	Run       *analyze.Summary // run that represents the trial: recorded rather than bare, closest to the median step
	Runs      int              // number of runs that the trial has
	PeakBytes int64
	AtMost    bool // PeakBytes is an upper bound, for another method than the run's
	// Step is the median over the runs; Low and High are the smallest and the largest. For a single run, Step is the
	// median over the run's timed steps, with their interval. Step is nil without times on the requested clock.
	Step *timing.Interval

	runs []*analyze.Summary
}

// CheaperMethodFacts are the facts of a [CheaperMethod] finding: the run's method, and the method that needs less
// memory or time.
type CheaperMethodFacts struct {
	Own, Best Trial
	Overlap   bool // the ranges of the two methods' steps overlap
}

// Methods compares a run with runs of other methods that avoid a finding.
type Methods struct {
	Own    Trial
	Lowest Trial // the method with the lowest peak, among methods that avoid the finding
	// Best is the method whose savings are stated: the one with the lowest peak, or the fastest if no peak is lower
	// than the run's; nil if no method is better.
	Best  *Trial
	Lower bool // the method's best peak is lower than the run's
}

// trialsOf returns the trial that a run belongs to, and the trials of the same experiment with other methods, in the
// order of the runs in all.
func trialsOf(s *analyze.Summary, all []analyze.Summary) (own Trial, others []Trial) {
	clock := ""
	if s.StepMS != nil {
		clock = s.StepMS.Clock
	}
	runs, order := map[string][]*analyze.Summary{}, []string{}
	mine := trialKey(s)
	runs[mine] = []*analyze.Summary{s}
	for i := range all {
		o := &all[i]
		key := trialKey(o)
		switch {
		case o.RunID == s.RunID || o.Status != schemas.StatusOK || o.PeakBytes == nil ||
			len(s.Origin.DiffersBeside(&o.Origin)) > 0:
		case key == mine && s.Status == schemas.StatusOK:
			runs[mine] = append(runs[mine], o)
		case o.Method() != s.Method() && slices.Contains(dpMethods, o.Method()) && compare.Alike(s, o):
			if runs[key] == nil {
				order = append(order, key)
			}
			runs[key] = append(runs[key], o)
		}
	}
	for _, key := range order {
		others = append(others, newTrial(runs[key], clock, (*analyze.Summary).PeakAtMost))
	}
	atLeast := func(r *analyze.Summary) *int64 { return r.PeakBytes }
	return newTrial(runs[mine], clock, atLeast), others
}

// trialKey returns a key that is equal for runs of one trial. The key has the command, the method, and everything else
// that [compare.Alike] holds constant.
func trialKey(s *analyze.Summary) string {
	var b strings.Builder
	b.WriteString(s.Source + "\x00" + identity.CommandText(s.Command))
	if s.Profile != nil {
		b.WriteString("\x00" + *s.Profile)
	}
	for i := range s.RunFacts {
		if f := &s.RunFacts[i]; (f.Param || f.Condition) && !slices.Contains(identity.LengthParams, f.What) {
			fmt.Fprintf(&b, "\x00%s=%s%s", f.What, f.Value, f.Whole)
		}
	}
	return b.String()
}

// newTrial makes a trial of runs that each have a peak. The caller chooses a bound of bounded peaks by peak, so that a
// saving is certain: the lower bound for the run's own method, and the upper bound for other methods.
func newTrial(runs []*analyze.Summary, clock string, peak func(*analyze.Summary) *int64) Trial {
	t := Trial{Runs: len(runs), runs: runs}
	peaks := make([]int64, len(runs))
	for i, r := range runs {
		peaks[i] = *peak(r)
		t.AtMost = t.AtMost || *peak(r) > *r.PeakBytes
	}
	slices.Sort(peaks)
	t.PeakBytes = peaks[(len(peaks)-1)/2]
	steps := compare.Collect(runs, func(r *analyze.Summary) *float64 { return compare.StepBy(r, clock) })
	switch i := slices.IndexFunc(runs, func(r *analyze.Summary) bool { return compare.StepBy(r, clock) != nil }); {
	case len(steps) == 1: // a median of one run has no range, but the run's steps have one
		t.Step = runs[i].StepMS
	case len(steps) > 1:
		t.Step = timing.Ranged(steps, timing.OverRepeats, clock)
	}
	far := func(r *analyze.Summary) float64 {
		if v := compare.StepBy(r, clock); v != nil {
			return math.Abs(*v - t.Step.Median)
		}
		return math.Inf(1)
	}
	t.Run = slices.MinFunc(runs, func(a, b *analyze.Summary) int {
		return cmp.Or(cmp.Compare(trueLast(a.Bare()), trueLast(b.Bare())), cmp.Compare(far(a), far(b)))
	})
	return t
}

// fasterThan reports whether a trial's step is certainly shorter than another trial's. fasterThan returns false if the
// ranges of their repeats overlap or, for single runs, the intervals of their steps.
func (t *Trial) fasterThan(o *Trial) bool {
	return t.Step != nil && o.Step != nil && t.Step.Median < o.Step.Median && t.Step.High < o.Step.Low
}

// known returns whether the figures of a trial were measured or predicted.
func (t *Trial) known() Confidence {
	if t.Run.Source == schemas.Predicted {
		return Predicted
	}
	return Measured
}

// cheaperMethod looks for a method that computes the same private step with less memory and no more time, or with less
// time and no more memory. Of a trial's runs, only the first recorded one among the inspected runs gets the finding,
// else the first inspected one.
func cheaperMethod(s *analyze.Summary, inspected, all []analyze.Summary) []Finding {
	if s.Status != schemas.StatusOK || s.PeakBytes == nil || s.StepMS == nil ||
		!slices.Contains(dpMethods, s.Method()) {
		return nil
	}
	own, others := trialsOf(s, all)
	if !speaksFor(s, own.runs, inspected) {
		return nil
	}
	var best *Trial
	for i := range others {
		o := &others[i]
		if o.Step == nil {
			continue
		}
		peak, step := float64(o.PeakBytes)/float64(own.PeakBytes), o.Step.Median/own.Step.Median
		faster := step <= 1-cheaperTimePercent/100.0 && peak <= 1+samePeakPercent/100 && o.fasterThan(&own)
		smaller := peak <= 1-cheaperPeakPercent/100.0 && step <= 1
		if !faster && !smaller {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(trueLast(best.fasterThan(&own)), trueLast(o.fasterThan(&own))),
			cmp.Compare(o.Step.Median, best.Step.Median)) < 0 {
			best = o
		}
	}
	if best == nil {
		return nil
	}
	f := Finding{ID: CheaperMethod}
	bytes, ms := own.PeakBytes-best.PeakBytes, own.Step.Median-best.Step.Median
	f.Facts = CheaperMethodFacts{own, *best, !best.fasterThan(&own) && (own.Step.N > 1 || best.Step.N > 1)}
	f.saves(bytes, best.known())
	if best.fasterThan(&own) {
		f.ofStep(ms, own.Step.Median)
		f.SavesMS = new(ms)
	} else {
		f.of(bytes, own.PeakBytes, OfPeakAllocated)
	}
	return []Finding{f}
}

// speaksFor reports whether a trial's [CheaperMethod] finding is listed at this run.
func speaksFor(s *analyze.Summary, runs []*analyze.Summary, inspected []analyze.Summary) bool {
	var first *analyze.Summary
	for i := range inspected {
		r := &inspected[i]
		if slices.ContainsFunc(runs, func(t *analyze.Summary) bool {
			return t.RunID == r.RunID
		}) && (first == nil || first.Bare() && !r.Bare()) {
			first = r
		}
	}
	return first != nil && first.RunID == s.RunID
}

// measureAgainst replaces a finding's estimated saving by the difference from runs of other methods, measured or
// predicted as the run is. measureAgainst compares with the method that has the lowest peak among the methods that
// avoid the finding.
func (f *Finding) measureAgainst(s *analyze.Summary, all []analyze.Summary) {
	if f.instead == nil || s.PeakBytes == nil || !slices.Contains(dpMethods, s.Method()) {
		return
	}
	own, others := trialsOf(s, all)
	var best *Trial
	for i := range others {
		o := &others[i]
		if slices.Contains(f.instead, o.Run.Method()) && (best == nil || o.PeakBytes < best.PeakBytes) {
			best = o
		}
	}
	if best == nil {
		return
	}
	lowest := best
	if best.PeakBytes >= *s.PeakBytes && !best.fasterThan(&own) {
		// No method has a lower peak, but one may be faster.
		for i := range others {
			if o := &others[i]; slices.Contains(f.instead, o.Run.Method()) && o.fasterThan(&own) &&
				(!best.fasterThan(&own) || o.Step.Median < best.Step.Median) {
				best = o
			}
		}
	}
	if best.PeakBytes >= *s.PeakBytes && !best.fasterThan(&own) {
		f.Methods = &Methods{Own: own, Lowest: *lowest}
		f.SavesBytes, f.Confidence = nil, NotKnown
		if !f.advisesMore() { // the saving of the remaining advice is unknown
			f.saves(0, lowest.known())
		}
		return
	}
	f.Methods = &Methods{own, *lowest, best, best.PeakBytes < *s.PeakBytes}
	f.saves(*s.PeakBytes-best.PeakBytes, best.known())
	// State a saving or a cost of time only if it is certain.
	switch {
	case own.Step == nil || best.Step == nil:
	case best.fasterThan(&own):
		f.SavesMS = new(own.Step.Median - best.Step.Median)
	case own.fasterThan(best):
		f.CostsMS = new(best.Step.Median - own.Step.Median)
	}
}

// advisesMore reports whether part of the finding's advice is independent of the method, so that runs of other methods
// show nothing about that part.
func (f *Finding) advisesMore() bool {
	clip, is := f.Facts.(ClipTemporariesFacts)
	return is && slices.Contains(clip.Advice, clipping.Sum)
}

// trueLast orders false before true.
func trueLast(b bool) int {
	if b {
		return 1
	}
	return 0
}
