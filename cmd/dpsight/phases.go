package main

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/schemas"
)

type phasesCmd struct{ analysis }

func (phasesCmd) Help() string { return help("phases") }

func (c *phasesCmd) Run(s *streams) error {
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	rows, err := selected.Rows(runs, schemas.WantTimes|schemas.WantModuleTimes, selected.Always(analyze.Phases))
	if err != nil {
		return err
	}
	return c.write(s, report.PhasesTables(analyze.NewPhasesDocument(rows...))...)
}
