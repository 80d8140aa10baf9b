package explain

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
)

// A PhaseFamily sums the phases of one family, see [memory.PhaseFamily]: one pass of a method with two backward passes
// cannot be compared with the only pass of another method.
type PhaseFamily struct {
	Name         string
	Members      []string
	FromMS, ToMS *float64
}

// DeltaMS returns To's time minus From's. A run that lacks the family counts as 0 ms.
func (f *PhaseFamily) DeltaMS() float64 { return timing.OrZero(f.ToMS) - timing.OrZero(f.FromMS) }

// FamiliesOf sums phases by family, in the order in which the families first come. FamiliesOf leaves out phases whose
// times cannot be compared.
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
