package collect

import (
	"context"
	"maps"

	"github.com/dpsight/dpsight/schemas"
)

// Collections says how to make a predicted run again with Python's garbage collected at other moments: where only the
// collector frees memory of the device, the peak depends on when it runs.
type Collections struct {
	// Begin is told of each run before it is made, and of what is to be found out about.
	Begin func(when string, g schemas.Garbage)
	// End makes the tables of a run and gives its peaks.
	End func(*Result) (schemas.Collection, error)
}

// runCollections makes the runs that bound the peak of r and notes them in its manifest: one whose garbage is collected
// at once and, where the collector has freed something in r, one where it never runs. Where it has freed nothing r is
// itself such a run. A run that was ended, as by its time limit, got as far as chance would have it: others would end
// elsewhere and bound nothing.
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
		if other.Interrupted { // the range is not known, and what was made of r stays
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
