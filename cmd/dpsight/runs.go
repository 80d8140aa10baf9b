package main

import (
	"os"

	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/screen"
)

// formatFlag is the option --format of all commands that print a table.
type formatFlag struct {
	Format string `help:"How to print: ${enum}." enum:"${formats}" default:"table" placeholder:"FORMAT"`
}

type runsCmd struct {
	List  runsListCmd  `cmd:"" default:"withargs" help:"List the runs of a store, as dpsight runs does."`
	Show  runsShowCmd  `cmd:"" help:"Show the details of a run."`
	Tag   runsTagCmd   `cmd:"" help:"Add tags to runs, for --where and --columns."`
	Untag runsUntagCmd `cmd:"" help:"Remove tags from runs."`
	Rm    runsRmCmd    `cmd:"" help:"Remove runs, and list the suites and predictions that name them."`
	Du    runsDuCmd    `cmd:"" help:"Show how much disk space runs take, by kind of file."`
}

func (runsCmd) Help() string { return help("runs") }

type runsListCmd struct {
	storeFlag
	formatFlag
	Columns []string `help:"${runs_columns}" placeholder:"NAME"`
	Sort    string   `help:"${runs_sort}" placeholder:"NAME"`
	Where   string   `help:"${where}" placeholder:"CONDITION"`
	Names   []string `arg:"" optional:"" name:"run" predictor:"run" help:"${runs_run}"`
}

func (runsListCmd) Help() string { return help("runs-list") }

func (c *runsListCmd) Run(s *streams) error {
	doc, err := s.source(c.Store).Only(c.Where).List(c.Names)
	if err != nil {
		return err
	}
	t, err := report.RunsTableOf(doc, c.Columns, c.Sort)
	return write(s, c.Format, err, t)
}

type runsShowCmd struct {
	storeFlag
	formatFlag
	Names []string `arg:"" name:"run" predictor:"run" help:"Runs, suites or stores."`
}

func (runsShowCmd) Help() string { return help("runs-show") }

func (c *runsShowCmd) Run(s *streams) error {
	doc, err := s.source(c.Store).Show(c.Names)
	return write(s, c.Format, err, report.ShownTables(doc)...)
}

// tagged has the arguments of tag and untag: runs and words.
type tagged struct {
	storeFlag
	Name string   `arg:"" name:"run" predictor:"run" help:"Run, name of several runs, suite or store."`
	Tags []string `arg:"" name:"tag" help:"Tags: words of letters, digits and _.+/-"`
}

type runsTagCmd struct{ tagged }

func (runsTagCmd) Help() string { return help("runs-tag") }

func (c *runsTagCmd) Run(s *streams) error { return s.source(c.Store).Tag(c.Name, c.Tags, nil) }

type runsUntagCmd struct{ tagged }

func (runsUntagCmd) Help() string { return help("runs-untag") }

func (c *runsUntagCmd) Run(s *streams) error { return s.source(c.Store).Tag(c.Name, nil, c.Tags) }

type runsRmCmd struct {
	storeFlag
	Yes   bool     `short:"y" help:"Remove without asking."`
	Names []string `arg:"" name:"run" predictor:"run" help:"Runs or suites. A name stands for all runs that have it."`
}

func (runsRmCmd) Help() string { return help("runs-rm") }

func (c *runsRmCmd) Run(s *streams) error {
	return s.source(c.Store).Remove(c.Names, func(question string) (yes, asked bool) {
		if c.Yes {
			return true, true
		}
		return screen.Confirm(os.Stdin, s.err, "dpsight: "+question)
	})
}

type runsDuCmd struct {
	storeFlag
	formatFlag
	Where string   `help:"${where}" placeholder:"CONDITION"`
	Names []string `arg:"" optional:"" name:"run" predictor:"run" help:"${runs_run}"`
}

func (runsDuCmd) Help() string { return help("runs-du") }

func (c *runsDuCmd) Run(s *streams) error {
	doc, err := s.source(c.Store).Only(c.Where).Usage(c.Names)
	return write(s, c.Format, err, report.UsageTable(doc))
}

// write prints tables, unless the caller has an error to return first.
func write(s *streams, format string, err error, tables ...table.Table) error {
	if err != nil {
		return err
	}
	return table.Write(s.out, format, tables...)
}
