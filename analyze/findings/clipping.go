package findings

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const (
	perSamplePercent      = 10 // of the peak, per-sample gradients
	perSampleEmbedPercent = 2  // of the peak, those of embeddings
	clipPercent           = 5  // of the peak, temporaries of norms and clipping
)

// oneLayer are the methods that never hold the per-sample gradients of all layers at once, and noTable those of them
// that hold none of an embedding's either.
var (
	noTable  = []string{"ghost", "mixed_ghost", "flash", "bk", "flash_bk"}
	oneLayer = append([]string{"fgc"}, noTable...)
)

// perSample looks at per-sample gradients: of all layers, and of embeddings.
func (x *finder) perSample() []Finding {
	var out []Finding
	whole := x.d.AllocatedBytes
	held := x.bytesOf(schemas.PerSampleGradients)
	if memory.AtLeast(held, whole, perSamplePercent) {
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
		out = append(out, f)
	}
	if f := x.perSampleEmbedding(); f != nil {
		out = append(out, *f)
	}
	return out
}

// perSampleEmbedding is a finding of its own: an embedding's per-sample gradient has a whole table for each sample, of
// which the sample touches as many rows as it has tokens.
func (x *finder) perSampleEmbedding() *Finding {
	place := memory.CategoryPlace(schemas.PerSampleGradients)
	var held, largest int64
	var where *schemas.Module
	mine := map[int64]bool{}
	for i, a := range x.l.Allocs {
		m := x.embedding(i)
		if m == nil {
			continue
		}
		mine[a.AllocID] = true
		if !a.LiveAt(x.d.At.Event) {
			continue
		}
		if now, _ := x.l.Owner(i, x.d.At.Event); now == place {
			held += a.RequestedBytes
			if a.RequestedBytes > largest {
				where, largest = m, a.RequestedBytes
			}
		}
	}
	whole := x.d.AllocatedBytes
	if !memory.AtLeast(held, whole, perSampleEmbedPercent) {
		return nil
	}
	f := x.finding(PerSampleEmbedding)
	x.of(&f, held)
	f.bytes("per-sample gradients of embeddings", held, x.at(schemas.PerSampleGradients)+
		", modules.parquet: role embedding")
	f.bytes("parameters of "+grouping.ModulePath(where, 0), where.ParameterBytes, "modules.parquet: parameter_bytes")
	x.peakFigure(&f)
	f.Sentence = fmt.Sprintf("%s (%s) of %s are per-sample gradients of embeddings, the largest of %s: each sample "+
		"has a whole table (%s), of which it touches no more rows than it has tokens.",
		prose.MiB(held), prose.Share(float64(held), float64(whole)), x.peak, grouping.ModuleWords(where),
		prose.MiB(where.ParameterBytes))
	f.Change = "take the embedding's norm from ids and output gradients, as ghost clipping does, or keep its " +
		"per-sample gradient sparse"
	f.instead = noTable
	voids := x.held(schemas.PerSampleGradients, func(a *schemas.Allocation) bool { return mine[a.AllocID] })
	x.savesWithout(&f, voids, x.looked, "the embedding's norm needs no table of gradients; all other allocations "+
		"stay as they are")
	return &f
}

// embedding is the embedding that block i is a per-sample gradient of, nil if it is of none.
func (x *finder) embedding(i int) *schemas.Module {
	for _, o := range x.l.Owners[i] {
		if o.Category != schemas.PerSampleGradients {
			continue
		}
		m := x.modules.ByID[o.Module]
		if m == nil && o.Name != "" {
			m = x.modules.Enclosing(o.Name)
		}
		if m == nil {
			m = x.modules.ByID[x.l.Allocs[i].Module]
		}
		if m != nil && m.Role == roleEmbedding {
			return m
		}
	}
	return nil
}

const roleEmbedding = "embedding"

// clipping looks at what the computation of norms and clipped gradients holds for itself.
func (x *finder) clipping() []Finding {
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
