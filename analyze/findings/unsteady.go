package findings

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/analyze/timing"
)

const (
	unsteadyPercent = 20 // of the median step, between the tenth and the ninetieth percentile
	leastUnsteady   = 5  // steps
	leastCompared   = 3  // steps on each side of a comparison
)

// unsteady looks at how far the timed steps lie apart.
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
	from := "steps.parquet: " + clockColumn(t.Clock) + " of the timed steps"
	f.ofStep(high-low, median)
	f.milliseconds("tenth percentile", low, from)
	f.milliseconds("median", median, from)
	f.milliseconds("ninetieth percentile", high, from)
	f.Sentence = fmt.Sprintf("Timed steps are not alike: of %d, four fifths take between %s and %s, %s of the median "+
		"(%s) apart.", n, prose.MS(low), prose.MS(high), prose.Share(high-low, median), prose.MS(median))
	f.Change = "time more steps, or look for what differs between them (batch sizes, data loading, evaluation)"
	return []Finding{f}
}
