package memory

import (
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// PhasesWithBytes returns a function that reports whether a phase's bytes are known. A phase's bytes are unknown in
// steps without events, and if the phase lies partly between two windows of recorded steps, or after the last window.
// Rows of such phases have zeros and no event to count from. Rows of phases before the first event look the same, but
// their bytes are known: nothing was allocated.
func PhasesWithBytes(in *schemas.Tables) func(*schemas.Phase) bool {
	if in.Manifest.FiguresOnly() { // the run has no events; unknown values are null already
		return func(f *schemas.Phase) bool {
			return f.AllocatedBegin != nil || f.AllocatedEnd != nil || f.PeakBytes != nil
		}
	}
	type key struct {
		identity.Place
		step int64
	}
	without := map[key]bool{}
	for i := range in.Steps {
		if s := &in.Steps[i]; !s.Recorded {
			without[key{identity.Place{Rank: s.Rank, Device: s.Device}, s.Step}] = true
		}
	}
	first := map[identity.Place]int64{} // mark at which the first phase with an event begins, by device
	for i := range in.Phases {
		f := &in.Phases[i]
		p := identity.Place{Rank: f.Rank, Device: f.Device}
		if k, ok := first[p]; f.EndSeq > 0 && (!ok || f.BeginK < k) {
			first[p] = f.BeginK
		}
	}
	return func(f *schemas.Phase) bool {
		p := identity.Place{Rank: f.Rank, Device: f.Device}
		k, ok := first[p]
		return !without[key{p, f.Step}] && (f.EndSeq > 0 || !ok || f.BeginK <= k)
	}
}
