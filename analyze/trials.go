package analyze

import (
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// WithoutTrials leaves the trials of searches out of some runs, unless they were named, a baseline has them, or
// there is nothing else. Values that a predict --vary search tried are not experiments to check: the next search
// may try others. The baseline may be nil.
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
