package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// In a store with an index, a change of a run's tags is visible at once, and so is the removal of a run.
func TestTagsAndRemovalsAreSeenAtOnce(t *testing.T) {
	dir := manyRuns(t)
	list := func() []Run {
		t.Helper()
		runs, damaged, err := OpenIndexed(dir).Runs()
		if err != nil || len(damaged) > 0 {
			t.Fatal(err, damaged)
		}
		return runs
	}
	run := list()[7] // the first list makes the index
	for range 2 {    // the first answer comes from the folder, the second from the index
		if got := list()[7].Tags; got != nil {
			t.Fatalf("tags of a run without any: %q", got)
		}
	}
	if changed, err := schemas.ChangeTags(run.Dir, []string{"b", "a", "b"}, nil); !changed || err != nil {
		t.Fatal(changed, err)
	}
	for range 2 {
		if got := list()[7].Tags; !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("tags are %q", got)
		}
		age(t, run.Dir, 0) // an hour old, so that the index trusts the folder's time
	}
	sel, err := OpenIndexed(dir).All()
	if err != nil {
		t.Fatal(err)
	}
	if err := sel.Where("tag=a and tag!=c"); err != nil || len(sel.Runs) != 1 || sel.Runs[0].ID != run.ID {
		t.Errorf("%v, %d runs", err, len(sel.Runs))
	}
	if changed, err := schemas.ChangeTags(run.Dir, nil, []string{"a", "b"}); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if got := list()[7].Tags; got != nil {
		t.Errorf("tags are %q", got)
	}
	n := len(list())
	lock, err := schemas.LockPath(run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := Remove(run); !errors.Is(err, schemas.ErrLocked) || len(list()) != n {
		t.Errorf("a run that is being written: %v", err)
	}
	lock.Unlock()
	if err := Remove(run); err != nil || len(list()) != n-1 {
		t.Errorf("%v, %d of %d runs are left", err, len(list()), n)
	}
	left := filepath.Join(dir, "gone"+removed)
	if err := os.MkdirAll(filepath.Join(left, "spool"), 0o700); err != nil {
		t.Fatal(err)
	}
	if len(list()) != n-1 {
		t.Error("what is left of a removed run is listed")
	}
	if err := OpenIndexed(dir).SweepRemoved(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Error("what is left of a removed run stays")
	}
}
