package main

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas/store"
)

type findingsCmd struct{ analysis }

func (findingsCmd) Help() string {
	return `Observations with the figures that they stand on: what to change, and what it would save. docs/findings.md has each with
its threshold. Repeats and other methods are looked for in the runs' whole store, whichever runs are named.

Examples:
  dpsight analyze findings ghost
  dpsight analyze findings --store examples/headline --format markdown
  dpsight analyze findings ghost --format json`
}

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
