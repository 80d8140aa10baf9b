package main

import (
	"context"
	"errors"
	"strings"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
)

type doctorCmd struct {
	storeFlag
	formatFlag
	Python string `help:"Interpreter to check." placeholder:"PATH"`
}

func (doctorCmd) Help() string { return help("doctor") }

func (c *doctorCmd) Run(s *streams) error {
	doc := collect.Doctor(context.Background(), c.Python, c.Store).Document()
	if err := table.Write(s.out, c.Format, report.DoctorTables(doc)...); err != nil {
		return err
	}
	if missing := doc.Missing(); len(missing) > 0 {
		return failure{withHint(errors.New("recording needs what is missing here: "+strings.Join(missing, ", ")),
			"the table says for each what to do")}
	}
	return nil
}
