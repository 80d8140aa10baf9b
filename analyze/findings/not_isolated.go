package findings

import (
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// NotIsolatedFacts are the facts of a [NotIsolated] finding.
type NotIsolatedFacts struct{ schemas.Isolation }

// notIsolated reports a run with timed steps if the GPU was not known to be free when the run began.
func (x *evidence) notIsolated() []Finding {
	i := x.in.Manifest.Isolation
	if t := timing.Of(x.in); len(t.Steps) == 0 || i == nil || i.Verified || i.Reason == "" {
		return nil
	}
	return []Finding{{ID: NotIsolated, Facts: NotIsolatedFacts{*i}}}
}
