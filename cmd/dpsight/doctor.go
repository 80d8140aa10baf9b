package main

import (
	"context"
	"errors"
	"strings"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/report/table"
)

type doctorCmd struct {
	storeFlag
	formatFlag
	Python string `help:"Interpreter to look at." placeholder:"PATH"`
}

func (doctorCmd) Help() string { return help("doctor") }

// doctorDocument is what "dpsight doctor --format json" prints.
type doctorDocument struct {
	Schema   string                 `json:"schema"`
	Checks   []collect.Check        `json:"checks"`
	Features []collect.TorchFeature `json:"features"`
}

func (c *doctorCmd) Run(s *streams) error {
	found := collect.Doctor(context.Background(), c.Python, c.Store)
	checks, missing := checksTable(found)
	tables := []table.Table{checks}
	if len(found.Features) > 0 {
		tables = append(tables, featuresTable(found.Features))
	}
	if err := table.Write(s.out, c.Format, tables...); err != nil {
		return err
	}
	if len(missing) > 0 {
		return failure{withHint{errors.New("recording needs what is missing here: " + strings.Join(missing, ", ")),
			"the table says for each what to do"}}
	}
	return nil
}

// checksTable shows the checks, and names those that failed and are needed.
func checksTable(found collect.Diagnosis) (t table.Table, missing []string) {
	t = table.Table{Title: "What this machine can record",
		Document: doctorDocument{"dpsight.doctor/1", found.Checks, append([]collect.TorchFeature{}, found.Features...)},
		Columns: []table.Column{{Title: "Check", Key: "name"}, {Title: "Result", Key: "ok"},
			{Title: "Detail", Key: "detail"}, {Title: "Hint", Key: "hint"}}}
	for _, k := range found.Checks {
		if !k.OK && k.Needed {
			missing = append(missing, k.Name)
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(k.Name), checked(k.OK, k.Needed), table.Text(k.Detail),
			table.Text(k.Hint)})
	}
	return t, missing
}

// featuresTable fits a terminal of 80 columns. It is for people: the JSON document has all of it.
func featuresTable(features []collect.TorchFeature) table.Table {
	t := table.Table{Title: "What recordings get from parts of torch that may change with any release",
		Columns: []table.Column{{Title: "Feature", For: table.People}, {Title: "Result", For: table.People},
			{Title: "What it gives", For: table.People}}}
	for _, f := range features {
		t.Rows = append(t.Rows, []table.Cell{table.Text(f.Name), checked(f.OK, f.Needed), table.Text(f.Gives)})
		if !f.OK {
			t.Notes = append(t.Notes, "without "+f.Name+": "+f.Without)
		}
	}
	return t
}

func checked(ok, needed bool) table.Cell {
	switch {
	case ok:
		return table.Cell{Text: "ok", Value: true}
	case needed:
		return table.Cell{Text: "missing", Value: false}
	}
	return table.Cell{Text: "absent", Value: false}
}
