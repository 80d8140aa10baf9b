// Package report prints what analyze found: tables, figures, machine-readable results. It analyses nothing.
package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// A Model is what a report shows.
type Model struct {
	Title string
	Study compare.Study
	Notes []string // on the whole report: damaged run folders, what was chosen where nothing was named
	// Ladders are those of the study's runs by run id. Without any the picture of them is not drawn.
	Ladders map[string]ladder.Run
	// AllSteps draws timelines of whole runs, and not of the step of the peak only.
	AllSteps bool
}

// output is one file of a report.
type output struct {
	name  string
	write func(io.Writer) error
}

// Write makes the report in dir, which is created, and gives the paths written, the summary first. Each file is either
// whole or not there. What an earlier report wrote there and this one does not is removed; over files that no report
// wrote none is written (*ForeignError).
func Write(dir string, m Model) (written []string, err error) {
	defer func() { err = unwritable(err) }()
	sets := m.tableSets()
	results := resultsTable(&m.Study)
	files := []output{
		{"summary.txt", func(w io.Writer) error { return m.writeSummary(w, sets) }},
		{"results.json", func(w io.Writer) error {
			return table.Write(w, "json", table.Table{Document: tellStudy(&m.Study)})
		}},
		{"results.csv", func(w io.Writer) error { return table.Write(w, "csv", results) }},
	}
	for _, f := range m.Figures() {
		files = append(files, output{f.Name + ".png", f.WritePNG}, output{f.Name + ".svg", f.WriteSVG})
	}
	for i := range sets {
		files = append(files, sets[i].outputs()...)
	}
	names, err := withOld(dir, files)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "tables"), 0o755); err != nil {
		return nil, fmt.Errorf("making the report's folder: %w", err)
	}
	if err := list(dir, names); err != nil { // first: one that is interrupted can be made again
		return nil, err
	}
	if written, err = writeAll(dir, files); err != nil {
		return written, err
	}
	return written, removeStale(dir, files)
}

// writeAll writes files at once, so that none waits for another's way to the disk. As many are made at a time as there
// are processors: most of a report's time is drawing, and a drawing takes tens of megabytes.
func writeAll(dir string, files []output) ([]string, error) {
	errs := make([]error, len(files))
	making := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, f := range files {
		wg.Go(func() {
			errs[i] = schemas.WriteFile(filepath.Join(dir, f.name), func(w io.Writer) error {
				making <- struct{}{}
				defer func() { <-making }()
				return f.write(w)
			})
		})
	}
	wg.Wait()
	var written []string
	for i, f := range files {
		path := filepath.Join(dir, f.name)
		if errs[i] != nil {
			return written, fmt.Errorf("writing %s: %w", path, errs[i])
		}
		written = append(written, path)
	}
	return written, nil
}

const (
	predictedNote = "predicted: bytes that torch's own allocator would hold, recorded on a phantom GPU; nothing was " +
		"computed and there are no times"
	importedNote = "imported: taken from a file that dpsight did not record"
)

// failure says in one line why a run of these warnings has nothing to show.
func failure(s *identity.Identity, warnings []string) string {
	if s.Status != schemas.StatusOK {
		if s.Reason != "" {
			return s.Status + ": " + s.Reason
		}
		return s.Status
	}
	if len(warnings) > 0 {
		return warnings[0]
	}
	return "no peak is known"
}

// badged is a label with what must stand beside it.
func badged(label string, id *identity.Identity) string {
	if badge := compare.StatusBadge(id); badge != "" {
		return label + " [" + badge + "]"
	}
	return label
}

// common is the badge that all runs of a table have, which is said once beneath it; empty, it stands beside each run.
type common string

// sameBadge is the badge of all rows, where it is that of each.
func sameBadge[R any](rows []R, badge func(*R) string) common {
	if len(rows) < 2 || slices.ContainsFunc(rows, func(r R) bool { return badge(&r) != badge(&rows[0]) }) {
		return ""
	}
	return common(badge(&rows[0]))
}

// ofStudy is that of a table of a study's cells.
func ofStudy(s *compare.Study) common { return common(s.CommonBadge()) }

// of is that of a table of so many runs.
func of(n int, run func(i int) *identity.Identity) common {
	ids := make([]*identity.Identity, n)
	for i := range ids {
		ids[i] = run(i)
	}
	return common(compare.CommonBadge(ids...))
}

// badged is a label with what must stand beside it and is not said of all.
func (c common) badged(label string, id *identity.Identity) string {
	if c != "" {
		return label
	}
	return badged(label, id)
}

// cell shows such a label. Programs read rows and no notes: to them each says it.
func (c common) cell(label string, id *identity.Identity) table.Cell {
	return table.Cell{Text: c.badged(label, id), Value: badged(label, id)}
}

// notes say it of all.
func (c common) notes() []string {
	if c == "" {
		return nil
	}
	return []string{"all runs: " + string(c)}
}

// identified is [badged] for a run shown by itself.
func identified(id *identity.Identity) string {
	return badged(id.Shown(), id)
}
