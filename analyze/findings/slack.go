package findings

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const slackPercent = 2 // of the peak, bytes beyond what was requested

// slack looks at what blocks have beyond what was asked for.
func (x *evidence) slack() []Finding {
	held, whole := x.bytesOf(schemas.Slack), x.d.AllocatedBytes
	if !memory.AtLeast(held, whole, slackPercent) {
		return nil
	}
	f := x.finding(Slack)
	x.of(&f, held)
	f.bytes("slack", held, fmt.Sprintf("allocations.parquet: block_bytes less requested_bytes after event %d",
		x.d.At.Event))
	x.peakFigure(&f)
	f.Sentence = fmt.Sprintf("%s (%s) of %s were never asked for: requests are rounded up, and a remainder of up to "+
		"1 MiB stays with a large block.",
		prose.MiB(held), prose.Share(float64(held), float64(whole)), x.peak)
	f.Change = "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, which splits off remainders from 512 bytes on; " +
		"check roundup_power2_divisions if it is set"
	var voids []memory.Void
	for _, a := range x.l.Allocs {
		end := a.FreeRequestedSeq
		if end == 0 {
			end = 1 << 62
		}
		if a.BlockBytes > a.RequestedBytes {
			voids = append(voids, memory.Void{From: a.AllocSeq, To: end, Bytes: a.BlockBytes - a.RequestedBytes})
		}
	}
	x.savesWithout(&f, voids, x.looked, "at most: each block is as large as its request")
	return []Finding{f}
}
