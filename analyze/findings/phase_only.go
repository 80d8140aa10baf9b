package findings

import (
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const phaseOnlyPercent = 5 // least percentage of the peak in blocks of which only the phase of birth is known

// PhaseOnlyFacts are the facts of a [PhaseOnly] finding.
type PhaseOnlyFacts struct{ Largest NamedBytes }

// phaseOnly reports bytes whose category is known only from the phase in which they were allocated.
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
	f.Facts = PhaseOnlyFacts{NamedBytes{largest.Category, largest.PhaseOnlyBytes}}
	x.line(&f, func(i int, a *schemas.Allocation) int64 {
		if !a.LiveAt(x.d.At.Event) {
			return 0
		}
		if _, known := x.l.Category(i, x.d.At.Event); known != schemas.ByPhase {
			return 0
		}
		return a.RequestedBytes
	})
	return []Finding{f}
}
