package findings

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/timing"
)

const (
	unsteadyPercent = 20 // least percentage of the median step between the tenth and the ninetieth percentile
	leastUnsteady   = 5  // least number of steps
	leastCompared   = 3  // least number of steps on each side of a comparison
)

// UnsteadyFacts are the facts of an [UnsteadySteps] finding: the tenth and the ninetieth percentile, in
// milliseconds.
type UnsteadyFacts struct {
	Steps             int
	Low, High, Median float64
	Clock             string
}

// unsteady reports timed steps whose times differ too much between the tenth and the ninetieth percentile.
func (x *evidence) unsteady() []Finding {
	t := timing.Of(x.in)
	if len(t.Steps) < leastUnsteady {
		return nil
	}
	var ns []int64
	for i := range t.Steps {
		ns = append(ns, t.NS(&t.Steps[i]))
	}
	slices.Sort(ns)
	n := len(ns)
	low, high := float64(ns[n/10])/1e6, float64(ns[n-1-n/10])/1e6
	median := timing.IntervalOver(ns, t.Clock).Median
	if median <= 0 || high-low < unsteadyPercent/100.0*median {
		return nil
	}
	f := Finding{ID: UnsteadySteps}
	f.ofStep(high-low, median)
	f.Facts = UnsteadyFacts{Steps: n, Low: low, High: high, Median: median, Clock: t.Clock}
	return []Finding{f}
}
