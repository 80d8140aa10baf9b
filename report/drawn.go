package report

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// Drawn reports whether a folder has a report of the runs in these folders, as they were ingested last: one of some of
// them, or from before a run was recovered, is no report of all.
func Drawn(dir string, runs []string) bool {
	file := filepath.Join(dir, "results.csv")
	results, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	made, err := os.Stat(file)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(runs, func(run string) bool {
		ingested, err := os.Stat(filepath.Join(run, schemas.IngestReportFile))
		return err != nil || ingested.ModTime().After(made.ModTime()) ||
			!bytes.Contains(results, []byte(filepath.Base(run)+","))
	})
}
