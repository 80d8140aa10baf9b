package compare

import (
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// ownParams are parameters that only a single method has.
var ownParams = []string{"grad_sample_mode", "bk_skips_param_grads"}

// Alike reports whether two runs belong to experiments that differ only in their method. A parameter that one run lacks
// is a difference, unless only a single method has this parameter. A command argument that no parameter explains is
// also a difference, since it may have changed anything. Facts of the environment that both runs know must agree.
func Alike(a, b *analyze.Summary) bool {
	if a.Source != b.Source || a.RunID == b.RunID || b.Status != schemas.StatusOK || b.PeakBytes == nil {
		return false
	}
	if (a.Profile == nil) != (b.Profile == nil) || a.Profile != nil && *a.Profile != *b.Profile {
		return false
	}
	if ours, theirs := unaccounted(a, b); len(ours)+len(theirs) > 0 {
		return false
	}
	return agrees(a, b) && agrees(b, a)
}

// agrees reports whether run o has all the facts of run s, apart from facts of the method.
func agrees(s *analyze.Summary, o *analyze.Summary) bool {
	for i := range s.RunFacts {
		f := &s.RunFacts[i]
		if f.What == "method" || slices.Contains(identity.LengthParams, f.What) || !f.Param && !f.Condition {
			continue
		}
		theirs := o.RunFact(f.What)
		if theirs == nil && f.Param && !slices.Contains(ownParams, f.What) || theirs != nil && !f.Equals(theirs) {
			return false
		}
	}
	return true
}
