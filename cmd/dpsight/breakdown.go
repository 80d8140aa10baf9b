package main

import (
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
)

type breakdownCmd struct {
	analysis
	At        string `predictor:"moment" help:"Moment: peak, oom, oom=N (the N-th request that failed), event=N, step=N, phase=P or step=N,phase=P." default:"peak" placeholder:"MOMENT"`
	By        string `predictor:"by" xor:"known" help:"Break down by one or two of category, module, class, role, phase, step, op, dtype, size, stack, line, name." placeholder:"D[,D]"`
	Depth     int    `help:"With --by module: the first N names of a path, as in blocks.3; with --by stack: the N innermost frames (default 3)." placeholder:"N"`
	Fold      bool   `help:"With --by module or name: like layers are one row, as in blocks.*.attention.q."`
	Top       *int   `help:"With --by: rows beyond the N largest are one, \"12 others\" (default 20; 0 = all)." placeholder:"N"`
	FullStack bool   `help:"With --by stack: frames of torch and of C++ too, which are left out where Python's own tell the call."`
	Known     bool   `help:"Instead of the categories, a row a run: how much is tagged, known by lifetime, known by phase only, and of no owner." xor:"known"`
}

func (breakdownCmd) Help() string { return help("breakdown") }

func (c *breakdownCmd) Run(s *streams) error {
	at, err := memory.ParseAt(c.At)
	if err != nil {
		return withHint(err, "as in --at peak, --at oom, --at event=1200 or --at step=2,phase=backward; steps count "+
			"from 0; dpsight analyze phases lists the phases")
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
