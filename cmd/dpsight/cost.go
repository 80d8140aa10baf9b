package main

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/report"
)

type costCmd struct{ analysis }

func (costCmd) Help() string { return help("cost") }

func (c *costCmd) Run(s *streams) error {
	sel, err := selectRuns(s, c.Store, c.Names)
	if err != nil {
		return err
	}
	if err := sel.Pending(collect.Running).Err(); err != nil {
		return err
	}
	var runs []analyze.CostRun
	err = each(s, sel, 0, true, func(in analyze.Input) error {
		runs = append(runs, analyze.Cost(in))
		return nil
	})
	if err != nil {
		return err
	}
	return c.write(s, report.CostTable(analyze.NewCostDocument(runs...)))
}
