package findings

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
)

const latePercent = 0.1 // of the peak, that the breakdown does not reach

// notBrokenDown looks for a peak that came when no event was recorded.
func (x *evidence) notBrokenDown() []Finding {
	whole, peak := x.d.AllocatedBytes, x.run.PeakBytes
	if peak == nil || !memory.AtLeast(*peak-whole, *peak, latePercent) {
		return nil
	}
	f := x.finding(PeakNotBrokenDown)
	f.of(*peak-whole, *peak, OfPeakAllocated)
	f.bytes("peak by torch's counter", *peak, "ingest.json: devices[].torch_peak_allocated_bytes")
	f.bytes("highest recorded moment", whole, fmt.Sprintf("allocations.parquet: after event %d", x.d.At.Event))
	f.Sentence = fmt.Sprintf("The peak, %s, came when no event was recorded; what is broken down is %s, %s less.",
		prose.MiB(*peak), prose.MiB(whole), prose.MiB(*peak-whole))
	f.Change = "record more steps, with --record-steps"
	return []Finding{f}
}
