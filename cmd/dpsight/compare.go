package main

import (
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/report/table"
)

type compareCmd struct {
	storeFlag
	formatFlag
	Names    []string `arg:"" optional:"" name:"run" help:"Runs or stores, of one suite or of several (default: the newest suite or run)."`
	Rows     []string `help:"Parameters that make a row, or facts: name, source, GPU, torch, …" placeholder:"NAME"`
	Cols     []string `help:"Parameters that make a column." placeholder:"NAME"`
	Value    string   `help:"What to compare: peak, reserved, device, time, samples, tokens, energy, category:NAME, phase:NAME (its time) or phase-peak:NAME." default:"peak" placeholder:"VALUE"`
	Baseline string   `help:"Run, or row or column as NAME=VALUE, to compare with (default: the suite's baseline, else method=vanilla, else the first row)." placeholder:"RUN|NAME=VALUE"`
}

func (compareCmd) Help() string { return help("compare") }

func (c *compareCmd) Run(s *streams) error {
	value, err := compare.ParseMetric(c.Value)
	if err != nil {
		return withHint{err, "as in --value peak, --value time or --value category:gradients"}
	}
	runs, sums, err := s.source(c.Store).Summaries(c.Names, selected.LeaveTrials)
	if err != nil {
		return err
	}
	o := compare.Options{Value: value, Rows: c.Rows, Cols: c.Cols}
	if runs.Suite != nil {
		o.Prefer = runs.Suite.Baseline
	}
	var base selected.Baseline
	if key, v, ok := strings.Cut(c.Baseline, "="); ok {
		o.Match = map[string]string{key: v}
	} else if base, err = runs.Baseline(c.Baseline, sums); err != nil {
		return err
	}
	o.Run = base.Summary
	sides := len(sums)
	if base.Elsewhere != nil {
		sides++
	}
	if u := value.Unit(); sides == 2 || u == compare.UnitMS || u == compare.UnitPerSecond { // else no time is shown
		base.NoteRepeats(runs, sums)
	}
	doc, err := compare.Compare(sums, o)
	if err != nil {
		return withHint{err, "dpsight runs lists the runs; dpsight compare --help has examples"}
	}
	return table.Write(s.out, c.Format, report.CompareTables(doc)...)
}
