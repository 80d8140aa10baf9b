package main

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas/store"
)

type phasesCmd struct{ analysis }

func (phasesCmd) Help() string { return help("phases") }

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
