package main

import (
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/schemas"
)

type timeCmd struct {
	analysis
	By    string `help:"Rows: module, class or role." default:"module" placeholder:"D"`
	Depth int    `help:"The first N names of a path, as in blocks.3." placeholder:"N"`
	Fold  bool   `help:"Like layers are one row, as in blocks.*.attention.q."`
	Top   int    `help:"Rows beyond the N longest are one, \"12 others\"; 0 = all." default:"20" placeholder:"N"`
}

func (timeCmd) Help() string { return help("time") }

func (c *timeCmd) Run(s *streams) error {
	by := timing.ModuleTimeBy{Dimension: grouping.Dimension(c.By), Depth: c.Depth, Fold: c.Fold, Top: c.Top}
	if err := by.Check(); err != nil {
		return withHint{err, "as in --by module --fold --top 10"}
	}
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	rows, err := selected.Rows(runs, schemas.WantTimes|schemas.WantModuleTimes,
		func(in schemas.Tables) (timing.ModuleTimeRun, error) {
			return timing.ModuleTimes(in, by), nil
		})
	if err != nil {
		return err
	}
	doc := timing.NewModuleTimeDocument(by, rows...)
	return writeDocument(s, c.Format, doc, report.ModuleTimeTables, report.ModuleTimeRecords)
}
