package main

import (
	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/schemas"
)

type findingsCmd struct{ analysis }

func (findingsCmd) Help() string { return help("findings") }

func (c *findingsCmd) Run(s *streams) error {
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	selected.LeaveTrials(runs)
	selected.LeaveSuperseded(runs)
	rows, err := selected.Rows(runs, schemas.WantAll|schemas.WantDetail, selected.Always(findings.CheckRun))
	if err != nil {
		return err
	}
	return c.write(s, report.FindingsTables(findings.Find(rows, runs.Outlines(schemas.WantTimes, nil)))...)
}
