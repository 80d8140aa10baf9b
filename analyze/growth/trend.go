package growth

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
)

const (
	least = 8 // least number of lows: fewer show nothing
	// most is the largest number of lows that are compared. A longer series is divided into this many stretches, and
	// the lowest of each is taken, since comparing all pairs would take too long.
	most = 400
	// alpha is the accepted probability that lows in random order are called rising, over all series of a run together.
	alpha = 0.001
	parts = 8 // number of equal parts of a series that show whether the growth is spread over all of it
	// risingParts is how many of the rises from part to part must be at least a quarter of the average rise. The last
	// rise must in any case be at least a quarter of the average rise, because otherwise the growth has ended.
	risingParts = 5
	partOfRise  = 4
	// jump limits by how much a low may exceed the low before it: this many times the median growth per step. A larger
	// rise in the first quarter of a series is warm-up, such as a library's workspace, and the series begins after the
	// rise.
	jump = 8
	// z95 is the quantile of the normal distribution for bounds with a confidence of 95 %.
	z95 = 1.96
)

// A Trend describes how a series of lows rises.
type Trend struct {
	First, Last Low
	Lows        int // number of lows on which the trend is based
	// Slope is the median slope over all pairs of lows (Theil and Sen), in bytes per step. The true slope lies
	// between SlopeLow and SlopeHigh with a confidence of 95 %.
	Slope, SlopeLow, SlopeHigh float64
	// Tau is Kendall's tau: 1 if each low is above all lows before it. P is the probability that lows in random order
	// have a tau at least as high.
	Tau, P float64
	// Steady is true if both halves of the series rise, and the slope of one half is at most twice the slope of the
	// other.
	Steady bool
}

// trendOf finds the longest growth of a series of lows that continues at its end: of the whole series, or of its last
// three quarters or half. trendOf returns nil if there is no such growth. looks is the number of series of the run that
// are examined.
func trendOf(lows []Low, looks int) *Trend {
	lows = condensed(lows)
	n := len(lows)
	if n < least {
		return nil
	}
	ends := slices.Compact([]int{n, max(least, n*3/4), max(least, n/2)})
	for _, k := range ends {
		if t := steadyTrend(lows[n-k:], alpha/float64(looks*len(ends))); t != nil && t.isHigh(lows[:n-k]) {
			return t
		}
	}
	return nil
}

// isHigh reports whether no earlier low lies far above the beginning of the trend: none exceeds its first low by more
// than a quarter of its rise. isHigh is false for the last tooth of a sawtooth.
func (t *Trend) isHigh(before []Low) bool {
	return !slices.ContainsFunc(before, func(l Low) bool {
		return l.Bytes > t.First.Bytes+(t.Last.Bytes-t.First.Bytes)/partOfRise
	})
}

// condensed returns the lows, or, if there are too many, the lowest of each of a fixed number of stretches.
func condensed(lows []Low) []Low {
	n := len(lows)
	if n <= most {
		return lows
	}
	out := make([]Low, most)
	for i := range out {
		out[i] = slices.MinFunc(lows[n*i/most:n*(i+1)/most], func(a, b Low) int { return cmp.Compare(a.Bytes, b.Bytes) })
	}
	return out
}

// steadyTrend returns the trend of a whole series, or nil if the series does not rise steadily.
func steadyTrend(lows []Low, alpha float64) *Trend {
	lows = lows[warmup(lows):]
	n := len(lows)
	tau, p := kendall(lows)
	if n < least || tau <= 0 || p > alpha || !spread(lows) {
		return nil
	}
	t := &Trend{First: lows[0], Last: lows[n-1], Lows: n, Tau: tau, P: p}
	all := slopes(lows)
	t.Slope = middle(all)
	if t.Slope <= 0 || t.Last.Bytes <= t.First.Bytes {
		return nil
	}
	// The bounds are two slopes on both sides of the median slope. The bounds' distance from the median in rank is the
	// distance by which the score of lows in random order varies (Sen 1968).
	away := z95 * math.Sqrt(float64(n*(n-1)*(2*n+5))/18) / 2
	half := float64(len(all)-1) / 2
	t.SlopeLow = all[int(max(0, math.Floor(half-away)))]
	t.SlopeHigh = all[int(min(float64(len(all)-1), math.Ceil(half+away)))]
	first, second := middle(slopes(lows[:n/2])), middle(slopes(lows[n/2:]))
	t.Steady = min(first, second) > 0 && max(first, second) <= 2*min(first, second)
	return t
}

// warmup returns how many lows at the beginning of a series come before a rise that is far larger than the series'
// median growth.
func warmup(lows []Low) (n int) {
	slope := middle(slopes(lows))
	for i := 1; i <= len(lows)/4 && len(lows)-i >= least; i++ {
		if rise := float64(lows[i].Bytes - lows[i-1].Bytes); slope > 0 &&
			rise > jump*slope*float64(lows[i].At-lows[i-1].At) {
			n = i
		}
	}
	return n
}

// slopes returns the slopes between all pairs of lows, sorted.
func slopes(lows []Low) []float64 {
	out := make([]float64, 0, len(lows)*(len(lows)-1)/2)
	for j := range lows {
		for i := range j {
			out = append(out, float64(lows[j].Bytes-lows[i].Bytes)/float64(lows[j].At-lows[i].At))
		}
	}
	slices.Sort(out)
	return out
}

// middle returns the median of sorted values, 0 for none.
func middle(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spread reports whether a series rises over its whole length and keeps its rise. From nearly each part to the
// next, the median must rise by at least a quarter of the average rise. No part may fall below an earlier one by
// more than a quarter of the whole rise. No low of the last part may lie below the middle of the series.
func spread(lows []Low) bool {
	if len(lows) < parts {
		return false
	}
	var bytes, steps [parts]float64
	var lowest float64 // lowest value of the last part
	for k := range parts {
		var b, s []float64
		for _, l := range lows[len(lows)*k/parts : len(lows)*(k+1)/parts] {
			b, s = append(b, float64(l.Bytes)), append(s, float64(l.At))
		}
		slices.Sort(b)
		bytes[k], steps[k], lowest = middle(b), middle(s), b[0]
	}
	quarter, length := (bytes[parts-1]-bytes[0])/partOfRise, steps[parts-1]-steps[0]
	if quarter <= 0 || lowest <= (bytes[parts/2-1]+bytes[parts/2])/2 {
		return false
	}
	rising, last := 0, false
	for k := 1; k < parts; k++ {
		if bytes[k] < slices.Max(bytes[:k])-quarter {
			return false
		}
		if last = bytes[k]-bytes[k-1] >= quarter*(steps[k]-steps[k-1])/length; last {
			rising++
		}
	}
	return last && rising >= risingParts
}

// kendall returns tau, and the probability of a tau as high for lows in random order (Mann 1945, Kendall 1975). The
// probability is exact if the lows are few and all differ; otherwise it comes from the normal approximation.
func kendall(lows []Low) (tau, p float64) {
	n := len(lows)
	score, equal := 0, 0
	for j := range lows {
		for i := range j {
			c := cmp.Compare(lows[j].Bytes, lows[i].Bytes)
			if score += c; c == 0 {
				equal++
			}
		}
	}
	pairs := n * (n - 1) / 2
	if pairs == equal {
		return 0, 1
	}
	tau = float64(score) / math.Sqrt(float64(pairs)*float64(pairs-equal))
	if equal == 0 && n <= 2*least {
		return tau, inOrder(n, (pairs-score)/2)
	}
	deviation := math.Sqrt(float64(n*(n-1)*(2*n+5)-tied(lows)) / 18)
	return tau, math.Erfc(float64(score-1)/deviation/math.Sqrt2) / 2
}

// tied returns by how much equal lows reduce 18 times the variance of Kendall's score.
func tied(lows []Low) (sum int) {
	counts := map[int64]int{}
	for _, l := range lows {
		counts[l.Bytes]++
	}
	for _, t := range counts {
		sum += t * (t - 1) * (2*t + 5)
	}
	return sum
}

// inOrder returns, of all orders of n lows, the share in which at most the given number of pairs are in the wrong
// order.
func inOrder(n, wrong int) (share float64) {
	shares := []float64{1} // share of the orders of k lows, by the number of such pairs
	for k := 2; k <= n; k++ {
		next := make([]float64, len(shares)+k-1)
		for i, s := range shares {
			for j := range k { // the k-th low comes before j of the other lows
				next[i+j] += s / float64(k)
			}
		}
		shares = next
	}
	for _, s := range shares[:wrong+1] {
		share += s
	}
	return share
}

const (
	stepThousandths = 1 // least thousandths of the peak that a step adds
	percentInAll    = 1 // least percentage of the peak that all steps add
)

// matters reports whether a trend is large enough, in relation to the peak, to be reported.
func (t *Trend) matters(peak int64) bool {
	return t.Slope*1000 >= float64(peak)*stepThousandths || memory.AtLeast(t.Last.Bytes-t.First.Bytes, peak, percentInAll)
}
