package findings

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

const (
	repeatsPeakPercent = 0.1 // of the lowest peak, between repeats
	repeatsTimePercent = 5   // of the median, between the repeats' medians
)

// repeatsDisagree compares a run with its repeats. The first of them has the finding.
func repeatsDisagree(s *analyze.Summary, all []analyze.Summary) []Finding {
	if s.Status != schemas.StatusOK {
		return nil
	}
	var repeats []*analyze.Summary
	for i := range all {
		if r := &all[i]; r.Status == schemas.StatusOK && compare.Content(r) == compare.Content(s) {
			repeats = append(repeats, r)
		}
	}
	if len(repeats) < 2 || repeats[0].RunID != s.RunID {
		return nil
	}
	var out []Finding
	var low, high *analyze.Summary
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
		if d := *high.PeakBytes - *low.PeakBytes; memory.AtLeast(d, *low.PeakBytes, repeatsPeakPercent) {
			f := Finding{ID: RepeatsPeak}
			f.of(d, *low.PeakBytes, OfPeakAllocated)
			f.bytes("lowest peak", *low.PeakBytes, "run "+low.RunID)
			f.bytes("highest peak", *high.PeakBytes, "run "+high.RunID)
			f.Sentence = fmt.Sprintf("The peaks of %d repeats differ: %s to %s, though memory does not depend on the "+
				"clock.", peaks, prose.MiB(*low.PeakBytes), prose.MiB(*high.PeakBytes))
			f.Change = "look for what differs between the repeats: dpsight analyze explain " + low.RunID + " " +
				high.RunID + " (Poisson sampling, for one, draws batches of other sizes)"
			out = append(out, f)
		}
	}
	times := compare.Collect(repeats, func(r *analyze.Summary) *float64 {
		if r.StepMS == nil || s.StepMS == nil || r.StepMS.Clock != s.StepMS.Clock {
			return nil
		}
		return &r.StepMS.Median
	})
	if v := timing.Summarise(times, timing.OverRepeats, ""); v != nil && v.N > 1 {
		low, high := slices.Min(times), slices.Max(times)
		if high-low >= repeatsTimePercent/100.0*v.Median {
			f := Finding{ID: RepeatsTime}
			f.ofStep(high-low, v.Median)
			from := "steps.parquet of each repeat: median of timed steps"
			f.milliseconds("fastest repeat", low, from)
			f.milliseconds("slowest repeat", high, from)
			f.milliseconds("median", v.Median, from)
			f.Sentence = fmt.Sprintf("The step times of %d repeats disagree: their medians go from %s to %s, %s of "+
				"their own median (%s) apart. A difference between methods that is smaller says nothing.",
				v.N, prose.MS(low), prose.MS(high), prose.Share(high-low, v.Median), prose.MS(v.Median))
			f.Change = "take more repeats and more steps, on a GPU with locked clocks"
			out = append(out, f)
		}
	}
	return out
}
