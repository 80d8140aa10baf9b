package findings

import (
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const unattributedPercent = 1 // least percentage of the peak under other or untraced

// UnattributedFacts are the facts of an [Unattributed] finding.
type UnattributedFacts struct {
	OtherBytes, UntracedBytes int64
	BetweenBytes              int64 // untraced bytes from between windows; the rest was live before recording
}

// unattributed reports bytes without an owner and the reason: no rule applies (other), or their allocation was not
// recorded (untraced).
func (x *evidence) unattributed() []Finding {
	other, untraced := x.bytesOf(schemas.Other), x.bytesOf(schemas.Untraced)
	if !memory.AtLeast(other+untraced, x.d.AllocatedBytes, unattributedPercent) {
		return nil
	}
	f := x.finding(Unattributed)
	x.of(&f, other+untraced)
	f.Facts = UnattributedFacts{other, untraced, x.untracedBetween()}
	x.line(&f, x.counted(schemas.Other, schemas.Untraced))
	return []Finding{f}
}

// untracedBetween returns how many of the untraced bytes at the peak were allocated between two windows of recorded
// steps.
func (x *evidence) untracedBetween() (bytes int64) {
	for i, a := range x.l.Allocs {
		if !a.LiveAt(x.d.At.Event) || grouping.Unseen(a) != grouping.BetweenWindows {
			continue
		}
		if now, _ := x.l.Category(i, x.d.At.Event); now == memory.CategoryPlace(schemas.Untraced) {
			bytes += a.RequestedBytes
		}
	}
	return bytes
}
