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
	"sync/atomic"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/growth"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/screen"
)

// A Model is what a report shows.
type Model struct {
	Title string
	Study compare.Study
	Notes []string // on the whole report: damaged run folders, what was chosen where nothing was named
	// Ladders are those of the study's runs by run id. Without any the picture of them is not drawn.
	Ladders map[string]ladder.Run
	// Steps is what timelines show: one of the constants below. Empty is StepsAuto.
	Steps string
	// Force writes over files that no report wrote.
	Force bool
	// Page writes the page of the runs, index.html. Where it is nil, the report has none.
	Page func(io.Writer) error
	// Drawn is told of each file that was made, of so many. May be nil.
	Drawn func(done, of int)
}

// What timelines show.
const (
	StepsAuto = "auto" // all steps where the memory of a run grows from step to step, else the step of the peak
	StepsPeak = "peak" // the step of the peak
	StepsAll  = "all"  // the whole recording
)

// allSteps reports whether timelines show whole recordings.
func (m *Model) allSteps() bool {
	if m.Steps != StepsAuto && m.Steps != "" {
		return m.Steps == StepsAll
	}
	return slices.ContainsFunc(m.Study.Cells, func(c compare.Cell) bool {
		return c.Growth != nil && c.Growth.Unit == growth.Step
	})
}

// output is one file of a report.
type output struct {
	name  string
	write func(io.Writer) error
}

// Print writes a report's summary, one of the files that were written, or with gist the overhead alone.
func Print(w io.Writer, m Model, summary string, gist bool) error {
	if gist {
		return table.Write(w, "table", Gist(m.Study))
	}
	if screen.Of(w).Columns > 0 { // the file's lines are as long as they need to be
		return m.writeSummary(w, m.tableSets())
	}
	text, err := os.ReadFile(summary)
	if err == nil {
		_, err = w.Write(text)
	}
	return err
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
	if m.Page != nil {
		files = append(files, output{"index.html", m.Page})
	}
	_, missing := os.Lstat(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the report's folder: %w", err)
	}
	lock, err := schemas.LockPath(dir) // two at once would take each other's files for somebody else's
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	defer func() {
		if err != nil && missing != nil { // no half of a report is left where there was none
			os.RemoveAll(dir)
		}
	}()
	names, err := withOld(dir, files, m.Force)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "tables"), 0o755); err != nil {
		return nil, fmt.Errorf("making the report's folder: %w", err)
	}
	if err := list(dir, names); err != nil { // first: one that is interrupted can be made again
		return nil, err
	}
	if written, err = writeAll(dir, files, m.Drawn); err != nil {
		return written, err
	}
	return written, removeStale(dir, files)
}

// writeAll writes files at once, so that none waits for another's way to the disk, and puts them in place once all are
// written: a disk that fills leaves the old files. As many are made at a time as there
// are processors: most of a report's time is drawing, and a drawing takes tens of megabytes.
func writeAll(dir string, files []output, drawn func(done, of int)) ([]string, error) {
	errs := make([]error, len(files))
	all := schemas.Replacement{Dir: dir}
	defer all.Discard()
	making := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	var made atomic.Int64
	for i, f := range files {
		wg.Go(func() {
			errs[i] = all.File(f.name, func(w io.Writer) error {
				making <- struct{}{}
				defer func() { <-making }()
				return f.write(w)
			})
			if n := int(made.Add(1)); drawn != nil {
				drawn(n, len(files))
			}
		})
	}
	wg.Wait()
	var written []string
	for i, f := range files {
		path := filepath.Join(dir, f.name)
		if errs[i] != nil {
			return nil, fmt.Errorf("writing %s: %w", path, errs[i])
		}
		written = append(written, path)
	}
	if err := all.Commit(files[0].name); err != nil {
		return nil, fmt.Errorf("putting the files in place: %w", err)
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
