package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

// CollectionProgress says why a prediction is made again.
func CollectionProgress(when string, g schemas.Garbage) string {
	found := prose.MiB(g.CollectedBytes) + " were freed by Python's garbage collector"
	if g.CollectedBytes == 0 {
		found = prose.MiB(g.LeftBytes) + " were left to Python's garbage collector"
	}
	if when == schemas.GarbageNever {
		return found + ", whose moments vary: predicting again without it"
	}
	return fmt.Sprintf("%s, whose moments vary: predicting again with garbage collected %s", found, when)
}
