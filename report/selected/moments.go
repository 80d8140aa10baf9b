package selected

import (
	"errors"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// moments analyses one moment of each selected run. A run that lacks the moment
// (a phase that it never had) is listed too, unless no run has the moment: then moments returns an error.
func moments[T any](r *Runs, want schemas.Want, one func(schemas.Tables) (T, error)) ([]T, error) {
	many := len(r.Runs) > 1
	var lacking lacks
	out, err := rows(r, want, func(in schemas.Tables) (T, error) {
		row, err := one(in)
		return row, lacking.note(err, many)
	})
	if err != nil {
		return nil, err
	}
	return out, lacking.all()
}

// withoutEvents handles the error of a run without allocator events. For a single run the error is returned. One of
// many runs is listed without devices.
func withoutEvents(err error, many bool) error {
	var none *memory.NoEventsError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &none):
		return schemas.WithHint(err, listsHint)
	case many:
		return nil
	}
	return schemas.WithHint(err, "dpsight phases and dpsight overhead need none")
}

// lacks collects the errors of runs without the requested moment. Runs without the moment are listed beside the others.
// If no run has the moment, the first run's error says why.
type lacks struct {
	first *memory.NoMomentError
	any   bool // some run has the requested moment
}

// note decides what to do with one run's error.
func (l *lacks) note(err error, many bool) error {
	var missing *memory.NoMomentError
	switch {
	case errors.As(err, &missing):
		if l.first == nil {
			l.first = missing
		}
		return nil
	case err == nil:
		l.any = true
	}
	return withoutEvents(err, many)
}

// all returns an error if all runs lack the moment.
func (l *lacks) all() error {
	switch {
	case l.first == nil || l.any:
		return nil
	case l.first.At.OOM != nil: // a list of phases would not help
		return schemas.WithHint(l.first,
			"dpsight findings names the requests that failed; without any, --at peak is the highest moment")
	}
	return schemas.WithHint(l.first, listsHint)
}

const listsHint = "dpsight phases lists a run's phases and their steps, " +
	"dpsight timeline its devices and events"
