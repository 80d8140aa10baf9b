package main

import (
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
)

type compareCmd struct {
	storeFlag
	formatFlag
	Where    string   `help:"${where}" placeholder:"CONDITION"`
	Names    []string `arg:"" optional:"" name:"run" predictor:"run" help:"${compare_run}"`
	Rows     []string `help:"Parameters that make a row, or facts: name, source, GPU, torch, …" placeholder:"NAME"`
	Cols     []string `help:"Parameters that make a column." placeholder:"NAME"`
	Value    string   `help:"${value}" default:"peak" placeholder:"VALUE"`
	Baseline string   `predictor:"run" help:"${compare_baseline}" placeholder:"RUN|NAME=VALUE"`
}

func (compareCmd) Help() string { return help("compare") }

func (c *compareCmd) Run(s *streams) error {
	value, err := compare.ParseMetric(c.Value)
	if err != nil {
		return withHint(err, "as in --value peak, --value time or --value category:gradients")
	}
	o := compare.Options{Value: value, Rows: c.Rows, Cols: c.Cols}
	doc, err := s.source(c.Store).Only(c.Where).Compare(c.Names, o, c.Baseline)
	if err != nil {
		return err
	}
	return table.Write(s.out, c.Format, report.CompareTables(doc)...)
}
