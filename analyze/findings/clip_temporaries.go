package findings

import (
	"github.com/dpsight/dpsight/analyze/clipping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const clipPercent = 5 // least percentage of the peak in temporaries of norms and clipping

// ClipTemporariesFacts are the facts of a [ClipTemporaries] finding.
type ClipTemporariesFacts struct {
	Largest ModulePart
	Advice  []clipping.Advice // alternative changes; none if norms are already computed by tiles
}

// clipping reports temporaries that the computation of norms and clipped gradients holds at the peak.
func (x *evidence) clipping() []Finding {
	held, whole := x.bytesOf(schemas.ClipTemporaries), x.d.AllocatedBytes
	if !memory.AtLeast(held, whole, clipPercent) {
		return nil
	}
	f := x.finding(ClipTemporaries)
	x.of(&f, held)
	facts := ClipTemporariesFacts{Largest: x.largestModule(schemas.ClipTemporaries)}
	normBy := ""
	if m := facts.Largest.Module; m != nil {
		normBy = m.NormBy
	}
	facts.Advice, f.instead = clipping.AdviceFor(x.run.Method(), normBy, x.in.Manifest.Privacy)
	f.Facts = facts
	x.line(&f, x.counted(schemas.ClipTemporaries))
	x.savesWithout(&f, x.held(schemas.ClipTemporaries, nil), x.looked, AtMost)
	return []Finding{f}
}
