// Package report presents what analyze computed, as tables, figures and machine-readable results, and analyses nothing
// itself.
package report

import (
	"io"
	"path/filepath"
	"slices"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/growth"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/report/folder"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// A Model has everything that a report shows.
type Model struct {
	Title string
	Study compare.Study
	Notes []string // notes on the whole report: damaged run folders, and which runs were chosen if the user named none
	// Ladders are the ladders of the study's runs, by run id. If it is empty, the report has no picture of ladders.
	Ladders map[string]ladder.Run
	// Steps says which steps timelines show: one of the constants below. "" means StepsAuto.
	Steps string
	// Force overwrites files that no report wrote.
	Force bool
	// Page writes index.html, the page of the runs. If it is nil, the report has no such page.
	Page func(io.Writer) error
	// Drawn is called after each file, with the number of files written so far and of all files. Drawn may be nil.
	Drawn func(done, of int)
}

// The steps that timelines show.
const (
	StepsAuto = "auto" // all steps if the memory of a run grows from step to step, else the step of the peak
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

// Print writes a report's summary or, if gist, only the overhead.
func Print(w io.Writer, m Model, gist bool) error {
	if gist {
		return table.Write(w, "table", Gist(m.Study))
	}
	return m.writeSummary(w)
}

// Write writes the report into the folder dir, which it creates, and returns the written paths, the page first. Each
// file is written completely or not at all. Write removes files of an earlier report that the new one does not have. If
// it would overwrite a file that no report wrote, Write without Force writes nothing and returns *folder.ForeignError.
func Write(dir string, m Model) (written []string, err error) {
	var files []folder.File
	if m.Page != nil {
		files = append(files, folder.File{Name: "index.html", Write: m.Page})
	}
	files = append(files, folder.File{Name: "summary.txt", Write: m.writeSummary})
	for _, f := range m.Figures() {
		name := filepath.Join("figures", f.Name)
		files = append(files, folder.File{Name: name + ".png", Write: f.WritePNG},
			folder.File{Name: name + ".svg", Write: f.WriteSVG})
	}
	sets := m.tableSets()
	for i := range sets {
		files = append(files, sets[i].outputs()...)
	}
	results := resultsTable(&m.Study)
	files = append(files,
		folder.File{Name: "results.json", Write: func(w io.Writer) error {
			return table.Write(w, "json", table.Table{Document: tellStudy(&m.Study)})
		}},
		folder.File{Name: "results.csv", Write: func(w io.Writer) error { return table.Write(w, "csv", results) }})
	return folder.Write(dir, files, folder.Options{Force: m.Force, Written: m.Drawn})
}

const (
	predictedNote = "predicted: bytes that torch's own allocator would hold, recorded on a phantom GPU; nothing was " +
		"computed and there are no times"
	importedNote = "imported: taken from a file that dpsight did not record"
)

// failure says in one line why a run has nothing to show.
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

// badged returns a label with the badge that must stand beside it.
func badged(label string, id *identity.Identity) string {
	if badge := compare.StatusBadge(id); badge != "" {
		return label + " [" + badge + "]"
	}
	return label
}

// common is the badge that all runs of a table share. A note below the table shows it once. If it is "", each run shows
// its own badge.
type common string

// sameBadge returns the badge of the rows if all share it.
func sameBadge[R any](rows []R, badge func(*R) string) common {
	if len(rows) < 2 || slices.ContainsFunc(rows, func(r R) bool { return badge(&r) != badge(&rows[0]) }) {
		return ""
	}
	return common(badge(&rows[0]))
}

// ofStudy returns the badge that all cells of a study share.
func ofStudy(s *compare.Study) common { return common(s.CommonBadge()) }

// of returns the badge that all n runs of a table share.
func of(n int, run func(i int) *identity.Identity) common {
	ids := make([]*identity.Identity, n)
	for i := range ids {
		ids[i] = run(i)
	}
	return common(compare.CommonBadge(ids...))
}

// badged returns a label with its badge, unless a note shows the badge for all runs.
func (c common) badged(label string, id *identity.Identity) string {
	if c != "" {
		return label
	}
	return badged(label, id)
}

// cell returns a cell with a label and its badge. For programs each row has the badge, since they do not read notes.
func (c common) cell(label string, id *identity.Identity) table.Cell {
	return table.Cell{Text: c.badged(label, id), Value: badged(label, id)}
}

// notes returns the note with the badge that all runs share.
func (c common) notes() []string {
	if c == "" {
		return nil
	}
	return []string{"all runs: " + string(c)}
}

// identified does for a run that is shown alone what [badged] does.
func identified(id *identity.Identity) string {
	return badged(id.Shown(), id)
}
