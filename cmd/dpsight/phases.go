package main

import (
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
)

type phasesCmd struct{ analysis }

func (phasesCmd) Help() string { return help("phases") }

func (c *phasesCmd) Run(s *streams) error {
	return show(s, &c.analysis, (*selected.Runs).Phases, report.PhasesTables)
}
