package report

import (
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// DoctorTables return what a machine can record, and which private parts of torch work there.
func DoctorTables(doc schemas.Doctor) []table.Table {
	checks := table.Table{Title: "What this machine can record", Document: doc,
		Columns: []table.Column{{Title: "Check", Key: "name"}, {Title: "Result", Key: "ok"},
			{Title: "Detail", Key: "detail"}, {Title: "Hint", Key: "hint"}}}
	for _, c := range doc.Checks {
		checks.Rows = append(checks.Rows, []table.Cell{table.Text(c.Name), checkCell(c.OK, c.Needed), table.Text(c.Detail),
			table.Text(c.Hint)})
	}
	if len(doc.Features) == 0 {
		return []table.Table{checks}
	}
	return []table.Table{checks, featuresTable(doc.Features)}
}

// featuresTable makes a table for people that fits a terminal of 80 columns. The JSON document has the same features.
func featuresTable(features []schemas.TorchFeature) table.Table {
	t := table.Table{Title: "What recordings get from parts of torch that may change with any release",
		Columns: []table.Column{{Title: "Feature", For: table.People}, {Title: "Result", For: table.People},
			{Title: "What it gives", For: table.People}}}
	for _, f := range features {
		t.Rows = append(t.Rows, []table.Cell{table.Text(f.Name), checkCell(f.OK, f.Needed), table.Text(f.Gives)})
		if !f.OK {
			t.Notes = append(t.Notes, "without "+f.Name+": "+f.Without)
		}
	}
	return t
}

func checkCell(ok, needed bool) table.Cell {
	switch {
	case ok:
		return table.Cell{Text: "ok", Value: true}
	case needed:
		return table.Cell{Text: "missing", Value: false}
	}
	return table.Cell{Text: "absent", Value: false}
}
