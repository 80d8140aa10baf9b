package findings

import (
	"github.com/dpsight/dpsight/analyze/clipping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const perSamplePercent = 10 // least percentage of the peak in per-sample gradients

// PerSampleFacts are the facts of a [PerSample] finding.
type PerSampleFacts struct {
	Largest   ModulePart
	Layerwise bool // the method never holds the per-sample gradients of all layers
}

// perSample reports the per-sample gradients that all layers together hold at the peak.
func (x *evidence) perSample() []Finding {
	whole := x.d.AllocatedBytes
	held := x.bytesOf(schemas.PerSampleGradients)
	if !memory.AtLeast(held, whole, perSamplePercent) {
		return nil
	}
	f := x.finding(PerSample)
	x.of(&f, held)
	layerwise := x.run.Method() == "fgc"
	f.Facts = PerSampleFacts{x.largestModule(schemas.PerSampleGradients), layerwise}
	f.instead = clipping.OneLayer
	if layerwise {
		f.instead = clipping.NoTable
	}
	x.line(&f, x.counted(schemas.PerSampleGradients))
	x.savesWithout(&f, x.held(schemas.PerSampleGradients, nil), x.looked, AtMost)
	return []Finding{f}
}
