package main

import (
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
)

type ladderCmd struct{ analysis }

func (ladderCmd) Help() string { return help("ladder") }

func (c *ladderCmd) Run(s *streams) error {
	return show(s, &c.analysis, (*selected.Runs).Ladder, report.LadderTables)
}
