package report

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/analyze/prose"
)

// NoteRepeats adds to the warnings of runs that their stores have more repeats of them.
func NoteRepeats(found []explain.Repeats) {
	for i := range found {
		r := &found[i]
		r.Run.Warnings = append(slices.Clone(r.Run.Warnings), repeatsNote(r))
	}
}

// repeatsNote says what all repeats of a run take.
func repeatsNote(r *explain.Repeats) string {
	low, high := prose.MS(r.StepMS.Low), prose.MS(r.StepMS.High)
	if r.InPlace {
		return fmt.Sprintf("times are medians over %d repeats in the store, whose steps take %s to %s; that of run %s "+
			"takes %s", r.StepMS.N, low, high, r.Run.RunID, prose.MS(r.OwnMS))
	}
	who := "one"
	if r.Here > 1 {
		who = fmt.Sprint(r.Here)
	}
	return fmt.Sprintf("%s of %d repeats in the store: their medians go from %s to %s, median %s", who, r.StepMS.N, low,
		high, prose.MS(r.StepMS.Median))
}
