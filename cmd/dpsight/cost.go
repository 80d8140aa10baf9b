package main

import (
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
)

type costCmd struct{ analysis }

func (costCmd) Help() string { return help("cost") }

func (c *costCmd) Run(s *streams) error {
	return show(s, &c.analysis, (*selected.Runs).Cost, alone(report.CostTable))
}
