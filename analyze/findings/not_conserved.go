package findings

import (
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// NotConservedFacts are the facts of a [NotConserved] finding. The bytes of a NotConserved finding are the residue.
type NotConservedFacts struct{ Conservation *memory.Conservation }

// notConserved reports a recording for which replayed bytes differ from torch's counters.
func (x *evidence) notConserved() []Finding {
	c := &x.d.Conservation
	if c.Verdict == schemas.Exact {
		return nil
	}
	f := x.finding(NotConserved)
	x.of(&f, c.ResidueBytes)
	f.Facts = NotConservedFacts{c}
	return []Finding{f}
}
