package main

import (
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
)

type findingsCmd struct{ analysis }

func (findingsCmd) Help() string { return help("findings") }

func (c *findingsCmd) Run(s *streams) error {
	return show(s, &c.analysis, (*selected.Runs).Findings, report.FindingsTables)
}
