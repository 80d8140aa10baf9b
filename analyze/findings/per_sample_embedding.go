package findings

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const perSampleEmbedPercent = 2 // of the peak, those of embeddings

// perSampleEmbedding is a finding of its own: an embedding's per-sample gradient has a whole table for each sample, of
// which the sample touches as many rows as it has tokens.
func (x *evidence) perSampleEmbedding() []Finding {
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
	return []Finding{f}
}

// embedding is the embedding that block i is a per-sample gradient of, nil if it is of none.
func (x *evidence) embedding(i int) *schemas.Module {
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
