package findings

import (
	"github.com/dpsight/dpsight/analyze/clipping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const perSampleEmbedPercent = 2 // least percentage of the peak in per-sample gradients of embeddings

// PerSampleEmbeddingFacts are the facts of a [PerSampleEmbedding] finding.
type PerSampleEmbeddingFacts struct{ Largest *schemas.Module }

// perSampleEmbedding reports the per-sample gradients of embeddings. An embedding's per-sample gradient has a whole
// table for each sample, although a sample uses at most as many rows as it has tokens.
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
		if now, _ := x.l.Category(i, x.d.At.Event); now == place {
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
	f.Facts = PerSampleEmbeddingFacts{where}
	f.instead = clipping.NoTable
	ofEmbedding := func(a *schemas.Allocation) bool { return mine[a.AllocID] }
	x.line(&f, x.counted(schemas.PerSampleGradients).where(ofEmbedding))
	voids := x.held(schemas.PerSampleGradients, ofEmbedding)
	x.savesWithout(&f, voids, x.looked, AtMost)
	return []Finding{f}
}

// embedding returns the embedding whose per-sample gradient is in block i, or nil if the block is no such gradient.
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
