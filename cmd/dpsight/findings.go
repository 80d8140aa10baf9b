package main

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/schemas/store"
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
	rows, err := selected.Rows(runs, store.WantAll|store.WantDetail, selected.Always(analyze.Inspect))
	if err != nil {
		return err
	}
	return c.write(s, report.FindingsTables(analyze.Findings(rows, runs.Outlines(store.WantTimes, nil)))...)
}
