package collect

import (
	"context"
	"maps"

	"github.com/dpsight/dpsight/schemas"
)

// Collections says how a predicted run is repeated with Python's garbage collected at other moments. If some device
// memory is freed only by the garbage collector, the peak depends on when the collector runs.
type Collections struct {
	// Begin is called before each run, with the time of its collections and the garbage that is examined.
	Begin func(when string, g schemas.Garbage)
	// End makes the tables of a run and returns its peaks.
	End func(*Result) (schemas.Collection, error)
}

// runCollections makes the runs that bound the peak of r, and notes them in its manifest. One of these runs collects
// all garbage at once. If the collector freed something in r, another run never collects. If it freed nothing, r itself
// is such a run. A run that was stopped, for example by its time limit, gets no bounds: other runs would stop
// elsewhere.
func runCollections(ctx context.Context, e Experiment, c Collections, r *Result) error {
	if r.Garbage == nil || !r.Garbage.Any() || r.Interrupted || !schemas.EndedByItself(r.Manifest.Status) {
		return nil
	}
	whens := []string{schemas.GarbageAtOnce}
	if r.Garbage.CollectedBytes > 0 {
		whens = append(whens, schemas.GarbageNever)
	}
	for _, when := range whens {
		c.Begin(when, *r.Garbage)
		x := e
		x.Garbage, x.Params = when, maps.Clone(e.Params)
		x.Params["garbage"] = when
		other, err := Run(ctx, x)
		if other == nil {
			return err
		}
		if other.Interrupted { // the range is unknown, and r keeps its tables
			r.Interrupted = true
			return nil
		}
		made, err := c.End(other)
		if err != nil {
			return err
		}
		r.Manifest.Phantom.Collections = append(r.Manifest.Phantom.Collections, made)
	}
	return schemas.WriteManifest(r.Dir, r.Manifest)
}
