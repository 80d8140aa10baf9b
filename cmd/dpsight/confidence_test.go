package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// If a predicted run was killed after its tables were made and before it was judged, the next ingest judges it. If the
// ingest report cannot be written, the error says only that.
func TestIngestJudgesWhatIsKnown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := schemas.WriteManifest(dir, &schemas.Manifest{RunID: "r", Source: schemas.Predicted}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, schemas.IngestReportFile)
	report := &schemas.IngestReport{RunID: "r", Prediction: &schemas.Prediction{}}
	if err := schemas.WriteFile(path, report.Encode); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("no limit of files' sizes here")
	}
	r := limited(t, 0, "ingest", dir)
	if r.code != exitUsage || strings.Contains(r.stderr, "the store ") ||
		!strings.Contains(r.stderr, "dpsight: error: the confidence of the run in "+dir+" cannot be kept: ") ||
		!strings.Contains(r.stderr, "\ndpsight: hint: its tables are there; dpsight ingest "+dir+" judges it ") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	if r := dpsight(t, "", "ingest", dir); r.code != exitDone || !strings.Contains(r.stdout, schemas.IngestKnown) {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if kept, err := schemas.ReadIngestReport(dir); err != nil || kept.Prediction.Confidence == nil {
		t.Errorf("%+v, %v", kept, err)
	}
}
