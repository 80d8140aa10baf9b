package analyze

import (
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// WithoutTrials leaves out the runs that are trials of a predict --vary search. WithoutTrials keeps trials that the
// user named, trials that the baseline has, and all trials if there are no other runs. The trials of a search are not
// experiments to check, since the next search may try other values. The baseline may be nil.
func WithoutTrials[R any](runs []R, manifest func(R) *schemas.Manifest, named func(R) bool,
	baseline *schemas.Baseline) []R {
	held := map[string]bool{}
	if baseline != nil {
		for i := range baseline.Experiments {
			if key := baseline.Experiments[i].Key; key != nil {
				held[*key] = true
			}
		}
	}
	kept := slices.DeleteFunc(slices.Clone(runs), func(r R) bool {
		ref := manifest(r).Suite
		return ref != nil && ref.Search && !named(r) && !held[ref.Key]
	})
	if len(kept) == 0 {
		return runs
	}
	return kept
}
