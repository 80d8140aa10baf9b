package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// CollectionProgress says why a prediction is made again.
func CollectionProgress(when string, g schemas.Garbage) string {
	found := units.MiB(g.CollectedBytes) + " were freed by Python's garbage collector"
	if g.CollectedBytes == 0 {
		found = units.MiB(g.LeftBytes) + " were left to Python's garbage collector"
	}
	if when == schemas.GarbageNever {
		return found + ", whose moments vary: predicting again without it"
	}
	return fmt.Sprintf("%s, whose moments vary: predicting again with garbage collected %s", found, when)
}

// garbageReason says what Python's garbage collector has to do with the peak.
func garbageReason(r *confidence.Reason) string {
	switch r.Kind {
	case confidence.GarbageForced:
		return fmt.Sprintf("Python's garbage was collected %s, and not when Python does it", r.Name)
	case confidence.GarbageCollected:
		found := units.MiB(r.Bytes[0]) + " were freed by Python's garbage collector, whose moments vary: "
		if r.Name != "" {
			return found + "a run that ends by itself gives the range of the peak"
		}
		return found + "dpsight predict without --vary gives the range of the peak"
	case confidence.GarbageDecides:
		if !schemas.EndedByItself(r.Other) {
			return fmt.Sprintf("the peak where Python's garbage is collected %s is not known: that run did not end by "+
				"itself (%s)", r.Name, r.Other)
		}
		return fmt.Sprintf("where Python's garbage is collected %s the run ended otherwise: %s", r.Name, r.Other)
	case confidence.GarbageMatters:
		return fmt.Sprintf("when Python's garbage collector runs moves the peak allocated: from %s where garbage is "+
			"collected at once to %s where it never is", units.MiB(r.Bytes[0]), units.MiB(r.Bytes[1]))
	}
	panic("no words for the reason " + string(r.Kind))
}
