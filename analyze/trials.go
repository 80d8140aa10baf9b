package analyze

import (
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// WithoutTrials leaves the trials of searches out of some runs, unless they were named, a baseline has them, or there
// is nothing else: values that a search of predict --vary passed by are no experiments that anybody wants to hold to
// anything. What fits changes with the search's next run, and then the values that it tries do. The baseline may be
// nil.
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
