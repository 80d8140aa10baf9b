package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// SweepSuites removes the partial files of one suite. SweepSuites keeps the files of suites whose names only contain
// the removed suite's name.
func TestSweepSuites(t *testing.T) {
	s := Open(t.TempDir())
	folder := filepath.Join(s.Dir(), suitesFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, gone := range map[string]bool{
		"20261121T101500Z-headline-3f9a1c.json" + schemas.PartialSuffix:       true,
		"20261121T101500Z-headline-3f9a1c.json.12" + schemas.PartialSuffix:    true,
		"20261121T101500Z-headline-batch-3f9a1c.json" + schemas.PartialSuffix: false,
		"20261121T101500Z-my-headline-3f9a1c.json" + schemas.PartialSuffix:    false,
		"20261121T101500Z-headline-3f9a1c.json":                               false,
		"notes" + schemas.PartialSuffix:                                       false,
	} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := s.SweepSuites("headline"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); (err != nil) != gone {
			t.Errorf("%s: %v", name, err)
		}
	}
	// SweepSuites keeps a file that a running suite is writing.
	busy := filepath.Join(folder, "20261121T101500Z-headline-3f9a1c.json.13"+schemas.PartialSuffix)
	if err := os.WriteFile(busy, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	unlock, err := s.LockSuite("20261121T101500Z-headline-3f9a1c")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SweepSuites("headline"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(busy); err != nil {
		t.Errorf("of a suite that is being made: %v", err)
	}
	unlock()
	if locks, _ := filepath.Glob(filepath.Join(folder, "*"+lockSuffix)); len(locks) > 0 {
		t.Errorf("left behind: %v", locks)
	}
	if err := Open(filepath.Join(s.Dir(), "none")).SweepSuites("headline"); err != nil {
		t.Errorf("a store without suites: %v", err)
	}
}
