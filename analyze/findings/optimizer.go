package findings

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
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
	f.bytes("optimizer temporaries", held, x.at(schemas.OptimizerTemporaries)+", born in phase "+schemas.PhaseOptimizer)
	x.peakFigure(&f)
	f.Sentence = fmt.Sprintf("%s (%s) of %s are temporaries of the optimizer's step.", prose.MiB(held),
		prose.Share(float64(held), float64(whole)), x.peak)
	f.Change = "use the optimizer with fused=True, or with foreach=False, which updates one parameter after another"
	x.savesWithout(&f, x.held(schemas.OptimizerTemporaries, own), x.looked, "at most: the step holds no temporary; "+
		"all other allocations stay as they are")
	return []Finding{f}
}
