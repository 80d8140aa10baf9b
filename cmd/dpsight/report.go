package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas/store"
)

type reportCmd struct {
	storeFlag
	Names    []string `arg:"" optional:"" name:"run" help:"Runs or stores (default: the newest suite or run)."`
	Out      string   `short:"o" required:"" help:"Folder to write." placeholder:"DIR"`
	Baseline string   `help:"Run to compare with (default: the suite's baseline, else the first vanilla run, else the first)." placeholder:"RUN"`
}

func (reportCmd) Help() string {
	return `Writes summary.txt, results.json, results.csv, tables/*.md, tables/*.tex (booktabs) and
memory_breakdown_comparison.png and .svg. Needs no GPU, no Python and no network.

Examples:
  dpsight report -o out
  dpsight report examples/headline -o out
  dpsight report ghost vanilla --baseline vanilla -o out`
}

func (c *reportCmd) Run(s *streams) error {
	return writeReport(s, c.Store, c.Names, c.Baseline, c.Out)
}

// writeReport draws the report and prints its summary and where it lies.
func writeReport(s *streams, dir string, names []string, baseline, out string) error {
	study, sel, err := buildStudy(s, dir, names, baseline)
	if err != nil {
		return err
	}
	return drawReport(s, study, sel, out)
}

func drawReport(s *streams, study analyze.Study, sel *store.Selection, out string) error {
	m := report.Model{Title: "dpsight report", Study: study}
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
