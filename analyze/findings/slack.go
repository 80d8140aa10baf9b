package findings

import (
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const slackPercent = 2 // least percentage of the peak in bytes beyond the requests

// SlackFacts are the facts of a [Slack] finding: the settings that decide what can be changed.
type SlackFacts struct {
	Expandable bool // torch has expandable segments, which leave no remainder larger than 512 bytes in a block
	RoundsUp   bool // roundup_power2_divisions is set
}

// slack reports the bytes by which blocks at the peak exceed their requests.
func (x *evidence) slack() []Finding {
	held, whole := x.bytesOf(schemas.Slack), x.d.AllocatedBytes
	if !memory.AtLeast(held, whole, slackPercent) {
		return nil
	}
	f := x.finding(Slack)
	x.of(&f, held)
	x.line(&f, func(_ int, a *schemas.Allocation) int64 {
		if !a.LiveAt(x.d.At.Event) {
			return 0
		}
		return a.BlockBytes - a.RequestedBytes
	})
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
	facts := SlackFacts{Expandable: expandable(x.in), RoundsUp: roundsUp(x.in)}
	f.Facts = facts
	if !facts.Expandable || facts.RoundsUp {
		x.savesWithout(&f, voids, x.looked, AtMost)
	}
	return []Finding{f}
}
