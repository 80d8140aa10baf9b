package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

type ranksDoc struct {
	Schema string
	Runs   []struct {
		Name  string
		Ranks []struct {
			Device string
			Peak   *int64 `json:"peak_allocated_bytes"`
		}
		Outlier *struct{ Device string }
	}
}

func TestRanksDocument(t *testing.T) {
	stores(t, func(t *testing.T, store string) {
		var doc ranksDoc
		decodeOne(t, must(t, "", "analyze", "ranks", store, "--format", "json"), ranksShape, &doc)
		if doc.Schema != "dpsight.ranks/1" || len(doc.Runs) == 0 {
			t.Fatalf("%+v", doc)
		}
		for _, r := range doc.Runs {
			if len(r.Ranks) < 2 && r.Outlier != nil {
				t.Errorf("%s: %+v is apart from nothing", r.Name, r.Outlier)
			}
		}
	})
}

// The test uses the journal ingest/testdata/journals/devices.dps.zst, of a process that used two devices in the same
// way.
func TestRanksOfARecording(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, journalID(0))
	b, err := os.ReadFile(filepath.Join("..", "..", "ingest", "testdata", "journals", "devices.dps.zst"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(run, spool.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, spool.Dir, spool.SealedName(0)), b, 0o644); err != nil {
		t.Fatal(err)
	}
	m := &schemas.Manifest{RunID: journalID(0), Name: "devices", Source: schemas.Predicted, Status: schemas.StatusOK,
		Profile: new("h200"), Command: []string{"python", "devices.py"}, Params: map[string]any{},
		Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Warnings: []string{}}
	if err := schemas.WriteManifest(run, m); err != nil {
		t.Fatal(err)
	}
	if err := program("ingest", dir, "--store", dir); err != nil {
		t.Fatal(err)
	}
	var doc ranksDoc
	decodeOne(t, must(t, "", "analyze", "ranks", dir, "--format", "json"), ranksShape, &doc)
	r := doc.Runs[0]
	if len(r.Ranks) != 2 || r.Outlier != nil || r.Ranks[0].Device != "cuda:0" || r.Ranks[1].Device != "cuda:2" ||
		*r.Ranks[0].Peak == 0 || *r.Ranks[0].Peak != *r.Ranks[1].Peak {
		t.Fatalf("%+v", r)
	}
	const want = "none of the 2 peaks lies apart"
	if said := must(t, "", "analyze", "ranks", dir).stdout; !strings.Contains(said, want) {
		t.Error(said)
	}
}
