package main

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/resultjson"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/schemas/units"
)

type exportCmd struct {
	storeFlag
	Names  []string `arg:"" optional:"" name:"run" help:"${run}"`
	Format string   `help:"What to write: ${enum}." enum:"result-json" default:"result-json" placeholder:"FORMAT"`
	Out    string   `short:"o" help:"${export_out}" placeholder:"FILE|DIR"`
	Force  bool     `help:"Write over files that no export wrote."`
}

func (exportCmd) Help() string { return help("export") }

func (c *exportCmd) Run(s *streams) error {
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	if len(runs.Runs) > 1 && c.Out == "" {
		return withHint(fmt.Errorf("%d runs do not go into one file", len(runs.Runs)), "name a folder with -o, or one run")
	}
	profiles, err := selected.RowsOf(runs, analyze.SummaryTables, analyze.Profile)
	if err != nil {
		return err
	}
	if c.Out == "" {
		return resultjson.New(profiles[0]).Write(s.out)
	}
	paths, err := resultjson.WriteAll(c.Out, profiles, c.Force)
	for _, path := range paths {
		fmt.Fprintln(s.out, units.Printable(path))
	}
	return err
}
