package findings

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const earlierPercent = 5 // least percentage of the peak that graphs of other steps hold

// earlierGraph looks for activations at the peak that autograd holds for an earlier step or evaluation pass. A name in
// the script still refers to the result of that step or pass. So no backward pass has freed these activations, or the
// backward pass kept the graph. If such activations add up from step to step, the finding is a growth.
func (x *evidence) earlierGraph() []Finding {
	if x.grows != nil {
		return nil
	}
	now := x.stepOf(x.d.At.Event)
	if now == nil {
		return nil
	}
	earlier := func(a *schemas.Allocation) bool {
		made := x.stepOf(a.AllocSeq)
		return made != nil && made.To <= now.From
	}
	f := x.needless(EarlierGraph, earlierPercent, earlier)
	if f == nil {
		return nil
	}
	x.savesWithout(f, slices.DeleteFunc(x.outliving(schemas.Activations), func(v memory.Void) bool {
		return v.From >= v.To
	}), x.looked, AtLeast)
	return []Finding{*f}
}

// outliving returns the stretches in which blocks count under a category after the end of the step, or of the pass,
// that allocated them.
func (x *evidence) outliving(c schemas.Category) (out []memory.Void) {
	for i, a := range x.l.Allocs {
		made := x.stepOf(a.AllocSeq)
		if made == nil || !a.LiveAt(made.To+1) {
			continue
		}
		for _, v := range x.heldBy(i, c) {
			v.From = max(v.From, made.To+1)
			out = append(out, v)
		}
	}
	return out
}
