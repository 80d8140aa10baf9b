package main

import (
	"errors"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/schemas"
)

type breakdownCmd struct {
	analysis
	At    string `help:"Moment: peak, oom, oom=N (the N-th request that failed), event=N, step=N, phase=P or step=N,phase=P." default:"peak" placeholder:"MOMENT"`
	By    string `xor:"known" help:"Break down by one or two of category, module, class, role, phase, step, op, dtype, size, stack, name." placeholder:"D[,D]"`
	Depth int    `help:"With --by module: the first N names of a path, as in blocks.3; with --by stack: the N innermost frames (default 3)." placeholder:"N"`
	Fold  bool   `help:"With --by module or name: like layers are one row, as in blocks.*.attention.q."`
	Top   *int   `help:"With --by: rows beyond the N largest are one, \"12 others\" (default 20; 0 = all)." placeholder:"N"`
	Known bool   `help:"Instead of the categories, a row a run: how much is tagged, known by lifetime, known by phase only, and of no owner." xor:"known"`
}

func (breakdownCmd) Help() string { return help("breakdown") }

func (c *breakdownCmd) Run(s *streams) error {
	at, err := memory.ParseAt(c.At)
	if err != nil {
		return withHint{err, "as in --at peak, --at oom, --at event=1200 or --at step=2,phase=backward; steps count " +
			"from 0; dpsight analyze phases lists the phases"}
	}
	by, err := c.dimensions()
	if err != nil {
		return err
	}
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	if by != nil {
		return c.by(s, runs, at, *by)
	}
	if c.Known { // a row a run that has a peak: without any there would be none, and no note of why
		if err := runs.Ingested(); err != nil {
			return err
		}
	}
	rows, err := selected.Moments(runs, schemas.WantMemory|schemas.WantTimes|schemas.WantEvents,
		func(in schemas.Tables) (memory.BreakdownRun, error) { return memory.Breakdown(in, at) })
	if err != nil {
		return err
	}
	doc := memory.NewBreakdownDocument(rows...)
	if c.Known {
		return c.write(s, report.KnownTable(doc))
	}
	return c.write(s, report.BreakdownTables(doc)...)
}

// by prints the selected runs by what --by asks for.
func (c *breakdownCmd) by(s *streams, runs *selected.Runs, at memory.At, by grouping.By) error {
	rows, err := selected.Moments(runs, schemas.WantMemory|schemas.WantTimes|schemas.WantEvents|schemas.WantDetail,
		func(in schemas.Tables) (grouping.BreakdownByRun, error) { return grouping.BreakdownBy(in, at, by) })
	if err != nil {
		return err
	}
	doc := grouping.NewBreakdownByDocument(by, rows...)
	return writeDocument(s, c.Format, doc, report.BreakdownByTables, report.BreakdownByRecords)
}

// defaultTop is how many rows a breakdown by modules or the like has: a model has hundreds of modules, a screen some
// lines.
const defaultTop = 20

// dimensions is what --by and the flags that go with it ask for; nil without --by.
func (c *breakdownCmd) dimensions() (*grouping.By, error) {
	if c.By == "" {
		if c.Depth != 0 || c.Fold || c.Top != nil {
			return nil, withHint{errors.New("--depth, --fold and --top say how rows of --by are put together, and " +
				"there is no --by"), "as in --by category,module"}
		}
		return nil, nil
	}
	dimensions, err := grouping.ParseDimensions(c.By)
	if err != nil {
		return nil, withHint{err, "as in --by category,module"}
	}
	by := grouping.By{Dimensions: dimensions, Depth: c.Depth, Fold: c.Fold, Top: defaultTop}
	if c.Top != nil {
		by.Top = *c.Top
	}
	if err := by.Check(); err != nil {
		return nil, withHint{err, "as in --by category,module --depth 2 --top 10"}
	}
	return &by, nil
}
