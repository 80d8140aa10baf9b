package findings

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/timing"
)

// BesideFacts are the facts of an [OtherProcess] finding. BesideFacts compare the timed steps in which another process
// was on the GPU with the other sampled steps.
type BesideFacts struct {
	Steps, Sampled int
	Clock          string
	Medians        *[2]float64 // median of the steps in which it happened, and of the others; nil without enough of both
}

// againstOthers compares the median time of the listed steps with the median time of the other sampled steps, if both
// groups have enough steps.
func (f *Finding) againstOthers(t *timing.Times, listed, sampled []int) BesideFacts {
	beside := BesideFacts{Steps: len(listed), Sampled: len(sampled), Clock: t.Clock}
	var with, without []int64
	for _, i := range sampled {
		if _, ok := slices.BinarySearch(listed, i); ok { // both lists are in the order of steps
			with = append(with, t.NS(&t.Steps[i]))
		} else {
			without = append(without, t.NS(&t.Steps[i]))
		}
	}
	if len(with) < leastCompared || len(without) < leastCompared {
		return beside
	}
	a, b := timing.IntervalOver(with, t.Clock).Median, timing.IntervalOver(without, t.Clock).Median
	beside.Medians = &[2]float64{a, b}
	f.ofStep(max(a-b, 0), a)
	f.SavesMS, f.Confidence = new(max(a-b, 0)), Measured
	return beside
}
