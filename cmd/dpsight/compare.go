package main

import (
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
)

type compareCmd struct {
	storeFlag
	formatFlag
	Where    string   `help:"${where}" placeholder:"CONDITION"`
	Names    []string `arg:"" optional:"" name:"run" predictor:"run" help:"${compare_run}"`
	Rows     []string `help:"Parameters that make a row, or facts: name, torch, revision, date, …" placeholder:"NAME"`
	Cols     []string `help:"Parameters that make a column." placeholder:"NAME"`
	Value    string   `help:"${value}" default:"peak" placeholder:"VALUE"`
	Baseline string   `predictor:"run" help:"${compare_baseline}" placeholder:"RUN|NAME=VALUE"`
	Over     string   `help:"${compare_over}" placeholder:"revision|date"`
	Out      string   `short:"o" help:"With --over: folder to draw the trend into, as .png and .svg." placeholder:"DIR"`
	Force    bool     `help:"Overwrite pictures of the same name that dpsight did not draw."`
}

func (compareCmd) Help() string { return help("compare") }

func (c *compareCmd) Run(s *streams) error {
	value, err := compare.ParseMetric(c.Value)
	if err != nil {
		return withHint(err, "as in --value peak, --value time or --value category:gradients")
	}
	if c.Over != "" {
		return c.trend(s, value)
	}
	if err := refuse(misuse{c.Out != "", "-o draws a trend", "as in --over revision -o DIR; dpsight report -o DIR draws " +
		"runs"}); err != nil {
		return err
	}
	o := compare.Options{Value: value, Rows: c.Rows, Cols: c.Cols}
	doc, err := s.source(c.Store).Only(c.Where).Compare(c.Names, o, c.Baseline)
	if err != nil {
		return err
	}
	return table.Write(s.out, c.Format, report.CompareTables(doc)...)
}

// trend prints how each experiment changed over revisions or days.
func (c *compareCmd) trend(s *streams, value compare.Metric) error {
	if err := refuse(misuse{len(c.Rows)+len(c.Cols) > 0 || c.Baseline != "", "--over has no rows, columns and baseline: " +
		"each experiment is compared with itself", "as in --over revision --value peak"}); err != nil {
		return err
	}
	doc, err := s.source(c.Store).Only(c.Where).Trend(c.Names, c.Over, value)
	if err != nil {
		return err
	}
	if c.Out != "" {
		written, err := report.WriteTrend(c.Out, doc, c.Force)
		if err != nil {
			return err
		}
		s.say(strings.Join(written, ", "))
	}
	return table.Write(s.out, c.Format, report.TrendTables(doc, c.Format == "csv")...)
}
