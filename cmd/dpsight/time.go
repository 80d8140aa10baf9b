package main

import (
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
)

type timeCmd struct {
	analysis
	By    string `predictor:"rows" help:"What makes a row: module, class or role." default:"module" placeholder:"D"`
	Depth int    `help:"Show only the first N names of a module's path, as in blocks.3." placeholder:"N"`
	Fold  bool   `help:"Show equal layers as one row, as in blocks.*.attention.q."`
	Top   int    `help:"Show the N longest rows, the others as one, \"12 others\"; 0 = all." default:"20" placeholder:"N"`
}

func (timeCmd) Help() string { return help("time") }

func (c *timeCmd) Run(s *streams) error {
	by := timing.ModuleTimeBy{Dimension: grouping.Dimension(c.By), Depth: c.Depth, Fold: c.Fold, Top: c.Top}
	if err := by.Check(); err != nil {
		return withHint(err, "as in --by module --fold --top 10")
	}
	times := func(r *selected.Runs) (timing.ModuleTimeDocument, error) { return r.ModuleTimes(by) }
	return showRecords(s, &c.analysis, times, report.ModuleTimeTables, report.ModuleTimeRecords)
}
