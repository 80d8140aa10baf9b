package main

import (
	"github.com/dpsight/dpsight/report"
)

type overheadCmd struct {
	analysis
	Baseline string `predictor:"run" help:"Run to compare with (default: the suite's baseline, else the first vanilla run, else the first)." placeholder:"RUN"`
}

func (overheadCmd) Help() string { return help("overhead") }

func (c *overheadCmd) Run(s *streams) error {
	study, err := s.source(c.Store).Overhead(c.Names, c.Baseline)
	if err != nil {
		return err
	}
	return c.write(s, report.OverheadTables(study)...)
}
