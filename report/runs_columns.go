package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/near"
)

// shortNames are alternative names of the columns of the list of runs.
var shortNames = map[string]string{"id": "run_id", "run": "run_id", "peak": "peak_bytes",
	"reserved": "peak_reserved_bytes", "step": "step_ms", "time": "step_ms", "samples": "samples_per_s",
	"tag": "tags", "date": "started", "gpu": "gpu"}

// RunsTableOf returns [RunsTable] with the named columns, sorted by the column that order names: ascending or, with a
// minus before the name, descending. A column is one of the list's own, a parameter, or a fact such as torch or
// revision. Without columns the table has all columns of the list. Without an order the document's order is kept. An
// unknown name is an error.
func RunsTableOf(doc analyze.RunsDocument, columns []string, order string) (table.Table, error) {
	name, descending := strings.CutPrefix(order, "-")
	if order != "" {
		t := RunsTable(doc)
		cells, _, err := columnOf(&t, &doc, name, "--sort")
		if err != nil {
			return t, err
		}
		places := make([]int, len(doc.Runs))
		for i := range places {
			places[i] = i
		}
		slices.SortStableFunc(places, func(i, k int) int { return compareCells(cells[i], cells[k], descending) })
		sorted := make([]analyze.RunsRow, len(doc.Runs))
		for i, place := range places {
			sorted[i] = doc.Runs[place]
		}
		doc.Runs = sorted
	}
	t := RunsTable(doc)
	if len(columns) == 0 {
		return t, nil
	}
	chosen := t
	chosen.Columns, chosen.Rows = nil, make([][]table.Cell, len(t.Rows))
	for _, name := range columns {
		cells, column, err := columnOf(&t, &doc, name, "--columns")
		if err != nil {
			return t, err
		}
		column.For, column.Priority = table.Everybody, len(columns)-len(chosen.Columns)
		chosen.Columns = append(chosen.Columns, column)
		for i := range cells {
			chosen.Rows[i] = append(chosen.Rows[i], cells[i])
		}
	}
	return chosen, nil
}

// columnOf returns the list's column with a name, or makes a column of the runs' parameter or fact with that name.
func columnOf(t *table.Table, doc *analyze.RunsDocument, name, option string) ([]table.Cell, table.Column, error) {
	cells := make([]table.Cell, len(doc.Runs))
	key := cmp.Or(shortNames[strings.ToLower(name)], name)
	for c := range t.Columns {
		if t.Columns[c].Key == key {
			for i := range t.Rows {
				cells[i] = t.Rows[i][c]
			}
			return cells, t.Columns[c], nil
		}
	}
	column, found := table.Column{Title: name, Key: name, Right: true}, false
	for i := range doc.Runs {
		cells[i] = table.Absent()
		r := &doc.Runs[i]
		if v := r.Params[name]; v != nil {
			cells[i], found = table.Cell{Text: identity.TextOf(v), Value: v}, true
			_, number := v.(float64)
			column.Right = column.Right && number
		} else if v := r.Origin.Fact(name); v != "" {
			cells[i], found, column.Right = table.Text(v), true, false
		}
	}
	if !found && key == tagsColumn.Key { // no run has tags yet
		return cells, tagsColumn, nil
	}
	if !found {
		err := fmt.Errorf("%s: no run has a column %q%s", option, name, near.Guess(name, columnNames(t, doc)))
		return nil, column, schemas.WithHint(err, "there are "+strings.Join(columnNames(t, doc), ", "))
	}
	return cells, column, nil
}

// columnNames are all names that [columnOf] finds.
func columnNames(t *table.Table, doc *analyze.RunsDocument) (names []string) {
	short := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(shortNames)) {
		key := shortNames[name]
		short[key] = cmp.Or(short[key], name)
	}
	for i := range t.Columns {
		if key := t.Columns[i].Key; key != "" {
			names = append(names, cmp.Or(short[key], key))
		}
	}
	if !slices.Contains(names, short[tagsColumn.Key]) {
		names = append(names, tagsColumn.Key)
	}
	var params []string
	for i := range doc.Runs {
		for name := range doc.Runs[i].Params {
			params = append(params, name)
		}
	}
	slices.Sort(params)
	return append(append(names, slices.Compact(params)...), "revision", "host", "dpsight", "torch")
}

// compareCells orders numbers before texts. Cells without a value come last in either order.
func compareCells(a, b table.Cell, descending bool) int {
	switch {
	case a.Value == nil && b.Value == nil:
		return 0
	case a.Value == nil:
		return 1
	case b.Value == nil:
		return -1
	}
	x, ok1 := asNumber(a.Value)
	y, ok2 := asNumber(b.Value)
	order := 0
	switch {
	case ok1 && ok2:
		order = cmp.Compare(x, y)
	case ok1:
		order = -1
	case ok2:
		order = 1
	default:
		order = strings.Compare(fmt.Sprint(a.Value), fmt.Sprint(b.Value))
	}
	if descending {
		return -order
	}
	return order
}

func asNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
