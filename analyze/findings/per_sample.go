package findings

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const perSamplePercent = 10 // of the peak, per-sample gradients

// perSample looks at the per-sample gradients of all layers.
func (x *evidence) perSample() []Finding {
	whole := x.d.AllocatedBytes
	held := x.bytesOf(schemas.PerSampleGradients)
	if !memory.AtLeast(held, whole, perSamplePercent) {
		return nil
	}
	f := x.finding(PerSample)
	x.of(&f, held)
	f.bytes("per-sample gradients", held, x.at(schemas.PerSampleGradients))
	x.peakFigure(&f)
	f.Sentence = fmt.Sprintf("Per-sample gradients are %s (%s) of %s", prose.MiB(held), prose.Share(float64(held),
		float64(whole)), x.peak)
	if m, bytes := x.largestModule(schemas.PerSampleGradients); m != nil {
		f.bytes("of them "+grouping.ModulePath(m, 0), bytes, x.at(schemas.PerSampleGradients)+", modules.parquet")
		f.Sentence += fmt.Sprintf("; the largest part, %s, is of %s", prose.MiB(bytes), grouping.ModuleWords(m))
	}
	f.Sentence += "."
	f.Change = "use a method that never holds the per-sample gradients of all layers: fast gradient clipping, " +
		"ghost clipping, tiles or book-keeping"
	f.instead = oneLayer
	if x.run.Method() == "fgc" { // it is one already
		f.Change, f.instead = "use a method that holds no layer's per-sample gradients: ghost clipping, tiles or "+
			"book-keeping", noTable
	}
	x.savesWithout(&f, x.held(schemas.PerSampleGradients, nil), x.looked, "at most: no per-sample gradient is "+
		"ever held, and the other method holds nothing in their place")
	return []Finding{f}
}
