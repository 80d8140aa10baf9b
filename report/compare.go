package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// CompareTables prints a comparison: two runs side by side, or a pivot.
func CompareTables(doc compare.Document) []table.Table {
	doc.Warnings = compareWarnings(&doc)
	if len(doc.Differences) > 0 {
		return []table.Table{differenceTable(&doc)}
	}
	var tables []table.Table
	cols := columnsOf(&doc)
	// programs get one table with all columns
	tables = append(tables, pivotTable(&doc, cols, comparedColumns))
	for from := comparedColumns; from < len(cols); from += comparedColumns {
		tables = append(tables, peopleOnly(pivotTable(&doc, cols[from:min(from+comparedColumns, len(cols))],
			comparedColumns)))
	}
	last := &tables[len(tables)-1]
	last.Notes = append(last.Notes, compareNotes(&doc)...)
	for i := range tables {
		tables[i].Document = doc
	}
	return tables
}

// comparedColumns is the most columns that a pivot has before it is split into several tables.
const comparedColumns = 5

// columnsOf returns the cells column by column; the document has them row by row.
func columnsOf(doc *compare.Document) [][]*compare.CompareCell {
	n := slices.IndexFunc(doc.Cells, func(c compare.CompareCell) bool {
		return placeText(doc.Rows, c.Row) != placeText(doc.Rows, doc.Cells[0].Row)
	})
	if n < 0 {
		n = len(doc.Cells)
	}
	cols := make([][]*compare.CompareCell, n)
	for i := range doc.Cells {
		cols[i%n] = append(cols[i%n], &doc.Cells[i])
	}
	return cols
}

// placeText joins the values of a row's or column's parameters. A missing value becomes a dash.
func placeText(keys []string, at map[string]*string) string {
	var words []string
	for _, k := range keys {
		if v := at[k]; v != nil {
			words = append(words, *v)
		} else {
			words = append(words, table.Absent().Text)
		}
	}
	return strings.Join(words, ", ")
}

// pivotTable makes a table with all columns. People see only the first shown columns.
func pivotTable(doc *compare.Document, cols [][]*compare.CompareCell, shown int) table.Table {
	t := table.Table{Title: metricTitle(doc.Value, doc.Unit)}
	if doc.Baseline.Label != "" {
		t.Title += ", beside " + doc.Baseline.Label
	}
	for _, k := range doc.Rows {
		t.Columns = append(t.Columns, table.Column{Title: k, Key: k})
	}
	for i, col := range cols {
		name := placeText(doc.Cols, col[0].Col)
		title, key := strings.Join(doc.Cols, ", ")+" = "+name, strings.ReplaceAll(name, ", ", "_")+"_"
		if len(doc.Cols) == 0 {
			title, key = metricTitle(doc.Value, doc.Unit), ""
		}
		value, of := table.Everybody, table.Programs // the baseline has no difference from itself
		if i >= shown {
			value = table.Programs
		} else if slices.ContainsFunc(col, func(c *compare.CompareCell) bool {
			return c.Delta != nil && !c.IsBaseline
		}) {
			of = table.Everybody
		}
		t.Columns = append(t.Columns, table.Column{Title: title, Key: key + "value", Right: true, For: value},
			table.Column{Title: "Δ", Key: key + "delta", Right: true, For: of},
			table.Column{Title: "Ratio", Key: key + "ratio", Right: true, For: of}, table.Column{Key: key + "low",
				For: table.Programs},
			table.Column{Key: key + "high", For: table.Programs}, table.Column{Key: key + "n", For: table.Programs})
	}
	for i := range cols[0] {
		var row []table.Cell
		for _, k := range doc.Rows {
			row = append(row, table.Optional(cols[0][i].Row[k], table.Text))
		}
		for _, col := range cols {
			row = append(row, pivotCells(col[i], doc.Unit)...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// peopleOnly makes a table that a CSV file leaves out.
func peopleOnly(t table.Table) table.Table {
	var columns []table.Column
	rows := make([][]table.Cell, len(t.Rows))
	for j, c := range t.Columns {
		if c.For == table.Programs {
			continue
		}
		c.For = table.People
		columns = append(columns, c)
		for i := range t.Rows {
			rows[i] = append(rows[i], t.Rows[i][j])
		}
	}
	t.Columns, t.Rows = columns, rows
	return t
}

// pivotCells returns the table's cells for one row and column of a pivot. If repeats differ, their range follows the
// median. If no run has the value, the cells say how the runs ended.
func pivotCells(c *compare.CompareCell, unit compare.Unit) []table.Cell {
	value, delta := quantityCells(unit)
	v := table.Optional(c.Value, value)
	switch {
	case c.Value != nil && *c.Low != *c.High:
		v.Text += fmt.Sprintf(" (%s to %s, n=%d)", value(*c.Low).Text, value(*c.High).Text, c.N)
	case c.Experiments > 1:
		v.Text = fmt.Sprintf("%d experiments", c.Experiments)
	case c.Value == nil && len(c.Failed) > 0:
		v.Text = c.Failed[0].Status
	}
	d, r := table.Optional(c.Delta, delta), table.Optional(c.Ratio, table.Ratio)
	switch {
	case c.IsBaseline:
		d.Text, r.Text = "", ""
	case c.P != nil && *c.P >= timing.Significant:
		d.Text, r.Text = nothingToSay, nothingToSay
	}
	n := table.Count(int64(c.N))
	return []table.Cell{v, d, r, table.Optional(c.Low, value), table.Optional(c.High, value), n}
}

// compareNotes return notes that hold for many cells, each note once.
func compareNotes(doc *compare.Document) []string {
	var notes []string
	failed, several, lower, unsure := 0, 0, "", false
	for _, c := range doc.Cells {
		unsure = unsure || c.P != nil && *c.P >= timing.Significant
		failed += len(c.Failed)
		if doc.Unit == compare.UnitBytes && c.Value != nil && c.N%2 == 0 && *c.Low != *c.High {
			lower = ", of two in the middle the lower one: bytes that a run had"
		}
		if c.N > 1 && c.Value != nil {
			several = max(several, c.N)
		}
	}
	if several > 0 {
		notes = append(notes, fmt.Sprintf("a cell is the median of up to %d runs%s; where they differ, their range "+
			"stands beside it", several, lower))
	}
	if unsure {
		notes = append(notes, nothingToSay+": a rank test of the runs' times does not tell them from the baseline's "+
			"(Mann and Whitney, p ≥ 0.05)")
	}
	if failed > 0 {
		notes = append(notes, fmt.Sprintf("runs that did not end well count in no cell: %d", failed))
	}
	return append(append(append(notes, badgesOf(doc)...), doc.Warnings...), sourcesOf(doc)...)
}

// badgesOf names the runs that are not whole measured runs, such as predicted ones: that all are, or how many and in
// which cells.
func badgesOf(doc *compare.Document) []string {
	runs := map[string]*identity.Identity{}
	badged := map[string][]string{} // run ids by badge
	for i := range doc.Runs {
		r := &doc.Runs[i]
		runs[r.RunID] = r
		if r.Bare() {
			badged["bare"] = append(badged["bare"], r.RunID)
		}
		known := *r
		known.Params = nil // parameters are left out: a run can be predicted and bare
		if m := known.Badge(); m != "" {
			badged[m] = append(badged[m], r.RunID)
		}
	}
	var notes []string
	for _, m := range sortedKeys(badged) {
		if len(badged[m]) == len(doc.Runs) {
			notes = append(notes, "all runs are "+m)
			continue
		}
		var cells []string
		for i := range doc.Cells {
			c := &doc.Cells[i]
			n := 0
			for _, id := range c.RunIDs {
				if slices.Contains(badged[m], id) {
					n++
				}
			}
			switch {
			case n == 0:
			case n < len(c.RunIDs):
				cells = append(cells, fmt.Sprintf("%s (%d of %d)", cellName(doc, c, runs), n, len(c.RunIDs)))
			default:
				cells = append(cells, cellName(doc, c, runs))
			}
		}
		verb := "are"
		if len(badged[m]) == 1 {
			verb = "is"
		}
		notes = append(notes, fmt.Sprintf("%d of %d runs %s %s: %s", len(badged[m]), len(doc.Runs), verb, m,
			strings.Join(cells, ", ")))
	}
	return notes
}

// cellName returns the values of a cell's row and column. cellName returns the runs' names if the runs are of commands,
// which have no parameters.
func cellName(doc *compare.Document, c *compare.CompareCell, runs map[string]*identity.Identity) string {
	var words []string
	add := func(keys []string, at map[string]*string) {
		for _, k := range keys {
			if v := at[k]; v != nil {
				words = append(words, *v)
			}
		}
	}
	add(doc.Rows, c.Row)
	add(doc.Cols, c.Col)
	if len(words) > 0 {
		return strings.Join(words, " × ")
	}
	for _, id := range c.RunIDs {
		name := id
		if r := runs[id]; r != nil && r.Name != "" {
			name = r.Name
		}
		if !slices.Contains(words, name) {
			words = append(words, name)
		}
	}
	return strings.Join(words, " and ")
}

// sourcesOf explains what a prediction and an imported run are, each once.
func sourcesOf(doc *compare.Document) []string {
	var notes []string
	for i := range doc.Runs {
		for _, n := range sourceNotes(&doc.Runs[i]) {
			if !slices.Contains(notes, n) {
				notes = append(notes, n)
			}
		}
	}
	return notes
}

// differenceTable puts two runs side by side, with a row for each value.
func differenceTable(doc *compare.Document) table.Table {
	other := *doc.Baseline.RunID
	all := of(len(doc.Runs), func(i int) *identity.Identity { return &doc.Runs[i] })
	names := map[string]string{}
	for i := range doc.Runs {
		r := &doc.Runs[i]
		names[r.RunID] = all.badged(r.Shown(), r)
		if r.RunID != *doc.Baseline.RunID {
			other = r.RunID
		}
	}
	base, run := doc.Baseline.Label, names[other]
	if n, ok := names[*doc.Baseline.RunID]; ok {
		base = n
	}
	if base == run { // the two sides are repeats with one name
		base, run = *doc.Baseline.RunID, other
	}
	t := table.Table{Title: run + " beside " + base, Notes: all.notes(), Document: *doc,
		Columns: []table.Column{
			{Title: "What", Key: "metric"},
			{Key: "unit", For: table.Programs},
			{Title: base, Key: "baseline", Right: true},
			{Title: run, Key: "value", Right: true},
			{Title: "Δ", Key: "delta", Right: true},
			{Title: "Ratio", Key: "ratio", Right: true},
		}}
	leftOut := false
	for i := range doc.Differences {
		d := &doc.Differences[i]
		// Rows for everything that stayed the same would hide what changed.
		if d.Delta != nil && *d.Delta == 0 && strings.Contains(d.Metric, ":") {
			leftOut = true
			continue
		}
		value, delta := quantityCells(d.Unit)
		t.Rows = append(t.Rows, []table.Cell{{Text: metricTitle(d.Metric, d.Unit), Value: d.Metric},
			table.Text(string(d.Unit)), table.Optional(d.Baseline, value),
			table.Optional(d.Value, value), table.Optional(d.Delta, delta), table.Optional(d.Ratio, table.Ratio)})
	}
	byID := map[string]*identity.Identity{}
	for i := range doc.Runs {
		byID[doc.Runs[i].RunID] = &doc.Runs[i]
	}
	tellBounded(&t, byID[*doc.Baseline.RunID], byID[other], "baseline", "value")
	if leftOut {
		t.Notes = append(t.Notes, "left out categories and phases that do not differ")
	}
	for i := range doc.Runs {
		if r := &doc.Runs[i]; r.Status != schemas.StatusOK {
			t.Notes = append(t.Notes, fmt.Sprintf("%s: %s: its figures are of what it did until then", names[r.RunID],
				r.Status))
		}
	}
	t.Notes = append(append(t.Notes, doc.Warnings...), sourcesOf(doc)...)
	return t
}
