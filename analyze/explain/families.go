package explain

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
)

// A PhaseFamily sums the phases that [memory.PhaseFamily] puts together: the single passes of a method with two
// passes cannot be compared with one pass.
type PhaseFamily struct {
	Name         string
	Members      []string
	FromMS, ToMS *float64
}

// DeltaMS is To's time less From's; a run that lacks the family takes none.
func (f *PhaseFamily) DeltaMS() float64 { return timing.OrZero(f.ToMS) - timing.OrZero(f.FromMS) }

// FamiliesOf sums the phases that can be compared by their families, in the order in which the families first come.
func FamiliesOf(phases []PhasePart) []PhaseFamily {
	var out []PhaseFamily
	for i := range phases {
		p := &phases[i]
		if p.DeltaMS == nil {
			continue
		}
		name := memory.PhaseFamily(p.Phase)
		k := slices.IndexFunc(out, func(f PhaseFamily) bool { return f.Name == name })
		if k < 0 {
			k, out = len(out), append(out, PhaseFamily{Name: name})
		}
		f := &out[k]
		f.Members = append(f.Members, p.Phase)
		timing.Plus(&f.FromMS, p.FromMS)
		timing.Plus(&f.ToMS, p.ToMS)
	}
	return out
}
