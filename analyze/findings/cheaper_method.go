package findings

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

const (
	cheaperPeakPercent = 2   // of the peak, that another method saves with a step no longer
	cheaperTimePercent = 5   // of the step, that another method saves with a peak no higher
	samePeakPercent    = 0.1 // of the peak, that counts as no higher
)

// dpMethods are those that give the same clipped and noised sum.
var dpMethods = append([]string{"loop", "dpsgd"}, oneLayer...)

// A trial is all that a store has of one method of an experiment: repeats, recorded or bare. Its figures are medians
// over them: a single run is compared with another at the mercy of which of their repeats was taken.
type trial struct {
	runs []*analyze.Summary
	run  *analyze.Summary // that stands for them: recorded rather than bare, and nearest to the median step
	peak int64
	// step is over the runs, Low and High the smallest and the largest; of a single run it is over its steps. nil
	// without times by the clock that is wanted.
	step *timing.Interval
}

// trialsOf gives the trial that a run is of, and those of other methods of the same experiment, in the order of all.
func trialsOf(s *analyze.Summary, all []analyze.Summary) (own trial, others []trial) {
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
		case o.RunID == s.RunID || o.Status != schemas.StatusOK || o.PeakBytes == nil:
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
		others = append(others, newTrial(runs[key], clock))
	}
	return newTrial(runs[mine], clock), others
}

// trialKey tells trials apart: the command, the method, and all else that [compare.Alike] holds constant.
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

// newTrial reduces runs, of which each has a peak.
func newTrial(runs []*analyze.Summary, clock string) trial {
	t := trial{runs: runs}
	peaks := make([]int64, len(runs))
	for i, r := range runs {
		peaks[i] = *r.PeakBytes
	}
	slices.Sort(peaks)
	t.peak = peaks[(len(peaks)-1)/2]
	steps := compare.Collect(runs, func(r *analyze.Summary) *float64 { return compare.StepBy(r, clock) })
	switch i := slices.IndexFunc(runs, func(r *analyze.Summary) bool { return compare.StepBy(r, clock) != nil }); {
	case len(steps) == 1: // a median of one has no range, its steps have
		t.step = runs[i].StepMS
	case len(steps) > 1:
		t.step = timing.Ranged(steps, timing.OverRepeats, clock)
	}
	far := func(r *analyze.Summary) float64 {
		if v := compare.StepBy(r, clock); v != nil {
			return math.Abs(*v - t.step.Median)
		}
		return math.Inf(1)
	}
	t.run = slices.MinFunc(runs, func(a, b *analyze.Summary) int {
		return cmp.Or(cmp.Compare(compare.B2i(a.Bare()), compare.B2i(b.Bare())), cmp.Compare(far(a), far(b)))
	})
	return t
}

// fasterThan reports whether a trial's step is shorter than another's beyond doubt: where the ranges of their repeats
// overlap, which of the two is the faster one depends on the repeat, and where those of single runs do, on the step.
func (t *trial) fasterThan(o *trial) bool {
	return t.step != nil && o.step != nil && t.step.Median < o.step.Median && t.step.High < o.step.Low
}

// stepText is the median step, with the range of the repeats, or of a single run's steps.
func (t *trial) stepText() string {
	text := prose.MS(t.step.Median) + " a step"
	of := "runs"
	switch {
	case t.step.N < 2:
		return text
	case t.step.Of == timing.OfMedian:
		return text + fmt.Sprintf(" (%s to %s with 95 %% confidence)", prose.MS(t.step.Low), prose.MS(t.step.High))
	case t.step.Over == timing.OverSteps:
		of = "steps"
	}
	return text + fmt.Sprintf(" (%s to %s in %d %s)", prose.MS(t.step.Low), prose.MS(t.step.High), t.step.N, of)
}

// from says which runs a trial's figures are of, and what they are.
func (t *trial) from(what string) string {
	if len(t.runs) == 1 {
		return "run " + t.run.RunID + what
	}
	return fmt.Sprintf("medians of %d runs%s, %s among them", len(t.runs), what, t.run.RunID)
}

// how says whether a trial's figures were measured. Where they were not, who reads of a saving must know.
func (t *trial) how() string {
	if t.run.Source == schemas.Predicted {
		return schemas.Predicted
	}
	return schemas.Measured
}

// peakFigure and stepFigure add a trial's figures to a finding.
func (t *trial) peakFigure(f *Finding) {
	f.bytes("peak of "+t.run.Title(), t.peak, t.from(""))
}

func (t *trial) stepFigure(f *Finding) {
	f.milliseconds("step of "+t.run.Title(), t.step.Median, t.from("")+": steps.parquet")
}

// cheaperMethod looks for a method of the same private step that takes less of one thing and no more of the other. It
// is found once for each trial: at the first of the inspected runs that is recorded, else at the first.
func cheaperMethod(s *analyze.Summary, inspected, all []analyze.Summary) []Finding {
	if s.Status != schemas.StatusOK || s.PeakBytes == nil || s.StepMS == nil ||
		!slices.Contains(dpMethods, s.Method()) {
		return nil
	}
	own, others := trialsOf(s, all)
	if !speaksFor(s, own.runs, inspected) {
		return nil
	}
	var best *trial
	for i := range others {
		o := &others[i]
		if o.step == nil {
			continue
		}
		peak, step := float64(o.peak)/float64(own.peak), o.step.Median/own.step.Median
		faster := step <= 1-cheaperTimePercent/100.0 && peak <= 1+samePeakPercent/100 && o.fasterThan(&own)
		smaller := peak <= 1-cheaperPeakPercent/100.0 && step <= 1
		if !faster && !smaller {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(compare.B2i(best.fasterThan(&own)), compare.B2i(o.fasterThan(&own))),
			cmp.Compare(o.step.Median, best.step.Median)) < 0 {
			best = o
		}
	}
	if best == nil {
		return nil
	}
	f := Finding{ID: CheaperMethod}
	bytes, ms := own.peak-best.peak, own.step.Median-best.step.Median
	own.peakFigure(&f)
	best.peakFigure(&f)
	own.stepFigure(&f)
	best.stepFigure(&f)
	f.Sentence = fmt.Sprintf("With the same parameters %s takes %s and peaks at %s, where %s takes %s and peaks at %s.",
		best.run.Title(), best.stepText(), prose.MiB(best.peak), own.run.Title(), own.stepText(), prose.MiB(own.peak))
	f.saves(bytes, best.how()+": "+best.from(" of the same parameters"))
	if best.fasterThan(&own) {
		f.ofStep(ms, own.step.Median)
		f.SavesMS = new(ms)
	} else {
		f.of(bytes, own.peak, OfPeakAllocated)
		if own.step.N > 1 || best.step.N > 1 {
			f.Sentence += " The ranges of their steps overlap, so that no time is saved for certain."
		}
	}
	f.Change = "use method " + best.run.Method() + ", which gives the same clipped sum; at other batch sizes the " +
		"order may be another"
	return []Finding{f}
}

// speaksFor reports whether a run is the one of a trial's that a finding on all of them is listed at.
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

// noneLower says that none of the methods that do without peaks lower, the best of them neither, nor is it faster. What
// remains to be advised is what has nothing to do with them; what that would save is not known.
func (f *Finding) noneLower(best *trial, method string) {
	f.Sentence += fmt.Sprintf(" Another method would save nothing: the lowest recorded peak of those that do without "+
		"is %s, %s of the same parameters.", prose.MiB(best.peak), best.from(method))
	best.peakFigure(f)
	f.Change, f.SavesBytes, f.Assumption = f.besides, nil, ""
	if f.Change == "" {
		f.saves(0, "no recorded method of the same parameters peaks lower: the lowest is "+prose.MiB(best.peak)+", "+
			best.from(method))
	}
}

// measureAgainst replaces a saving that is a bound by one that was measured, or predicted where the run is: what the
// method that does without and has the lowest peak takes less.
func (f *Finding) measureAgainst(s *analyze.Summary, all []analyze.Summary) {
	if f.instead == nil || s.PeakBytes == nil || !slices.Contains(dpMethods, s.Method()) {
		return
	}
	own, others := trialsOf(s, all)
	var best *trial
	for i := range others {
		if o := &others[i]; slices.Contains(f.instead, o.run.Method()) && (best == nil || o.peak < best.peak) {
			best = o
		}
	}
	if best == nil {
		return
	}
	named := func(t *trial) string { return " (method " + t.run.Method() + ")" }
	lowest := best
	if best.peak >= *s.PeakBytes && !best.fasterThan(&own) {
		// None is lower: one may be faster.
		for i := range others {
			if o := &others[i]; slices.Contains(f.instead, o.run.Method()) && o.fasterThan(&own) &&
				(!best.fasterThan(&own) || o.step.Median < best.step.Median) {
				best = o
			}
		}
	}
	if best.peak >= *s.PeakBytes && !best.fasterThan(&own) {
		f.noneLower(lowest, named(lowest))
		return
	}
	condition, it := fmt.Sprintf("%s: a peak of %s, %s", best.how(), prose.MiB(best.peak),
		best.from(named(best)+" of the same parameters")), "it takes"
	if best.peak >= *s.PeakBytes {
		condition = "no recorded method of the same parameters peaks lower: the lowest is " + prose.MiB(lowest.peak) +
			", " +
			lowest.from(named(lowest))
	}
	f.saves(*s.PeakBytes-best.peak, condition)
	lowest.peakFigure(f)
	if best != lowest {
		best.peakFigure(f)
		it = fmt.Sprintf("method %s (a peak of %s, %s) takes", best.run.Method(), prose.MiB(best.peak), best.from(""))
	}
	if own.step == nil || best.step == nil {
		return
	}
	// A run that saves time beyond doubt, or costs it, does; else nothing is said of either.
	switch saved := own.step.Median - best.step.Median; {
	case best.fasterThan(&own):
		f.SavesMS = &saved
	case own.fasterThan(best):
		f.CostsMS = new(-saved)
	}
	f.Assumption += fmt.Sprintf("; %s %s, this one %s", it, best.stepText(), own.stepText())
}
