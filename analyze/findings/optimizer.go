package findings

import (
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const optimizerPercent = 5 // of the peak, temporaries of the optimizer's step

// optimizer looks at a peak that is the optimizer's: torch's foreach implementations hold temporaries of the size of
// all parameters. The category has what was born while noise was added, too, which no other optimizer would do without.
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
