package main

import (
	"fmt"

	"github.com/dpsight/dpsight/schemas/units"
)

type exportCmd struct {
	storeFlag
	Names  []string `arg:"" optional:"" name:"run" help:"${run}"`
	Format string   `help:"What to write: ${enum}." enum:"${exports}" default:"result-json" placeholder:"FORMAT"`
	Out    string   `short:"o" help:"${export_out}" placeholder:"FILE|DIR"`
	Force  bool     `help:"Overwrite files that dpsight export did not write."`
}

func (exportCmd) Help() string { return help("export") }

func (c *exportCmd) Run(s *streams) error {
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	paths, err := runs.Export(c.Format, c.Out, c.Force, s.out)
	for _, path := range paths {
		fmt.Fprintln(s.out, units.Printable(path))
	}
	return err
}
