package timing

import (
	"slices"
	"sort"

	"github.com/aclements/go-moremath/stats"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a median with the range or the confidence interval around it, in milliseconds. Only [compare.Cell.CostOf]
// also returns intervals of rates.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"`
	// Of says what Low and High are. With "range" they are the smallest and the largest of N values. With "median 95%"
	// they are order statistics that enclose the median with at least that probability for any distribution; this needs
	// 6 values.
	Of string `json:"of"`
	// Confidence is the probability that Low and High enclose the true median. A range has a confidence, too: 0.9375
	// for the range of 5 values.
	Confidence float64 `json:"confidence"`
	// Over says what the N values are: with "steps", the steps of one run; with "repeats", the medians of several runs.
	Over string `json:"over"`
	// Clock is "gpu" (between CUDA events) or "wall".
	Clock string `json:"clock"`
}

// The values of [Interval.Clock], [Interval.Of] and [Interval.Over].
const (
	ClockGPU    = "gpu"
	ClockWall   = "wall"
	OfRange     = "range"
	OfMedian    = "median 95%"
	OverSteps   = "steps"
	OverRepeats = "repeats"
)

// IntervalOver summarises the durations of steps; nil if there are none.
func IntervalOver(ns []int64, clock string) *Interval {
	ms := make([]float64, len(ns))
	for i, v := range ns {
		ms[i] = float64(v) / 1e6
	}
	return Summarise(ms, OverSteps, clock)
}

// Summarise returns the median of values and an interval around it; nil without values.
//
// The interval uses order statistics and not Student's t, since step times are skewed and a mean of five runs says
// nothing about their distribution. So fewer than six values cannot reach 95 %. For fewer values, Summarise returns the
// range and its confidence.
func Summarise(values []float64, over, clock string) *Interval {
	if len(values) == 0 {
		return nil
	}
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	r := &Interval{Median: Middle(s), Low: s[0], High: s[n-1], N: n, Of: OfRange, Confidence: coverage(n, 1),
		Over: over, Clock: clock}
	if k := medianRank(n); k > 0 {
		r.Low, r.High, r.Of, r.Confidence = s[k-1], s[n-k], OfMedian, coverage(n, k)
	}
	return r
}

// Ranged is like [Summarise], but returns the range of the values for any number of values.
func Ranged(values []float64, over, clock string) *Interval {
	r := Summarise(values, over, clock)
	if r != nil {
		r.Low, r.High, r.Of, r.Confidence = slices.Min(values), slices.Max(values), OfRange, coverage(len(values), 1)
	}
	return r
}

// Middle returns the median of sorted values.
func Middle(s []float64) float64 {
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// medianRank returns the largest k for which the k-th smallest and k-th largest of n values enclose the median with
// probability 95 %. medianRank returns 0 if even the smallest and the largest do not (n < 6).
func medianRank(n int) int {
	return sort.Search(n/2, func(i int) bool { return coverage(n, i+1) < 0.95 })
}

// coverage returns the probability that the k-th smallest and the k-th largest of n values enclose the median: 1 -
// 2·P(Binomial(n, 1/2) < k).
func coverage(n, k int) float64 {
	return max(0, 1-2*distuv.Binomial{N: float64(n), P: 0.5}.CDF(float64(k-1)))
}

// Significant is the p-value below which a difference in a rank test does not count as chance.
const Significant = 0.05

// RankTest returns the p-value of Mann and Whitney's test: the probability that two samples of the same distribution
// differ at least as much in their ranks. RankTest returns 1 if the samples are too small.
func RankTest(a, b []float64) float64 {
	r, err := stats.MannWhitneyUTest(a, b, stats.LocationDiffers)
	if err != nil { // all values are equal, or there is no value
		return 1
	}
	return r.P
}

// Plus adds v to the sum that to points to. A v that is nil changes nothing.
func Plus(to **float64, v *float64) {
	switch {
	case v == nil:
	case *to == nil:
		*to = new(*v)
	default:
		**to += *v
	}
}

func OrZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// PercentOf returns part in per cent of whole, or nil if whole is 0.
func PercentOf(part, whole float64) *float64 {
	return Ratio(100*part, whole)
}

func Ratio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	r := a / b
	return &r
}

// MedianOrZero returns the median, or 0 for a nil interval.
func (v *Interval) MedianOrZero() float64 {
	if v == nil {
		return 0
	}
	return v.Median
}
