package exhibits_test

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/schemas"
)

// If autograd holds fewer bytes and hooks hold more, the common part of both changes only moved and is no change. If
// both hold more, both categories changed.
func TestChangesNetWhatMoves(t *testing.T) {
	for name, c := range map[string]struct{ graph, hooks, wantGraph, wantHooks int64 }{
		"all moved":   {-10, 10, 0, 0},
		"some left":   {-10, 3, -7, 0},
		"some added":  {-3, 10, 0, 7},
		"back":        {10, -4, 6, 0},
		"both more":   {5, 7, 5, 7},
		"both less":   {-5, -7, -5, -7},
		"hooks alone": {0, 7, 0, 7},
	} {
		rows := []compare.CategoryDelta{{Category: schemas.Gradients, DeltaBytes: 1},
			{Category: schemas.Activations, DeltaBytes: c.graph}, {Category: schemas.HookActivations, DeltaBytes: c.hooks}}
		e := exhibits.Entry{Cell: &compare.Cell{Overhead: &compare.OverheadRun{Categories: rows}}}
		var want []compare.CategoryDelta
		for i, bytes := range []int64{1, c.wantGraph, c.wantHooks} {
			if bytes != 0 {
				want = append(want, compare.CategoryDelta{Category: rows[i].Category, DeltaBytes: bytes})
			}
		}
		if got := e.Changes(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if got := e.Netted(schemas.HookActivations); got != (c.graph*c.hooks < 0) || e.Netted(schemas.Gradients) {
			t.Errorf("%s: netted: %v", name, got)
		}
	}
}
