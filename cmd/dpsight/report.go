package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dpsight/dpsight/report"
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
	m, err := s.source(c.Store).Report(c.Names, c.Baseline)
	if err != nil {
		return err
	}
	m.AllSteps = c.Steps == "all"
	return drawReport(s, m, c.Out, c.Quiet)
}

// drawReport writes a report and prints its summary, or the overhead alone, and where it lies.
func drawReport(s *streams, m report.Model, out string, quiet bool) error {
	written, err := report.Write(out, m)
	if err != nil {
		return err
	}
	if quiet {
		err = table.Write(s.out, "table", report.Gist(m.Study))
	} else {
		var summary []byte
		if summary, err = os.ReadFile(written[0]); err == nil {
			_, err = s.out.Write(summary)
		}
	}
	if err != nil {
		return err
	}
	s.say(fmt.Sprintf("report in %s (%d files)", filepath.Clean(out), len(written)))
	return nil
}
