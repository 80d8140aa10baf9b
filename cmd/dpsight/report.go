package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/report/table"
)

type reportCmd struct {
	storeFlag
	Names    []string `arg:"" optional:"" name:"run" help:"Runs or stores (default: the newest suite or run)."`
	Out      string   `short:"o" required:"" help:"Folder to write." placeholder:"DIR"`
	Baseline string   `help:"Run to compare with (default: the suite's baseline, else the first vanilla run, else the first)." placeholder:"RUN"`
	Steps    string   `help:"What the timelines show: the step of the peak, or all steps (peak, all)." enum:"peak,all" default:"peak" placeholder:"WHICH"`
	Quiet    bool     `help:"Print the overhead alone, and not the whole summary."`
}

func (reportCmd) Help() string { return help("report") }

func (c *reportCmd) Run(s *streams) error {
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	selected.LeaveTrials(runs)
	selected.LeaveSuperseded(runs)
	if err := runs.Ingested(); err != nil {
		return err
	}
	return c.draw(s, runs)
}

// draw writes the report of selected runs and prints its summary, or with --quiet the overhead alone, and where it lies.
func (c *reportCmd) draw(s *streams, runs *selected.Runs) error {
	m, err := runs.Model(c.Baseline)
	if err != nil {
		return err
	}
	m.AllSteps = c.Steps == "all"
	written, err := report.Write(c.Out, m)
	var foreign *report.ForeignError
	switch {
	case errors.As(err, &foreign):
		return withHint{err, "name another folder, or move it away"}
	case err != nil:
		return withHint{err, "name a folder that can be written"}
	}
	if c.Quiet {
		err = table.Write(s.out, "table", report.Gist(m.Study))
	} else {
		err = copyFile(s.out, written[0])
	}
	if err != nil {
		return err
	}
	s.say(fmt.Sprintf("report in %s (%d files)", filepath.Clean(c.Out), len(written)))
	return nil
}

func copyFile(to io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}
