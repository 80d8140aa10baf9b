package analyze

import (
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// lengthParams say how long an experiment is and how it begins, which neither the clipped sum nor a step depends on.
var lengthParams = []string{"num_iter", "warmup_iter", "seed"}

// ownParams are parameters of single methods: others have none of that name.
var ownParams = []string{"grad_sample_mode", "bk_skips_param_grads"}

// alike reports whether two runs are of experiments that differ in their method only. A parameter that one of them
// lacks is a difference, and so is an argument of a script's command that no parameter accounts for: who does not say
// what varies may have varied anything. Of what they ran on, what both know must agree.
func alike(a, b *Summary) bool {
	if a.Source != b.Source || a.RunID == b.RunID || b.Status != schemas.StatusOK || b.PeakBytes == nil {
		return false
	}
	if (a.Profile == nil) != (b.Profile == nil) || a.Profile != nil && *a.Profile != *b.Profile {
		return false
	}
	if ours, theirs := unaccounted(a, b); len(ours)+len(theirs) > 0 {
		return false
	}
	return a.agrees(b) && b.agrees(a)
}

// agrees reports whether the other run has all the facts that this one has but for those of the method.
func (s *Summary) agrees(o *Summary) bool {
	for i := range s.facts {
		f := &s.facts[i]
		if f.What == "method" || slices.Contains(lengthParams, f.What) || !f.Param && !f.Condition {
			continue
		}
		theirs := o.fact(f.What)
		if theirs == nil && f.Param && !slices.Contains(ownParams, f.What) || theirs != nil && !f.equals(theirs) {
			return false
		}
	}
	return true
}
