package report

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// Drawn reports whether a folder has a report on exactly these runs as they were last ingested. A report on only some
// of these runs, or one from before a run was recovered, does not count.
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
