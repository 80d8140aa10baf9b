package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas/store"
)

type reportCmd struct {
	storeFlag
	Names    []string `arg:"" optional:"" name:"run" help:"Runs or stores (default: the newest suite or run)."`
	Out      string   `short:"o" required:"" help:"Folder to write." placeholder:"DIR"`
	Baseline string   `help:"Run to compare with (default: the suite's baseline, else the first vanilla run, else the first)." placeholder:"RUN"`
	Steps    string   `help:"What the timelines show: the step of the peak, or all steps (peak, all)." enum:"peak,all" default:"peak" placeholder:"WHICH"`
}

func (reportCmd) Help() string {
	return `Writes summary.txt, results.json, results.csv, tables/*.md, *.csv and *.tex (booktabs, a file a table), and four
figures as .png and .svg: memory_breakdown_comparison, memory_timeline, memory_timeline_categories (each category's own
maximum) and performance_tradeoff. Repeats of an experiment are one row and one bar. Needs no GPU, no Python and no network.

Examples:
  dpsight report -o out
  dpsight report examples/headline -o out
  dpsight report ghost vanilla --baseline vanilla -o out
  dpsight report ghost --steps all -o out`
}

func (c *reportCmd) Run(s *streams) error {
	study, sel, err := buildStudy(s, c.Store, c.Names, c.Baseline)
	if err != nil {
		return err
	}
	return drawReport(s, report.Model{Study: study, AllSteps: c.Steps == "all"}, sel, c.Out)
}

// drawReport writes the report and prints its summary and where it lies.
func drawReport(s *streams, m report.Model, sel *store.Selection, out string) error {
	m.Title = "dpsight report"
	if sel.Suite != nil {
		m.Title = "dpsight report: suite " + sel.Suite.Name
	}
	for _, d := range sel.Damaged {
		m.Notes = append(m.Notes, d.Error())
	}
	for _, id := range sel.Missing {
		m.Notes = append(m.Notes, "run "+id+" of the suite is not in the store")
	}
	written, err := report.Write(out, m)
	if err != nil {
		return withHint{err, "name a folder that can be written"}
	}
	summary, err := os.ReadFile(written[0])
	if err != nil {
		return err
	}
	if _, err := s.out.Write(summary); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "dpsight: report in %s (%d files)\n", filepath.Clean(out), len(written))
	return nil
}
