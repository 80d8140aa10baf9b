package main

import (
	"fmt"
	"path/filepath"

	"github.com/dpsight/dpsight/report"
)

type reportCmd struct {
	storeFlag
	Names    []string `arg:"" optional:"" name:"run" predictor:"run" help:"${run}"`
	Out      string   `short:"o" required:"" xor:"to" help:"Folder to write the report into." placeholder:"DIR"`
	HTML     string   `name:"html" required:"" xor:"to" help:"Write only the page: one file to mail." placeholder:"FILE"`
	Baseline string   `predictor:"run" help:"${baseline}" placeholder:"RUN"`
	Steps    string   `help:"${report_steps}" enum:"auto,peak,all" default:"auto" placeholder:"WHICH"`
	Force    bool     `help:"Overwrite files in the folder that dpsight report did not write."`
	Quiet    bool     `help:"Print only the table of overhead."`
}

func (reportCmd) Help() string { return help("report") }

func (c *reportCmd) Run(s *streams) error {
	m, err := s.source(c.Store).Report(c.Names, c.Baseline)
	if err != nil {
		return err
	}
	m.Steps, m.Force = c.Steps, c.Force
	if c.HTML != "" {
		if err := report.WritePage(c.HTML, m); err != nil {
			return err
		}
		s.say("page in " + filepath.Clean(c.HTML))
		return nil
	}
	return drawReport(s, m, c.Out, c.Quiet)
}

// drawReport writes a report, and prints its folder and its summary or, if quiet, only the overhead.
func drawReport(s *streams, m report.Model, out string, quiet bool) error {
	console := newConsole(s.err)
	m.Drawn = func(done, of int) { console.Doing("drawing the report", done, of) }
	written, err := report.Write(out, m)
	console.Done()
	if err != nil {
		return err
	}
	if err := report.Print(s.out, m, quiet); err != nil {
		return err
	}
	s.say(fmt.Sprintf("report in %s (%d files)", filepath.Clean(out), len(written)))
	return nil
}
