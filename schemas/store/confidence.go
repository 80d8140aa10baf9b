package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/dpsight/dpsight/schemas"
)

// SetConfidence adds the confidence of a predicted peak, as judge returns it, to the run's ingest report. Ingest itself
// derives facts and determines no confidence. SetConfidence leaves a report alone if it already has a confidence, or if
// the run was not predicted.
func SetConfidence(dir string,
	judge func(*schemas.Manifest, *schemas.IngestReport) *schemas.Confidence) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the confidence of the run in %s cannot be kept: %w", dir, err)
		}
	}()
	if judged, err := isJudged(dir); err != nil || judged {
		return err
	}
	lock, err := schemas.LockPath(dir) // another dpsight may be writing the report
	if err != nil {
		return err
	}
	defer lock.Unlock()
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		return err
	}
	report, err := schemas.ReadIngestReport(dir)
	if err != nil {
		return err
	}
	if report.Prediction == nil || report.Prediction.Confidence != nil {
		return nil
	}
	report.Prediction.Confidence = judge(m, report)
	return schemas.WriteFile(filepath.Join(dir, schemas.IngestReportFile), report.Encode)
}

// isJudged reports whether a report needs no confidence: the run was not predicted, or the report already has a
// confidence. isJudged returns false if the report does not exist, since another dpsight may just be writing it.
func isJudged(dir string) (bool, error) {
	report, err := schemas.ReadIngestReport(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && (report.Prediction == nil || report.Prediction.Confidence != nil), err
}
