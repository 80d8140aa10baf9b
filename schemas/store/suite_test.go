package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// A suite's sweep leaves alone what one of a longer name is writing.
func TestSweepSuites(t *testing.T) {
	s := Open(t.TempDir())
	folder := filepath.Join(s.Dir(), suitesFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, gone := range map[string]bool{
		"20261121T101500Z-headline-3f9a1c.json" + schemas.PartialSuffix:       true,
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
	if err := Open(filepath.Join(s.Dir(), "none")).SweepSuites("headline"); err != nil {
		t.Errorf("a store without suites: %v", err)
	}
}
