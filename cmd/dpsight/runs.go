package main

import (
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
)

// formatFlag is --format, wherever a table is printed.
type formatFlag struct {
	Format string `help:"How to print: ${enum}." enum:"${formats}" default:"table" placeholder:"FORMAT"`
}

type runsCmd struct {
	storeFlag
	formatFlag
	Columns []string `help:"${runs_columns}" placeholder:"NAME"`
	Sort    string   `help:"${runs_sort}" placeholder:"NAME"`
	Where   string   `help:"${where}" placeholder:"CONDITION"`
	Names   []string `arg:"" optional:"" name:"run" predictor:"run" help:"${runs_run}"`
}

func (runsCmd) Help() string { return help("runs") }

func (c *runsCmd) Run(s *streams) error {
	runs, err := s.source(c.Store).Only(c.Where).SelectEach(c.Names)
	if err != nil {
		return err
	}
	if len(runs.Runs) == 1 { // of several it was said
		runs.WarnPending()
	}
	doc, err := runs.List()
	if err != nil {
		return err
	}
	t, err := report.RunsTableOf(doc, c.Columns, c.Sort)
	if err != nil {
		return err
	}
	return table.Write(s.out, c.Format, t)
}
