package main

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

type costCmd struct{ analysis }

func (costCmd) Help() string { return help("cost") }

func (c *costCmd) Run(s *streams) error {
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	if err := runs.Ingested(); err != nil {
		return err
	}
	var rows []analyze.CostRun
	err = runs.Each(0, true, func(in schemas.Tables) error {
		rows = append(rows, analyze.Cost(in))
		return nil
	})
	if err != nil {
		return err
	}
	return c.write(s, report.CostTable(analyze.NewCostDocument(rows...)))
}
