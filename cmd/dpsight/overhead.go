package main

import (
	"github.com/dpsight/dpsight/report"
)

type overheadCmd struct {
	analysis
	Baseline string `predictor:"run" help:"${baseline}" placeholder:"RUN"`
}

func (overheadCmd) Help() string { return help("overhead") }

func (c *overheadCmd) Run(s *streams) error {
	study, err := s.source(c.Store).Overhead(c.Names, c.Baseline)
	if err != nil {
		return err
	}
	return c.write(s, report.OverheadTables(study)...)
}
