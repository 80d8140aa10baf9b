package findings

import (
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
)

const (
	repeatsPeakPercent = 0.1 // least percentage of the lowest peak by which repeats differ
	repeatsTimePercent = 5   // least percentage of the median by which the repeats' medians differ
)

// RepeatsPeakFacts are the facts of a [RepeatsPeak] finding.
type RepeatsPeakFacts struct {
	Repeats             int
	LowRun, HighRun     string
	LowBytes, HighBytes int64
	Bounded             bool // LowBytes is the upper bound of the lower peak, HighBytes the lower bound of the higher
}

// RepeatsTimeFacts are the facts of a [RepeatsTime] finding: the repeats' medians, in milliseconds.
type RepeatsTimeFacts struct {
	Repeats           int
	Low, High, Median float64
}

// repeatsDisagree reports that the repeats of a run's experiment differ in peak or time. repeats includes the run. Only
// the first of the repeats gets the finding.
func repeatsDisagree(s *analyze.Summary, repeats []*analyze.Summary) []Finding {
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
		if low == nil || *r.PeakAtMost() < *low.PeakAtMost() {
			low = r
		}
		if high == nil || *r.PeakBytes > *high.PeakBytes {
			high = r
		}
	}
	if peaks > 1 {
		// If a peak is bounded, this is the difference that is certain.
		if d := *high.PeakBytes - *low.PeakAtMost(); memory.AtLeast(d, *low.PeakAtMost(), repeatsPeakPercent) {
			f := Finding{ID: RepeatsPeak}
			f.of(d, *low.PeakAtMost(), OfPeakAllocated)
			f.Facts = RepeatsPeakFacts{Repeats: peaks, LowRun: low.RunID, HighRun: high.RunID,
				LowBytes: *low.PeakAtMost(), HighBytes: *high.PeakBytes,
				Bounded: low.PeakAtMost() != low.PeakBytes || high.PeakAtMost() != high.PeakBytes}
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
			f.Facts = RepeatsTimeFacts{Repeats: v.N, Low: low, High: high, Median: v.Median}
			out = append(out, f)
		}
	}
	return out
}
