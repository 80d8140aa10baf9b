package store

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// SetConfidence sets the confidence of a predicted run once, and does not change it later. SetConfidence sets no
// confidence for any other run.
func TestSetConfidence(t *testing.T) {
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
	as := func(level string) func(*schemas.Manifest, *schemas.IngestReport) *schemas.Confidence {
		return func(m *schemas.Manifest, r *schemas.IngestReport) *schemas.Confidence {
			if m.Source != schemas.Predicted || r.Prediction == nil {
				t.Errorf("a %s run was judged: %+v", m.Source, r)
			}
			return &schemas.Confidence{Level: level}
		}
	}
	for _, dir := range []string{predicted, measured} {
		if err := SetConfidence(dir, as(schemas.Close)); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := schemas.ReadIngestReport(measured); err != nil || r.Prediction != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if err := SetConfidence(predicted, as(schemas.Indicative)); err != nil {
		t.Fatal(err)
	}
	if r, err := schemas.ReadIngestReport(predicted); err != nil || r.Prediction.Confidence == nil ||
		r.Prediction.Confidence.Level != schemas.Close {
		t.Errorf("%+v, %v", r, err)
	}
	empty := t.TempDir()
	if err := SetConfidence(empty, as(schemas.Close)); err == nil || !strings.Contains(err.Error(), empty) {
		t.Errorf("a folder without a run: %v", err)
	}
}
