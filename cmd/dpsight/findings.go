package main

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas/store"
)

type findingsCmd struct{ analysis }

func (findingsCmd) Help() string { return help("findings") }

func (c *findingsCmd) Run(s *streams) error {
	sel, err := selectRuns(s, c.Store, c.Names)
	if err != nil {
		return err
	}
	leaveTrials(s, sel)
	leaveSuperseded(s, sel)
	runs, err := rows(s, sel, store.WantAll|store.WantDetail, always(analyze.Inspect))
	if err != nil {
		return err
	}
	return c.write(s, report.FindingsTables(analyze.Findings(runs, outlines(sel, store.WantTimes, nil)))...)
}
