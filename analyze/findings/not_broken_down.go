package findings

import (
	"github.com/dpsight/dpsight/analyze/memory"
)

const latePercent = 0.1 // least percentage of the peak that the breakdown does not reach

// NotBrokenDownFacts are the facts of a [PeakNotBrokenDown] finding.
type NotBrokenDownFacts struct{ PeakBytes int64 }

// notBrokenDown reports a peak at a moment when no events were recorded.
func (x *evidence) notBrokenDown() []Finding {
	whole, peak := x.d.AllocatedBytes, x.run.PeakBytes
	if peak == nil || !memory.AtLeast(*peak-whole, *peak, latePercent) {
		return nil
	}
	f := x.finding(PeakNotBrokenDown)
	f.of(*peak-whole, *peak, OfPeakAllocated)
	f.Facts = NotBrokenDownFacts{*peak}
	return []Finding{f}
}
