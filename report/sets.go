package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report/folder"
	"github.com/dpsight/dpsight/report/table"
)

// A tableSet has the tables on one subject of a report: tables as wide as a page for people, and one table of any width
// for programs.
type tableSet struct {
	name   string
	tables []table.Table
	// names are appended to the set's name for the tables' LaTeX files. Without names, numbers are.
	names []string
	// csv is the content of the CSV file; nil means tables.
	csv []table.Table
}

// outputs returns the set's files: one Markdown page, one LaTeX file for each table, so that each can be \input
// separately, and one CSV file.
func (s *tableSet) outputs() []folder.File {
	csv := s.csv
	if csv == nil {
		csv = s.tables
	}
	at := func(name string) string { return filepath.Join("tables", name) }
	files := []folder.File{
		{Name: at(s.name + ".md"), Write: func(w io.Writer) error { return table.Write(w, "markdown", s.tables...) }},
	}
	files = append(files, folder.File{Name: at(s.name + ".csv"),
		Write: func(w io.Writer) error { return table.Write(w, "csv", csv...) }})
	for i := range s.tables {
		name := s.name
		switch {
		case s.names != nil:
			name += "-" + s.names[i]
		case len(s.tables) > 1:
			name += fmt.Sprintf("-%d", i+1)
		}
		files = append(files, folder.File{Name: at(name + ".tex"), Write: func(w io.Writer) error {
			return table.Write(w, "latex", s.tables[i])
		}})
	}
	return files
}

// tableSets returns the tables of the report. The tables of the overhead are included only if there is a baseline.
func (m *Model) tableSets() []tableSet {
	s := &m.Study
	sets := []tableSet{
		{name: "configuration", tables: ConfigurationTables(s), csv: tidyConfiguration(s)},
		{name: "methods", tables: []table.Table{methodsTable(s)}},
	}
	if failed := failedTable(s); len(failed.Rows) > 0 {
		sets = append(sets, tableSet{name: "failed_requests", tables: []table.Table{failed}})
	}
	sets = append(sets, across("categories", s, comparisonTable, tidyCategories(s)))
	if s.Overhead != nil {
		sets = append(sets, tableSet{name: "overhead", tables: []table.Table{overheadTable(s)}},
			across("overhead_categories", s, categoryDeltaTable, tidyCategoryDeltas(s)),
			across("overhead_phase_peaks", s, phasePeakDeltaTable, tidyPhasePeakDeltas(s)),
			across("overhead_phases", s, phaseDeltaTable, tidyPhaseDeltas(s)))
	}
	sets = append(sets, across("phase_peaks", s, phasePeakTable, tidyPhasePeaks(s)), phaseSet(s))
	success := SuccessTables(compare.Success(s.Runs))
	success[0] = withSources(success[0], s)
	sets = append(sets, tableSet{name: "success", tables: success[:1]})
	if len(success) > 1 {
		sets = append(sets, tableSet{name: "failures", tables: success[1:]})
	}
	return append(sets,
		tableSet{name: "cost", tables: []table.Table{CostTable(analyze.NewCostDocument(s.Document().Cost...))}},
		tableSet{name: "runs", tables: []table.Table{RunsTable(analyze.Runs(s.Runs))}})
}

// runsATable is the most runs with columns side by side before a table is split.
const runsATable = 8

// across returns a set of tables with a column for each cell, split if there are many cells. A part without rows is
// left out.
func across(name string, s *compare.Study, make func(s *compare.Study, from, to int) table.Table,
	csv []table.Table) tableSet {
	set := tableSet{name: name, csv: csv}
	for from := 0; from < len(s.Cells); from += runsATable {
		if t := make(s, from, min(from+runsATable, len(s.Cells))); len(t.Rows) > 0 {
			set.tables = append(set.tables, t)
		}
	}
	if len(set.tables) == 0 {
		set.tables = []table.Table{make(s, 0, len(s.Cells))}
	}
	return set
}

// phaseSet has a table for each experiment.
func phaseSet(s *compare.Study) tableSet {
	set := tableSet{name: "phases"}
	names := uniqueNames{}
	for i := range s.Cells {
		c := &s.Cells[i]
		if len(c.Phases.Phases) == 0 {
			continue
		}
		t := phasesTable(&c.Phases)
		t.Title = "Phases of " + badged(c.Label, &c.Identity)
		if n := len(c.RunIDs); n > 1 {
			t.Notes = append(t.Notes, fmt.Sprintf("run %s: the one with the median peak of %d repeats", c.RunID, n))
		}
		set.tables, set.names = append(set.tables, t), append(set.names, names.of(c.Label, i))
	}
	if len(set.tables) == 0 {
		set.tables, set.names = []table.Table{{Title: "Phases", Columns: phaseColumns,
			Notes: []string{"no run has phases"}}}, nil
	}
	return set
}

// uniqueNames has the file names in use, in lower case since some file systems ignore case.
type uniqueNames map[string]bool

// of returns an unused file name for label i.
func (u uniqueNames) of(label string, i int) string {
	name, plain := fileName(label), fileName(label)
	for k := i + 1; name == "" || u[strings.ToLower(name)]; k++ {
		name = strings.TrimPrefix(fmt.Sprintf("%s-%d", plain, k), "-")
	}
	u[strings.ToLower(name)] = true
	return name
}

// fileName returns the characters of a label that are safe in a file's name on every system, and in LaTeX.
func fileName(label string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		case r > 0x7f:
			return -1
		}
		return '-'
	}, label)
	return strings.Trim(safe[:min(len(safe), 60)], "-")
}
