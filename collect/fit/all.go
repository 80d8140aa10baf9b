package fit

import (
	"context"
	"errors"

	"github.com/dpsight/dpsight/collect"
)

// A Trail is the course of the search in one cell: the tried values with their answers, in order, and why the search
// stopped early if it did.
type Trail[A Answer] struct {
	*Cell
	Found   []Found[A]
	Stopped error // nil if the search ended normally
}

// Unanswered reports whether the search stopped early since a run ended for a reason other than memory.
func (t *Trail[A]) Unanswered() bool { return errors.As(t.Stopped, new(*UnansweredError)) }

// All searches every cell, and calls begin for each cell and found for each value with an answer. A failure in one cell
// does not stop the other cells, but an interruption ends the whole search. If the first cell's search ends with a
// usage error before any answer, All returns that error.
func (s *Search[A]) All(ctx context.Context, cells []Cell, begin func(*Cell),
	found func(*Trail[A])) ([]Trail[A], error) {
	var trails []Trail[A]
	before, all := 0, 0
	for i := range cells {
		all += cells[i].Probes()
	}
	for i := range cells {
		t := Trail[A]{Cell: &cells[i]}
		begin(t.Cell)
		plan := func() { // a search may need more runs than is likely
			if s.Plan != nil {
				s.Plan(before+min(len(t.Found), t.Probes()-1), all)
			}
		}
		plan()
		t.Stopped = s.Find(ctx, t.Cell, func(f Found[A]) {
			t.Found = append(t.Found, f)
			plan()
			found(&t)
		})
		var usage *collect.UsageError
		if errors.As(t.Stopped, &usage) && len(trails) == 0 && len(t.Found) == 0 {
			return nil, t.Stopped
		}
		trails, before = append(trails, t), before+t.Probes()
		if errors.Is(t.Stopped, ErrInterrupted) {
			break
		}
	}
	return trails, nil
}
