package main

import (
	"errors"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/store"
)

// defaultTop is how many rows a breakdown by modules or the like has: a model has hundreds of modules, a screen some
// lines.
const defaultTop = 20

// dimensions is what --by and the flags that go with it ask for; nil without --by.
func (c *breakdownCmd) dimensions() (*analyze.By, error) {
	if c.By == "" {
		if c.Depth != 0 || c.Fold || c.Top != nil {
			return nil, withHint{errors.New("--depth, --fold and --top say how rows of --by are put together, and " +
				"there is no --by"), "as in --by category,module"}
		}
		return nil, nil
	}
	dimensions, err := analyze.ParseDimensions(c.By)
	if err != nil {
		return nil, withHint{err, "as in --by category,module"}
	}
	by := analyze.By{Dimensions: dimensions, Depth: c.Depth, Fold: c.Fold, Top: defaultTop}
	if c.Top != nil {
		by.Top = *c.Top
	}
	if err := by.Check(); err != nil {
		return nil, withHint{err, "as in --by category,module --depth 2 --top 10"}
	}
	return &by, nil
}

// breakdownBy prints the selected runs by what --by asks for.
func (c *breakdownCmd) breakdownBy(s *streams, sel *store.Selection, at analyze.At, by analyze.By) error {
	var rows []analyze.BreakdownByRun
	many := len(sel.Runs) > 1
	want := store.WantMemory | store.WantTimes | store.WantEvents | store.WantDetail
	var lacking lacks
	err := each(s, sel, c.Names, want, many, func(in analyze.Input) error {
		row, err := analyze.BreakdownBy(in, at, by)
		rows = append(rows, row)
		return lacking.note(err, many)
	})
	if err != nil {
		return err
	}
	if err := lacking.all(); err != nil {
		return err
	}
	doc := analyze.NewBreakdownByDocument(by, rows...)
	if c.Format == "csv" {
		return table.Write(s.out, c.Format, report.BreakdownByRecords(doc))
	}
	return table.Write(s.out, c.Format, report.BreakdownByTables(doc)...)
}
