package timing

import (
	"slices"
	"sort"

	"github.com/aclements/go-moremath/stats"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a median and its range, in milliseconds. Only [compare.Cell.CostOf] also returns intervals of rates.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"`
	// Of is the meaning of Low and High: "range" (the smallest and the largest of N values), or "median 95%" (order
	// statistics that cover the median with at least that probability for any distribution; needs 6 values).
	Of string `json:"of"`
	// Confidence is the probability that Low and High enclose the true median. A range has one, too: 0.9375 for the
	// range of 5 values.
	Confidence float64 `json:"confidence"`
	// Over is the kind of the N values: "steps" of one run, or "repeats", which are medians of one run each.
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

// IntervalOver summarises the durations of steps; nil without any.
func IntervalOver(ns []int64, clock string) *Interval {
	ms := make([]float64, len(ns))
	for i, v := range ns {
		ms[i] = float64(v) / 1e6
	}
	return Summarise(ms, OverSteps, clock)
}

// Summarise returns the median of values and an interval around it; nil without values.
//
// Note: the interval uses order statistics, not Student's t, since step times are skewed and a mean of five runs says
// nothing about their distribution. So fewer than six values cannot reach 95 %. For fewer values, Summarise returns
// the range and its confidence.
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

// Ranged is [Summarise] with the range of the values, however many they are.
func Ranged(values []float64, over, clock string) *Interval {
	r := Summarise(values, over, clock)
	if r != nil {
		r.Low, r.High, r.Of, r.Confidence = slices.Min(values), slices.Max(values), OfRange, coverage(len(values), 1)
	}
	return r
}

// Middle is the median of sorted values.
func Middle(s []float64) float64 {
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// medianRank returns the largest k for which the k-th smallest and k-th largest of n values enclose the median with
// probability 95 %. medianRank returns 0 if even the extremes do not (n < 6).
func medianRank(n int) int {
	return sort.Search(n/2, func(i int) bool { return coverage(n, i+1) < 0.95 })
}

// coverage is the probability that the k-th smallest and the k-th largest of n values enclose the median:
// 1 - 2·P(Binomial(n, 1/2) < k).
func coverage(n, k int) float64 {
	return max(0, 1-2*distuv.Binomial{N: float64(n), P: 0.5}.CDF(float64(k-1)))
}

// Significant is the probability below which a difference of ranks is no chance.
const Significant = 0.05

// RankTest returns the probability that two samples of one distribution differ as much in their ranks (Mann and
// Whitney). RankTest returns 1 if the samples are too small.
func RankTest(a, b []float64) float64 {
	r, err := stats.MannWhitneyUTest(a, b, stats.LocationDiffers)
	if err != nil { // all values are equal, or there are none
		return 1
	}
	return r.P
}

// Plus adds v to the sum at to. An unknown v changes nothing.
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

// PercentOf is part in percent of whole; null without a whole.
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
