package report

import (
	"fmt"

	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// PlanTable has a row for each experiment of a suite's plan. resuming says whether the command resumes the suite that
// the plan names. device describes where the runs would be recorded.
func PlanTable(p schemas.Plan, resuming bool, device string) table.Table {
	todo := table.Column{Title: "To make", Key: "todo", Right: true, For: table.Programs}
	if resuming && p.SuiteID != nil {
		todo.For = table.Everybody
	}
	t := table.Table{Title: "Suite " + p.Name, Document: p, Columns: []table.Column{{Title: "Experiment", Key: "name"}}}
	for _, name := range p.Varies {
		t.Columns = append(t.Columns, table.Column{Title: name, Key: name})
	}
	t.Columns = append(t.Columns, table.Column{Title: "Repeats", Key: "repeats", Right: true},
		table.Column{Title: "Done", Key: "done", Right: true}, table.Column{Title: "Failed", Key: "failed", Right: true},
		todo, table.Column{Title: "Key", Key: "key"})
	for _, x := range p.Experiments {
		row := []table.Cell{table.Text(x.Name)}
		for _, name := range p.Varies {
			row = append(row, parameterCell(&x, name))
		}
		t.Rows = append(t.Rows, append(row, table.Count(int64(x.Repeats)), table.Count(int64(x.Done)),
			table.Count(int64(x.Failed)), table.Count(int64(x.Todo)), table.Text(x.Key)))
	}
	t.Notes = planNotes(&p, resuming, device)
	return t
}

// parameterCell returns the value of a varied parameter. Whether a run is bare counts as a parameter.
func parameterCell(x *schemas.PlanExperiment, name string) table.Cell {
	if name == "bare" {
		return table.Cell{Text: fmt.Sprint(x.Bare), Value: x.Bare}
	}
	if v, ok := x.Params[name]; ok {
		return table.Cell{Text: fmt.Sprint(v), Value: v}
	}
	return table.Absent()
}

func planNotes(p *schemas.Plan, resuming bool, device string) []string {
	count := fmt.Sprintf("%s, %s, %d to make", units.Plural(len(p.Experiments), "experiment", "experiments"),
		units.Plural(p.Runs, "run", "runs"), p.Todo)
	if p.LeftOut > 0 {
		count += fmt.Sprintf("; exclude and where leave out %d more", p.LeftOut)
	}
	notes := []string{count}
	var again []string
	for _, x := range p.Experiments {
		for _, status := range x.Again {
			again = append(again, x.Name+" ("+status+")")
		}
	}
	if len(again) > 0 {
		const most = 8
		notes = append(notes, fmt.Sprintf("%d of them again: %s", len(again), schemas.Shortlist(again, most)))
	}
	notes = append(notes, device)
	if p.SuiteID != nil {
		done := "done and failed come from suite " + *p.SuiteID
		if !resuming {
			done += "; without --resume all run again"
		}
		notes = append(notes, done)
	}
	return notes
}
