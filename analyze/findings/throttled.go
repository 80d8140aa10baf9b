package findings

import (
	"github.com/dpsight/dpsight/analyze/timing"
)

// ThrottledFacts are the facts of a [Throttled] finding. Reasons are bits, as in [schemas.ThrottleNames].
type ThrottledFacts struct {
	BesideFacts
	Reasons int64
}

// throttled reports timed steps in which the GPU's clock was slowed down.
func (x *evidence) throttled() []Finding {
	t := timing.Of(x.in)
	slowed, sampled, reasons := timing.During(x.in, &t, timing.Throttling)
	n := len(slowed)
	if n == 0 {
		return nil
	}
	f := Finding{ID: Throttled}
	beside := f.againstOthers(&t, slowed, sampled)
	f.Facts = ThrottledFacts{beside, reasons}
	return []Finding{f}
}
