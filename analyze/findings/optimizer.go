package findings

import (
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const optimizerPercent = 5 // least percentage of the peak in temporaries of the optimizer's step

// optimizer checks whether the peak lies in the optimizer: torch's foreach implementations hold temporaries as large as
// all parameters. The category optimizer temporaries also contains temporaries of adding noise, which another optimizer
// would not avoid, so they do not count.
func (x *evidence) optimizer() []Finding {
	own := func(a *schemas.Allocation) bool { return a.Phase == schemas.PhaseOptimizer }
	held, whole := x.bytesAtPeak(schemas.OptimizerTemporaries, own), x.d.AllocatedBytes
	if !memory.AtLeast(held, whole, optimizerPercent) {
		return nil
	}
	f := x.finding(OptimizerPeak)
	x.of(&f, held)
	x.line(&f, x.counted(schemas.OptimizerTemporaries).where(own))
	x.savesWithout(&f, x.held(schemas.OptimizerTemporaries, own), x.looked, AtMost)
	return []Finding{f}
}
