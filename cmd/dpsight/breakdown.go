package main

import (
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
)

type breakdownCmd struct {
	analysis
	At        string `predictor:"moment" help:"${at}" default:"peak" placeholder:"MOMENT"`
	By        string `predictor:"by" xor:"known" help:"${breakdown_by}" placeholder:"D[,D]"`
	Depth     int    `help:"${breakdown_depth}" placeholder:"N"`
	Fold      bool   `help:"${fold}"`
	Top       *int   `help:"${breakdown_top}" placeholder:"N"`
	FullStack bool   `help:"${full_stack}"`
	Known     bool   `help:"${known}" xor:"known"`
}

func (breakdownCmd) Help() string { return help("breakdown") }

func (c *breakdownCmd) Run(s *streams) error {
	at, err := memory.ParseAt(c.At)
	if err != nil {
		return withHint(err, "as in --at peak, --at oom, --at event=1200 or --at step=2,phase=backward; steps count "+
			"from 0; dpsight phases lists the phases")
	}
	by, err := report.ByOptions{Dimensions: c.By, Depth: c.Depth, Fold: c.Fold, FullStack: c.FullStack, Top: c.Top}.Parse()
	switch {
	case err != nil:
		return err
	case by != nil:
		return showRecords(s, &c.analysis, func(r *selected.Runs) (grouping.BreakdownByDocument, error) {
			return r.BreakdownBy(at, *by)
		}, report.BreakdownByTables, report.BreakdownByRecords)
	case c.Known:
		return show(s, &c.analysis, func(r *selected.Runs) (memory.BreakdownDocument, error) { return r.Known(at) },
			alone(report.KnownTable))
	}
	return show(s, &c.analysis, func(r *selected.Runs) (memory.BreakdownDocument, error) { return r.Breakdown(at) },
		report.BreakdownTables)
}
