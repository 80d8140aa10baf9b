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
	Schema string          `json:"schema"`
	Checks []collect.Check `json:"checks"`
}

func (c *doctorCmd) Run(s *streams) error {
	checks := collect.Doctor(context.Background(), c.Python, c.Store)
	t := table.Table{Title: "What this machine can record", Document: doctorDocument{"dpsight.doctor/1", checks},
		Columns: []table.Column{{Title: "Check", Key: "name"}, {Title: "Result", Key: "ok"},
			{Title: "Detail", Key: "detail"}, {Title: "Hint", Key: "hint"}}}
	var missing []string
	for _, k := range checks {
		verdict := "ok"
		switch {
		case !k.OK && k.Needed:
			verdict, missing = "missing", append(missing, k.Name)
		case !k.OK:
			verdict = "absent"
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(k.Name), {Text: verdict, Value: k.OK}, table.Text(k.Detail),
			table.Text(k.Hint)})
	}
	if err := table.Write(s.out, c.Format, t); err != nil {
		return err
	}
	if len(missing) > 0 {
		return failure{withHint{errors.New("recording needs what is missing here: " + strings.Join(missing, ", ")),
			"the table says for each what to do"}}
	}
	return nil
}
