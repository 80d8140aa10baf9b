package confidence

import (
	"path/filepath"

	"github.com/dpsight/dpsight/schemas"
)

// Store adds to the ingest reports of predicted runs, by their folders, how sure their peaks are. Ingest derives what a
// report holds, and does not judge it. Reports of other runs stay as they are.
func Store(dirs ...string) error {
	for _, dir := range dirs {
		m, err := schemas.ReadManifest(dir)
		if err != nil {
			return err
		}
		report, err := schemas.ReadIngestReport(dir)
		if err != nil {
			return err
		}
		if report.Prediction == nil {
			continue
		}
		report.Prediction.Confidence = Assess(m, report)
		if err := schemas.WriteFile(filepath.Join(dir, schemas.IngestReportFile), report.Encode); err != nil {
			return err
		}
	}
	return nil
}
