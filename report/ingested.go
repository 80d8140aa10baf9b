package report

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// IngestedTables is [IngestedTable], but for the one input that was refused: on a screen the error says it.
func IngestedTables(doc schemas.Ingested, format string) []table.Table {
	if format == "table" && len(doc.Inputs) == 1 && len(doc.Refused()) == 1 {
		return nil
	}
	return []table.Table{IngestedTable(doc)}
}

// IngestedTable prints what became of each input of ingest.
func IngestedTable(doc schemas.Ingested) table.Table {
	t := table.Table{Title: "Ingested", Document: doc, Columns: []table.Column{{Title: "Path", Key: "path"},
		{Title: "Run", Key: "run_id"}, {Title: "State", Key: "state", Priority: 1}, {Key: "again", For: table.Programs},
		{Title: "Reason", Key: "reason", Priority: 2}}}
	for _, in := range doc.Inputs {
		state := table.Text(in.State)
		if in.Again {
			state.Text = "again"
		}
		row := func(run table.Cell) {
			t.Rows = append(t.Rows, []table.Cell{table.Text(in.Path), run, state,
				table.Text(strconv.FormatBool(in.Again)), table.Optional(in.Reason, table.Text)})
		}
		for _, id := range in.RunIDs {
			row(table.Text(id))
		}
		if len(in.RunIDs) == 0 {
			row(table.Absent())
		}
		for _, w := range in.Warnings {
			note := units.Printable(in.Path) + ": " + w
			if len(doc.Inputs) == 1 {
				note = w
			}
			t.Notes = append(t.Notes, note)
		}
	}
	return t
}

// IngestFailure says which inputs of ingest were refused; nil for none. Why each of several was, the table says.
func IngestFailure(doc schemas.Ingested) error {
	refused := doc.Refused()
	if len(refused) == 0 {
		return nil
	}
	hint := cmp.Or(refused[0].Hint, "ingest takes run folders, stores, torch's memory snapshots and result files of "+
		"other tools; nothing was written for what it refused")
	if len(doc.Inputs) == 1 {
		return schemas.WithHint(fmt.Errorf("%s: %s", refused[0].Path, *refused[0].Reason), hint)
	}
	return schemas.WithHint(fmt.Errorf("%d of %d inputs were refused", len(refused), len(doc.Inputs)), hint)
}
