package confidence

import (
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// The report of a predicted run is judged once it is there; that of another run stays without a judgement.
func TestStore(t *testing.T) {
	predicted, measured := t.TempDir(), t.TempDir()
	for dir, source := range map[string]string{predicted: schemas.Predicted, measured: schemas.Measured} {
		report := &schemas.IngestReport{RunID: "r"}
		if source == schemas.Predicted {
			report.Prediction = &schemas.Prediction{}
		}
		if err := schemas.WriteManifest(dir, &schemas.Manifest{RunID: "r", Source: source}); err != nil {
			t.Fatal(err)
		}
		if err := schemas.WriteFile(filepath.Join(dir, schemas.IngestReportFile), report.Encode); err != nil {
			t.Fatal(err)
		}
	}
	if err := Store(predicted, measured); err != nil {
		t.Fatal(err)
	}
	if r, err := schemas.ReadIngestReport(predicted); err != nil || r.Prediction.Confidence.Level != schemas.Indicative {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := schemas.ReadIngestReport(measured); err != nil || r.Prediction != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if err := Store(t.TempDir()); err == nil {
		t.Error("a folder without a run was judged")
	}
}
