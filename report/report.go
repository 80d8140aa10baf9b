// Package report prints what analyze found: tables, one figure, machine-readable results. It analyses nothing.
package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// A Model is what a report shows.
type Model struct {
	Title string
	Study analyze.Study
	Notes []string // on the whole report: damaged run folders, what was chosen where nothing was named
}

// Write makes the report in dir, which is created, and gives the paths written, the summary first. Each file is either
// whole or not there.
func Write(dir string, m Model) ([]string, error) {
	if err := os.MkdirAll(filepath.Join(dir, "tables"), 0o755); err != nil {
		return nil, fmt.Errorf("making the report's folder: %w", err)
	}
	picture := m.Figure()
	results := resultsTable(&m.Study)
	files := []struct {
		name  string
		write func(io.Writer) error
	}{
		{"summary.txt", m.writeSummary},
		{"results.json", func(w io.Writer) error {
			return table.Write(w, "json", table.Table{Document: m.Study.Document()})
		}},
		{"results.csv", func(w io.Writer) error { return table.Write(w, "csv", results) }},
		{"memory_breakdown_comparison.png", picture.WritePNG},
		{"memory_breakdown_comparison.svg", picture.WriteSVG},
	}
	for _, set := range m.tableSets() {
		for _, f := range []struct{ format, ending string }{{"markdown", "md"}, {"latex", "tex"}} {
			files = append(files, struct {
				name  string
				write func(io.Writer) error
			}{filepath.Join("tables", set.name+"."+f.ending), func(w io.Writer) error { return table.Write(w, f.format, set.tables...) }})
		}
	}
	var written []string
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := schemas.WriteFile(path, f.write); err != nil {
			return written, fmt.Errorf("writing %s: %w", path, err)
		}
		written = append(written, path)
	}
	return written, nil
}

type tableSet struct {
	name   string
	tables []table.Table
}

// tableSets are the tables of the report; those of the overhead only where there is a baseline.
func (m *Model) tableSets() []tableSet {
	sets := []tableSet{
		{"runs", []table.Table{RunsTable(analyze.Runs(m.Study.Runs))}},
		{"breakdown", comparisonTables(&m.Study)},
	}
	if m.Study.Overhead != nil {
		sets = append(sets, tableSet{"overhead", OverheadTables(m.Study)})
	}
	var phases []table.Table
	for i := range m.Study.Runs {
		if r := &m.Study.Runs[i]; len(r.Phases.Phases) > 0 {
			t := phasesTable(&r.Phases)
			t.Title = "Phases of " + marked(m.Study.Labels[i], &r.Identity)
			phases = append(phases, t)
		}
	}
	if len(phases) == 0 {
		phases = []table.Table{{Title: "Phases", Columns: phaseColumns, Notes: []string{"no run has phases"}}}
	}
	return append(sets, tableSet{"phases", phases})
}

// Figure is the picture of the report.
func (m *Model) Figure() *figure.MemoryBreakdown {
	f := &figure.MemoryBreakdown{Baseline: m.Study.BaselineLabel}
	predicted, imported := false, false
	for i := range m.Study.Runs {
		r := &m.Study.Runs[i]
		row := figure.Row{Label: m.Study.Labels[i], Mark: r.StatusMark(), Failure: failure(r), PeakBytes: r.PeakBytes}
		if r.BrokenDown() {
			row.Breakdown = r.Main()
		}
		if m.Study.Overhead != nil {
			row.Overhead = &m.Study.Overhead.Runs[i]
			row.Baseline = r.RunID == m.Study.Baseline.RunID
		}
		f.Rows = append(f.Rows, row)
		predicted = predicted || r.Source == schemas.Predicted
		imported = imported || r.Source == schemas.Imported
	}
	if predicted {
		f.Notes = append(f.Notes, predictedNote)
	}
	if imported {
		f.Notes = append(f.Notes, importedNote)
	}
	return f
}

const (
	predictedNote = "predicted: bytes that torch's own allocator would hold, recorded on a phantom GPU; nothing was computed and there are no times"
	importedNote  = "imported: taken from a file that dpsight did not record"
)

// failure says in one line why a run has nothing to show.
func failure(s *analyze.Summary) string {
	if s.Status != schemas.StatusOK {
		if s.Reason != "" {
			return s.Status + ": " + s.Reason
		}
		return s.Status
	}
	if len(s.Warnings) > 0 {
		return s.Warnings[0]
	}
	return "no peak is known"
}

// marked is a label with what must stand beside it.
func marked(label string, id *analyze.Identity) string {
	if mark := id.StatusMark(); mark != "" {
		return label + " [" + mark + "]"
	}
	return label
}

// identified is the same for a run shown by itself.
func identified(id *analyze.Identity) string {
	name := id.Name
	if name == "" {
		name = id.RunID
	}
	return marked(name, id)
}
