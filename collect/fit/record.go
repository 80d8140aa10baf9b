package fit

import (
	"context"
	"fmt"

	"github.com/dpsight/dpsight/collect"
)

// Record is how a search makes a run: it records the experiment, has its tables made, whatever its status, and loads
// the answer from its folder.
func Record[A Answer](ctx context.Context, tables func(*collect.Result) error,
	load func(dir string) (A, error)) func(collect.Experiment) (A, error) {
	return func(e collect.Experiment) (none A, err error) {
		r, err := collect.Run(ctx, e)
		if r == nil {
			return none, err
		}
		if unmade := tables(r); unmade != nil {
			return none, unmade
		}
		switch {
		case r.Interrupted:
			return none, ErrInterrupted
		case err != nil:
			return none, fmt.Errorf("the run %s was not recorded as it should have been: %w", r.Manifest.RunID, err)
		}
		return load(r.Dir)
	}
}
