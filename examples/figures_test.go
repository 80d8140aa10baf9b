package examples_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// In the figures of every example no text sticks out or lies over another, and nothing reaches beyond its axis: the step of
// the peak, and all steps.
func TestFiguresAreLegible(t *testing.T) {
	folders, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	stores := 0
	for _, f := range folders {
		if found, _ := filepath.Glob(filepath.Join(f.Name(), "*", schemas.ManifestFile)); len(found) == 0 {
			continue
		}
		runs, _, err := store.Open(ingesttest.Store(t, f.Name())).Runs()
		if err != nil {
			t.Fatal(err)
		}
		stores++
		sums, ladders := reduced(t, runs)
		for _, all := range []bool{false, true} {
			m := report.Model{Study: analyze.NewMatchedStudy(sums, nil), Ladders: ladders, AllSteps: all}
			for _, fig := range m.Figures() {
				bad, err := fig.Misplaced()
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range bad {
					t.Errorf("%s, %s: %s", f.Name(), fig.Name, b)
				}
			}
		}
	}
	if stores < 2 {
		t.Errorf("%d stores", stores)
	}
}
