package findings

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/analyze/timing"
)

// againstOthers compares the medians of the steps listed and of the others that were sampled, where there are enough of
// both.
func (f *Finding) againstOthers(t *timing.Times, listed, sampled []int, others string) {
	var with, without []int64
	for _, i := range sampled {
		if _, ok := slices.BinarySearch(listed, i); ok { // both are in the order of steps
			with = append(with, t.NS(&t.Steps[i]))
		} else {
			without = append(without, t.NS(&t.Steps[i]))
		}
	}
	if len(with) < leastCompared || len(without) < leastCompared {
		if len(without) == 0 {
			f.Sentence += " All timed steps were alike in that, so what it cost cannot be told."
		}
		return
	}
	a, b := timing.IntervalOver(with, t.Clock), timing.IntervalOver(without, t.Clock)
	f.milliseconds("median of these", a.Median, "steps.parquet: "+clockColumn(t.Clock))
	f.milliseconds("median of the others", b.Median, "steps.parquet: "+clockColumn(t.Clock))
	f.ofStep(max(a.Median-b.Median, 0), a.Median)
	f.SavesMS, f.Assumption = new(max(a.Median-b.Median, 0)), "all else is equal in the steps "+others
	f.Sentence += fmt.Sprintf(" Their median is %s, that of the others %s.", prose.MS(a.Median), prose.MS(b.Median))
}

func clockColumn(clock string) string {
	if clock == timing.ClockGPU {
		return "gpu_ns"
	}
	return "wall_ns"
}
