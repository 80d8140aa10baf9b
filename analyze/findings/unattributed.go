package findings

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const unattributedPercent = 1 // of the peak, under other or untraced

// unattributed looks at what has no owner, and why: no rule fits, or nobody saw it made.
func (x *evidence) unattributed() []Finding {
	other, untraced := x.bytesOf(schemas.Other), x.bytesOf(schemas.Untraced)
	if !memory.AtLeast(other+untraced, x.d.AllocatedBytes, unattributedPercent) {
		return nil
	}
	between := x.untracedBetween()
	before := untraced - between
	f := x.finding(Unattributed)
	x.of(&f, other+untraced)
	f.bytes("other", other, x.at(schemas.Other))
	f.bytes("untraced", untraced, x.at(schemas.Untraced))
	f.Change = "name the tensors with dpsight.tag(tensor, category)"
	var parts []string
	if before > 0 {
		parts = append(parts, prose.MiB(before)+" were live before recording began")
		f.Change += "; start the script under dpsight collect, so that nothing is allocated before recording begins"
	}
	if between > 0 {
		f.bytes("of it made between windows", between, "allocations.parquet: alloc_seq of the window, without a phase")
		parts = append(parts, prose.MiB(between)+" were made in steps that were not recorded")
		f.Change += "; record more steps, with --record-steps or --window-steps"
	}
	if other > 0 {
		parts = append(parts, prose.MiB(other)+" fit no rule")
	}
	x.peakFigure(&f)
	f.Sentence = fmt.Sprintf("Of %s, %s (%s) have no owner: %s.", x.peak, prose.MiB(other+untraced),
		prose.Share(float64(other+untraced), float64(x.d.AllocatedBytes)), prose.JoinWords(parts))
	return []Finding{f}
}

// untracedBetween is what of the untraced bytes was allocated between two windows of recorded steps.
func (x *evidence) untracedBetween() (bytes int64) {
	for i, a := range x.l.Allocs {
		if !a.LiveAt(x.d.At.Event) || grouping.Unseen(a) != grouping.BetweenWindows {
			continue
		}
		if now, _ := x.l.Owner(i, x.d.At.Event); now == memory.CategoryPlace(schemas.Untraced) {
			bytes += a.RequestedBytes
		}
	}
	return bytes
}
