package findings

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const clipPercent = 5 // of the peak, temporaries of norms and clipping

// oneLayer are the methods that never hold the per-sample gradients of all layers at once, and noTable those of them
// that hold none of an embedding's either.
var (
	noTable  = []string{"ghost", "mixed_ghost", "flash", "bk", "flash_bk"}
	oneLayer = append([]string{"fgc"}, noTable...)
)

// clipping looks at what the computation of norms and clipped gradients holds for itself.
func (x *evidence) clipping() []Finding {
	held, whole := x.bytesOf(schemas.ClipTemporaries), x.d.AllocatedBytes
	if !memory.AtLeast(held, whole, clipPercent) {
		return nil
	}
	f := x.finding(ClipTemporaries)
	x.of(&f, held)
	f.bytes("clip temporaries", held, x.at(schemas.ClipTemporaries))
	x.peakFigure(&f)
	f.Sentence = fmt.Sprintf("%s (%s) of %s, %s, are temporaries of norms and clipping", prose.MiB(held),
		prose.Share(float64(held), float64(whole)), x.peak, memory.When(&x.d.At))
	normBy := ""
	if m, bytes := x.largestModule(schemas.ClipTemporaries); m != nil {
		f.bytes("of them "+grouping.ModulePath(m, 0), bytes, x.at(schemas.ClipTemporaries)+", modules.parquet")
		f.Sentence += fmt.Sprintf(", %s of them in %s", prose.MiB(bytes), grouping.ModuleWords(m))
		switch normBy = m.NormBy; {
		case normBy == normGhost:
			f.Sentence += ", whose norm comes from two T×T Gram matrices for each sample"
		case normBy == normPerSample:
			f.Sentence += ", whose norm comes from its per-sample gradient"
		case strings.HasPrefix(normBy, normTiled):
			f.Sentence += ", whose norm is taken by tiles"
		}
	}
	f.Sentence += "."
	f.Change, f.instead = clipAdvice(x.run.Method(), normBy, x.in.Manifest.Privacy)
	if f.instead != nil {
		f.besides = sumAdvice(x.run.Method(), x.in.Manifest.Privacy)
	}
	x.savesWithout(&f, x.held(schemas.ClipTemporaries, nil), x.looked, "at most: norms and clipping would need no "+
		"memory of their own")
	return []Finding{f}
}
