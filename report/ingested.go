package report

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// IngestedTables returns the table of [IngestedTable]. On a screen it returns nothing if the only input was refused:
// the error states that already.
func IngestedTables(doc schemas.Ingested, format string) []table.Table {
	if format == "table" && len(doc.Inputs) == 1 && len(doc.Refused()) == 1 {
		return nil
	}
	most := mostMoved
	if format != "table" {
		most = math.MaxInt
	}
	tables := []table.Table{IngestedTable(doc)}
	if moved := movedTable(&doc, most); len(moved.Rows) > 0 {
		tables = append(tables, moved)
	}
	return tables
}

// mostMoved is the most rows of the table of moved bytes on a screen, since a store may have hundreds of runs.
const mostMoved = 40

// movedTable has a row for each part of a peak that changed when a run was ingested again, and at most most rows.
func movedTable(doc *schemas.Ingested, most int) table.Table {
	t := table.Table{Title: "What moved at the peak (MiB)", Document: *doc, Columns: []table.Column{
		{Title: "Run", Key: "run_id"}, {Key: "name", For: table.Programs}, {Title: "Rules", Key: "rules", Priority: 1},
		{Key: "rules_before", For: table.Programs}, {Key: "rank", For: table.Programs},
		{Title: "Device", Key: "device", Priority: 1}, {Title: "Category", Key: "category", Priority: 5},
		{Title: "Before", Key: "before_bytes", Right: true, Priority: 4},
		{Title: "Now", Key: "after_bytes", Right: true, Priority: 3},
		{Title: "Δ", Key: "delta_bytes", Right: true, Priority: 2}}}
	left := 0
	for i := range doc.Remade {
		r := &doc.Remade[i]
		rules := table.Count(int64(r.Rules))
		if r.RulesBefore != r.Rules {
			rules.Text = fmt.Sprintf("%d, were %d", r.Rules, r.RulesBefore)
		}
		for k := range r.Moved {
			m := &r.Moved[k]
			if len(t.Rows) >= most {
				left++
				continue
			}
			category := table.Cell{Text: "peak allocated"}
			if m.Category != nil {
				category = table.Text(*m.Category)
			}
			t.Rows = append(t.Rows, []table.Cell{table.Text(r.RunID), table.Text(r.Name), rules,
				table.Count(int64(r.RulesBefore)), table.Count(int64(m.Rank)), {Text: m.Device + rank(m.Rank),
					Value: m.Device}, category, table.Bytes(m.BeforeBytes), table.Bytes(m.AfterBytes),
				table.DeltaBytes(m.AfterBytes - m.BeforeBytes)})
		}
	}
	if left > 0 {
		t.Notes = append(t.Notes, units.Plural(left, "more line", "more lines")+": --format json has all")
	}
	return t
}

// IngestedTable returns a table of what ingest did with each input.
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
	if len(doc.OtherRules) > 0 {
		t.Notes = append(t.Notes, "tables made by rules of another dpsight: "+
			schemas.Shortlist(doc.OtherRules, mostNamed)+"; --again updates them and lists what changed")
	}
	return t
}

// IngestFailure returns an error that names the inputs which ingest refused, or nil if it refused none. If there are
// several inputs, the table has the reasons.
func IngestFailure(doc schemas.Ingested) error {
	refused := doc.Refused()
	if len(refused) == 0 {
		return nil
	}
	hint := cmp.Or(refused[0].Hint, "ingest accepts run folders, stores, torch's memory snapshots and result files "+
		"of other tools. Refused inputs left no files")
	if len(doc.Inputs) == 1 {
		return schemas.WithHint(fmt.Errorf("%s: %s", refused[0].Path, *refused[0].Reason), hint)
	}
	return schemas.WithHint(fmt.Errorf("%d of %d inputs were refused", len(refused), len(doc.Inputs)), hint)
}
