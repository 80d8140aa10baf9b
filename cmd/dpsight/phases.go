package main

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas/store"
)

type phasesCmd struct{ analysis }

func (phasesCmd) Help() string {
	return `Times are of bare steps, which carry no instrument; bytes are of all steps.

Examples:
  dpsight analyze phases ghost
  dpsight analyze phases --store examples/headline --format markdown`
}

func (c *phasesCmd) Run(s *streams) error {
	sel, err := selectRuns(s, c.Store, c.Names)
	if err != nil {
		return err
	}
	runs, err := rows(s, sel, store.WantTimes|store.WantModuleTimes, always(analyze.Phases))
	if err != nil {
		return err
	}
	return c.write(s, report.PhasesTables(analyze.NewPhasesDocument(runs...))...)
}
