package report

import (
	"strconv"

	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// IngestedTable prints what became of each input of ingest.
func IngestedTable(doc schemas.Ingested) table.Table {
	t := table.Table{Title: "Ingested", Document: doc, Columns: []table.Column{{Title: "Path", Key: "path"},
		{Title: "Run", Key: "run_id"}, {Title: "State", Key: "state"}, {Key: "again", For: table.Programs},
		{Title: "Reason", Key: "reason"}}}
	for _, in := range doc.Inputs {
		run, state := table.Absent(), table.Text(in.State)
		if len(in.RunIDs) > 0 {
			run = table.Text(in.RunIDs[0])
		}
		if in.Again {
			state.Text = "again"
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(in.Path), run, state,
			table.Text(strconv.FormatBool(in.Again)), table.Optional(in.Reason, table.Text)})
	}
	return t
}
