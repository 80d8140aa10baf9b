package suite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// Resuming a suite makes the missing tables of its earlier runs. If that fails for a run, the suite reports the
// failure and continues.
func TestResumeRecovers(t *testing.T) {
	dir := t.TempDir()
	s := parse(t, "name: s\ncommand: [sh, -c, 'echo {n}']\nmatrix: {n: [1, 2, 3]}\n")
	if out, _ := one(t, s, dir, nil); out.Err() != nil {
		t.Fatal(out.Err())
	}
	earlier, err := s.Resume(store.Open(dir), ResumeOptions{Machine: &collect.Machine{}})
	if err != nil {
		t.Fatal(err)
	}
	ingested := earlier.Runs[1].Dir
	if err := os.WriteFile(filepath.Join(ingested, schemas.IngestReportFile),
		[]byte(`{"schema": "`+schemas.IngestReportSchema+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var told []string
	broken := errors.New("no tables")
	out, err := s.Run(t.Context(), Options{Template: collect.Experiment{Store: dir, Machine: &collect.Machine{}},
		Resume: earlier, End: func(r *collect.Result) error {
			told = append(told, r.Dir)
			return broken
		}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{earlier.Runs[0].Dir, earlier.Runs[2].Dir}; !slices.Equal(told, want) {
		t.Errorf("made tables of %v, want %v", told, want)
	}
	if len(out.Failures) != 2 || !errors.Is(out.Failures[0], broken) ||
		out.Failures[0].Error() != "run "+earlier.Runs[0].ID+": no tables" {
		t.Errorf("%v", out.Failures)
	}
	if err := out.Err(); err == nil || err.Error() != "dpsight could not record or ingest 2 of 3 experiments" {
		t.Errorf("%v", err)
	}
}
