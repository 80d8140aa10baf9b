package analyze

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

const (
	repeatsPeakPercent = 0.1 // of the lowest peak, between repeats
	repeatsTimePercent = 5   // of the median, between the repeats' medians
	cheaperPeakPercent = 2   // of the peak, that another method saves with a step no longer
	cheaperTimePercent = 5   // of the step, that another method saves with a peak no higher
	samePeakPercent    = 0.1 // of the peak, that counts as no higher
)

// dpMethods are those that give the same clipped and noised sum.
var dpMethods = []string{"loop", "dpsgd", "fgc", "ghost", "mixed_ghost", "flash", "bk", "flash_bk"}

// Outline is what other runs are compared with: peaks and times, from manifest, report and steps alone.
func Outline(in Input) Summary {
	s := Summary{Identity: identify(in.Manifest), Started: in.Manifest.Start, Warnings: []string{}, facts: factsOf(in.Manifest)}
	if in.Manifest.Suite != nil {
		s.Suite, s.SuiteID, s.Key = in.Manifest.Suite.Name, in.Manifest.Suite.ID, in.Manifest.Suite.Key
	}
	s.peaks(&in)
	t := in.timed()
	s.StepMS = t.step()
	return s
}

// repeatsDisagree compares a run with its repeats. The first of them has the finding.
func repeatsDisagree(s *Summary, all []Summary) []Finding {
	if s.Status != schemas.StatusOK {
		return nil
	}
	var repeats []*Summary
	for i := range all {
		if r := &all[i]; r.Status == schemas.StatusOK && r.content() == s.content() {
			repeats = append(repeats, r)
		}
	}
	if len(repeats) < 2 || repeats[0].RunID != s.RunID {
		return nil
	}
	var out []Finding
	var low, high *Summary
	var peaks int
	for _, r := range repeats {
		if r.PeakBytes == nil {
			continue
		}
		peaks++
		if low == nil || *r.PeakBytes < *low.PeakBytes {
			low = r
		}
		if high == nil || *r.PeakBytes > *high.PeakBytes {
			high = r
		}
	}
	if peaks > 1 {
		if d := *high.PeakBytes - *low.PeakBytes; atLeast(d, *low.PeakBytes, repeatsPeakPercent) {
			f := Finding{ID: FindingRepeatsPeak}
			f.of(d, *low.PeakBytes, OfPeakAllocated)
			f.bytes("lowest peak", *low.PeakBytes, "run "+low.RunID)
			f.bytes("highest peak", *high.PeakBytes, "run "+high.RunID)
			f.Sentence = fmt.Sprintf("The peaks of %d repeats differ: %s to %s, though memory does not depend on the clock.", peaks, mib(*low.PeakBytes), mib(*high.PeakBytes))
			f.Change = "look for what differs between the repeats: dpsight analyze explain " + low.RunID + " " + high.RunID + " (Poisson sampling, for one, draws batches of other sizes)"
			out = append(out, f)
		}
	}
	times := collect(repeats, func(r *Summary) *float64 {
		if r.StepMS == nil || s.StepMS == nil || r.StepMS.Clock != s.StepMS.Clock {
			return nil
		}
		return &r.StepMS.Median
	})
	if v := summarise(times, OverRepeats, ""); v != nil && v.N > 1 {
		low, high := slices.Min(times), slices.Max(times)
		if high-low >= repeatsTimePercent/100.0*v.Median {
			f := Finding{ID: FindingRepeatsTime}
			f.ofStep(high-low, v.Median)
			from := "steps.parquet of each repeat: median of timed steps"
			f.milliseconds("fastest repeat", low, from)
			f.milliseconds("slowest repeat", high, from)
			f.milliseconds("median", v.Median, from)
			f.Sentence = fmt.Sprintf("The step times of %d repeats disagree: their medians go from %s to %s, %s of their own median (%s) apart. A difference between methods that is smaller says nothing.",
				v.N, msText(low), msText(high), shareText(high-low, v.Median), msText(v.Median))
			f.Change = "take more repeats and more steps, on a GPU with locked clocks"
			out = append(out, f)
		}
	}
	return out
}

// alike reports whether two runs are of experiments that differ in their method only, as far as both say.
func alike(a, b *Summary) bool {
	if a.Source != b.Source || a.RunID == b.RunID || b.Status != schemas.StatusOK || b.PeakBytes == nil {
		return false
	}
	if (a.Profile == nil) != (b.Profile == nil) || a.Profile != nil && *a.Profile != *b.Profile {
		return false
	}
	for i := range a.facts {
		f := &a.facts[i]
		if theirs := b.fact(f.What); f.Condition && theirs != nil && !f.equals(theirs) {
			return false
		}
	}
	return true
}

// cheaperMethod looks for a method of the same private step that takes less of one thing and no more of the other.
func cheaperMethod(s *Summary, all []Summary) []Finding {
	if s.Status != schemas.StatusOK || s.PeakBytes == nil || s.StepMS == nil || !slices.Contains(dpMethods, s.Method()) {
		return nil
	}
	var best *Summary
	for i := range all {
		o := &all[i]
		if o.Method() == s.Method() || !slices.Contains(dpMethods, o.Method()) || !alike(s, o) || o.StepMS == nil || o.StepMS.Clock != s.StepMS.Clock {
			continue
		}
		peak, step := float64(*o.PeakBytes)/float64(*s.PeakBytes), o.StepMS.Median/s.StepMS.Median
		faster := step <= 1-cheaperTimePercent/100.0 && peak <= 1+samePeakPercent/100
		smaller := peak <= 1-cheaperPeakPercent/100.0 && step <= 1
		if !faster && !smaller {
			continue
		}
		// A bare run is named only where its experiment is not there in full.
		if best == nil || best.Bare() && !o.Bare() || best.Bare() == o.Bare() && o.StepMS.Median < best.StepMS.Median {
			best = o
		}
	}
	if best == nil {
		return nil
	}
	f := Finding{ID: FindingCheaperMethod}
	bytes, ms := *s.PeakBytes-*best.PeakBytes, s.StepMS.Median-best.StepMS.Median
	f.ofStep(ms, s.StepMS.Median)
	f.bytes("peak of "+s.title(), *s.PeakBytes, "run "+s.RunID)
	f.bytes("peak of "+best.title(), *best.PeakBytes, "run "+best.RunID)
	f.milliseconds("step of "+s.title(), s.StepMS.Median, "run "+s.RunID+": steps.parquet")
	f.milliseconds("step of "+best.title(), best.StepMS.Median, "run "+best.RunID+": steps.parquet")
	f.Sentence = fmt.Sprintf("With the same parameters %s takes %s a step and peaks at %s, where %s takes %s and peaks at %s.",
		best.title(), msText(best.StepMS.Median), mib(*best.PeakBytes), s.title(), msText(s.StepMS.Median), mib(*s.PeakBytes))
	f.Change = "use method " + best.Method() + ", which gives the same clipped sum; at other batch sizes the order may be another"
	f.SavesMS, f.SavesBytes = new(ms), new(max(bytes, 0))
	f.Assumption = "measured: run " + best.RunID + " of the same parameters"
	return []Finding{f}
}

// measureAgainst replaces a saving that is a bound by one that was measured: what the cheapest run of a method that does
// without takes less.
func (f *Finding) measureAgainst(s *Summary, all []Summary) {
	if f.instead == nil || s.PeakBytes == nil || !slices.Contains(dpMethods, s.Method()) {
		return
	}
	var best *Summary
	for i := range all {
		o := &all[i]
		if o.Method() != s.Method() && slices.Contains(f.instead, o.Method()) && alike(s, o) && (best == nil || *o.PeakBytes < *best.PeakBytes) {
			best = o
		}
	}
	if best == nil {
		return
	}
	condition := fmt.Sprintf("measured: run %s (method %s) of the same parameters peaks at %s", best.RunID, best.Method(), mib(*best.PeakBytes))
	if *best.PeakBytes >= *s.PeakBytes {
		condition = "no recorded method of the same parameters peaks lower: the lowest is " + mib(*best.PeakBytes) + " of run " + best.RunID + " (method " + best.Method() + ")"
	}
	f.saves(*s.PeakBytes-*best.PeakBytes, condition)
	f.bytes("peak of "+best.title(), *best.PeakBytes, "run "+best.RunID)
	if s.StepMS != nil && best.StepMS != nil && s.StepMS.Clock == best.StepMS.Clock {
		f.SavesMS = new(s.StepMS.Median - best.StepMS.Median)
		f.Assumption += fmt.Sprintf("; its step takes %s, this one's %s", msText(best.StepMS.Median), msText(s.StepMS.Median))
	}
}
