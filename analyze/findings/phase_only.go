package findings

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
)

const phaseOnlyPercent = 5 // of the peak, known by the phase of birth only

// phaseOnly looks at bytes of which nothing but the phase that they were born in is known.
func (x *evidence) phaseOnly() []Finding {
	whole := x.d.AllocatedBytes
	var phaseOnly int64
	var largest memory.CategoryBytes
	for _, c := range x.d.Categories {
		phaseOnly += c.PhaseOnlyBytes
		if c.PhaseOnlyBytes > largest.PhaseOnlyBytes {
			largest = c
		}
	}
	if !memory.AtLeast(phaseOnly, whole, phaseOnlyPercent) {
		return nil
	}
	f := x.finding(PhaseOnly)
	x.of(&f, phaseOnly)
	f.bytes("known by phase only", phaseOnly, fmt.Sprintf("owners.parquet: evidence phase after event %d",
		x.d.At.Event))
	f.bytes("of them "+prose.Words(largest.Category), largest.PhaseOnlyBytes, x.at(largest.Category))
	x.peakFigure(&f)
	f.Sentence = fmt.Sprintf("Of %s, %s (%s) are known by nothing but the phase that they were born in, %s of "+
		"them as %s.",
		x.peak, prose.MiB(phaseOnly), prose.Share(float64(phaseOnly), float64(whole)),
		prose.MiB(largest.PhaseOnlyBytes),
		prose.Words(largest.Category))
	f.Change = "name the tensors with dpsight.tag(tensor, category), or the code with dpsight.phase(name)"
	return []Finding{f}
}
