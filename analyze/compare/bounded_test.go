package compare

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
)

// If repeats have bounded peaks, the range of their peaks includes the upper bounds. The bounds of a ratio of two peaks
// follow from the bounds of both peaks.
func TestBoundedPeaks(t *testing.T) {
	bounded := func(id string, peak, high int64) analyze.Summary {
		s := summaries.Ran(id, "ghost", peak)
		s.PeakLowBytes, s.PeakHighBytes = &peak, &high
		return s
	}
	base, plain, low := summaries.Ran("v", "vanilla", 1000), summaries.Ran("a", "ghost", 1500), bounded("b", 1400, 1800)
	c := NewCell([]*analyze.Summary{&plain, &low})
	if *c.PeakLow != 1400 || *c.PeakHigh != 1800 || !c.Bounded() || c.Badge() == "" {
		t.Errorf("%d to %d, bounded %v, %q", *c.PeakLow, *c.PeakHigh, c.Bounded(), c.Badge())
	}
	if i := slices.IndexFunc(c.Remarks, func(r Remark) bool { return r.Kind == RemarkPeaksDiffer }); i < 0 ||
		c.Remarks[i].Low != 1400 || c.Remarks[i].High != 1500 {
		t.Errorf("the repeats' own peaks: %+v", c.Remarks)
	}
	for _, x := range []struct {
		base, run analyze.Summary
		low, high float64
	}{{base, low, 1.4, 1.8}, {bounded("w", 1000, 1250), plain, 1.2, 1.5}} {
		o := OverheadOf(&x.base, &x.run)
		if o.PeakRatioLow == nil || *o.PeakRatioLow != x.low || *o.PeakRatioHigh != x.high {
			t.Errorf("%v, want %v to %v", o, x.low, x.high)
			continue
		}
		if !slices.ContainsFunc(o.Remarks, func(r Remark) bool {
			return r.Kind == RemarkBoundedRatio && r.Ratios == [2]float64{x.low, x.high}
		}) {
			t.Errorf("%+v", o.Remarks)
		}
	}
	if o := OverheadOf(&base, &plain); o.PeakRatioLow != nil {
		t.Errorf("no peak is bounded, and the ratio is: %+v", o)
	}
}
