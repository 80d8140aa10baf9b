package fit

import (
	"context"
	"fmt"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
)

// Record is how a search makes a run: it records the experiment, has the run's tables made, whatever its status, and
// loads the answer from the run's folder.
func Record[A Answer](ctx context.Context, tables func(*collect.Result) error,
	deciding collect.Deciding, load func(dir string) (A, error)) func(collect.Experiment) (A, error) {
	// the decisions that earlier values needed, so that the next value does not fail without them
	var decisions []schemas.Decision
	return func(e collect.Experiment) (none A, err error) {
		e.Decisions = decisions
		r, err := collect.RunDeciding(ctx, &e, deciding)
		decisions = e.Decisions
		if r == nil {
			return none, err
		}
		if unmade := tables(r); unmade != nil {
			return none, unmade
		}
		switch {
		case r.Interrupted && err == nil && whole(r.Manifest):
			a, err := load(r.Dir)
			if err == nil {
				err = ErrInterruptedAfter
			}
			return a, err
		case r.Interrupted:
			return none, ErrInterrupted
		case err != nil:
			return none, fmt.Errorf("the run %s was not recorded as it should have been: %w", r.Manifest.RunID, err)
		}
		return load(r.Dir)
	}
}

// whole reports whether a run came to an end of its own, with its memory known.
func whole(m *schemas.Manifest) bool {
	return m.Status == schemas.StatusOK || m.Status == schemas.StatusOOM
}
