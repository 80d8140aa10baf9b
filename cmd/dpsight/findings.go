package main

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
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
	sel, err := selectRuns(s.err, c.Store, c.Names)
	if err != nil {
		return err
	}
	leaveTrials(s.err, sel)
	withoutSuperseded(s.err, sel)
	var inspected []analyze.Inspection
	err = each(s, sel, c.Names, store.WantAll|store.WantDetail, len(sel.Runs) > 1, func(in analyze.Input) error {
		inspected = append(inspected, analyze.Inspect(in))
		return nil
	})
	if err != nil {
		return err
	}
	return table.Write(s.out, c.Format, report.FindingsTables(analyze.Findings(inspected, outlines(sel, store.WantTimes,
		nil)))...)
}
