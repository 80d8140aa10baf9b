package report

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

func TestDrawn(t *testing.T) {
	dir, store := t.TempDir(), t.TempDir()
	run := func(id string) string {
		folder := filepath.Join(store, id)
		os.Mkdir(folder, 0o755)
		if err := os.WriteFile(filepath.Join(folder, schemas.IngestReportFile), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	a, b := run("a"), run("b")
	if Drawn(dir, []string{a}) {
		t.Error("a report that is not there")
	}
	results := filepath.Join(dir, "results.csv")
	if err := os.WriteFile(results, []byte("run_id,name\na,x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Minute)
	os.Chtimes(results, later, later)
	if !Drawn(dir, []string{a}) || Drawn(dir, []string{a, b}) {
		t.Error("the report is of run a alone")
	}
	again := later.Add(time.Minute)
	os.Chtimes(filepath.Join(a, schemas.IngestReportFile), again, again)
	if Drawn(dir, []string{a}) {
		t.Error("run a was ingested since")
	}
	os.Remove(filepath.Join(a, schemas.IngestReportFile))
	if Drawn(dir, []string{a}) {
		t.Error("run a is not ingested")
	}
}
