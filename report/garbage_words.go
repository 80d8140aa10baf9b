package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// CollectionProgress says why a prediction is repeated with other times of garbage collection.
func CollectionProgress(when string, g schemas.Garbage) string {
	found := "Python's garbage collector freed " + units.MiB(g.CollectedBytes)
	if g.CollectedBytes == 0 {
		found = "Python's garbage collector had " + units.MiB(g.LeftBytes) + " left to free"
	}
	if when == schemas.GarbageNever {
		return found + ", at moments that vary: predicting again without it"
	}
	return fmt.Sprintf("%s, at moments that vary: predicting again with garbage collected %s", found, when)
}

// garbageReason says how Python's garbage collector affects the peak.
func garbageReason(r *confidence.Reason) string {
	switch r.Kind {
	case confidence.GarbageForced:
		return fmt.Sprintf("Python's garbage was collected %s, not when Python does it", r.Name)
	case confidence.GarbageCollected:
		found := "Python's garbage collector freed " + units.MiB(r.Bytes[0]) + ", at moments that vary: "
		if r.Name != "" {
			return found + "a run that ends by itself gives the range of the peak"
		}
		return found + "dpsight predict without --vary gives the range of the peak"
	case confidence.GarbageDecides:
		if !schemas.EndedByItself(r.Other) {
			return fmt.Sprintf("the peak with Python's garbage collected %s is unknown: that run did not end by itself "+
				"(%s)", r.Name, r.Other)
		}
		return fmt.Sprintf("with Python's garbage collected %s, the run ended differently: %s", r.Name, r.Other)
	case confidence.GarbageMatters:
		return fmt.Sprintf("the peak allocated depends on when Python's garbage collector runs: from %s if garbage is "+
			"collected at once to %s if it never is", units.MiB(r.Bytes[0]), units.MiB(r.Bytes[1]))
	}
	panic("no words for the reason " + string(r.Kind))
}
