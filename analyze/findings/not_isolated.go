package findings

import (
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// NotIsolatedFacts are the facts of a [NotIsolated] finding.
type NotIsolatedFacts struct{ schemas.Isolation }

// notIsolated looks for a run with timed steps at whose beginning the GPU was not known to be free.
func (x *evidence) notIsolated() []Finding {
	i := x.in.Manifest.Isolation
	if t := timing.Of(x.in); len(t.Steps) == 0 || i == nil || i.Verified || i.Reason == "" {
		return nil
	}
	return []Finding{{ID: NotIsolated, Facts: NotIsolatedFacts{*i}}}
}
