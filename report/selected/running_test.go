package selected

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// If a run is still being recorded, it has no figures yet. A check does not take such a run for the newest run of its
// experiment. A note says that the run is still running.
func TestWhatIsRunningIsNotChecked(t *testing.T) {
	dir := t.TempDir()
	vanilla, err := filepath.Glob(filepath.Join(headline, "*-vanilla-cde3c5"))
	if err != nil || len(vanilla) != 1 {
		t.Fatal(vanilla, err)
	}
	if err := os.CopyFS(filepath.Join(dir, "ended"), os.DirFS(vanilla[0])); err != nil {
		t.Fatal(err)
	}
	m, err := schemas.ReadManifest(vanilla[0])
	if err != nil {
		t.Fatal(err)
	}
	ended := m.RunID
	m.RunID, m.Start = "20270101T000000Z-vanilla-ffffff", m.Start.AddDate(1, 0, 0)
	m.End, m.Status = nil, schemas.StatusPartial
	if err := os.Mkdir(filepath.Join(dir, "running"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := schemas.WriteManifest(filepath.Join(dir, "running"), m); err != nil {
		t.Fatal(err)
	}
	s, said := source(dir)
	s.Named = true
	s.Recording = func(string) *store.Progress { return &store.Progress{Steps: 3} }
	checked, err := s.Check(nil, "test", gate.Options{})
	if err != nil || len(checked.Runs) != 1 || checked.Runs[0].RunID != ended {
		t.Fatalf("%v, of %+v", err, checked)
	}
	if !strings.Contains(strings.Join(said.notes, "\n"), "is still running") {
		t.Errorf("%q: that a run does not count is not said", said.notes)
	}
}
