package fit

import (
	"context"
	"fmt"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
)

// Record makes a run of a search: it records the experiment, makes the run's tables, even if the run failed, and loads
// the answer from the run's folder.
func Record[A Answer](ctx context.Context, tables func(*collect.Result) error,
	deciding collect.Deciding, load func(dir string) (A, error)) func(collect.Experiment) (A, error) {
	// The decisions that earlier values needed are kept, so that the next value does not fail without them.
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
			return none, fmt.Errorf("the recording of run %s failed: %w", r.Manifest.RunID, err)
		}
		return load(r.Dir)
	}
}

// whole reports whether a run ended by itself and has a known memory.
func whole(m *schemas.Manifest) bool {
	return m.Status == schemas.StatusOK || m.Status == schemas.StatusOOM
}
