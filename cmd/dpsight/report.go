package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/store"
)

type reportCmd struct {
	storeFlag
	Names    []string `arg:"" optional:"" name:"run" help:"Runs or stores (default: the newest suite or run)."`
	Out      string   `short:"o" required:"" help:"Folder to write." placeholder:"DIR"`
	Baseline string   `help:"Run to compare with (default: the suite's baseline, else the first vanilla run, else the first)." placeholder:"RUN"`
	Steps    string   `help:"What the timelines show: the step of the peak, or all steps (peak, all)." enum:"peak,all" default:"peak" placeholder:"WHICH"`
	Quiet    bool     `help:"Print the overhead alone, and not the whole summary."`
}

func (reportCmd) Help() string {
	return `Writes summary.txt, results.json, results.csv, tables/*.md, *.csv and *.tex (booktabs, a file a table), and figures as .png
and .svg: memory_breakdown_comparison, memory_timeline, memory_timeline_categories (each category's own maximum),
performance_tradeoff of runs with times and, of those that NVML sampled, device_ladder (what the GPU has in use, down to the categories).
Repeats of an experiment are one row and one bar. Needs no GPU, no Python and no network.

Examples:
  dpsight report -o out
  dpsight report examples/headline -o out
  dpsight report ghost vanilla --baseline vanilla -o out
  dpsight report ghost --steps all -o out`
}

func (c *reportCmd) Run(s *streams) error {
	sel, err := selectRuns(s.err, c.Store, c.Names)
	if err != nil {
		return err
	}
	leaveTrials(s.err, sel)
	withoutSuperseded(s.err, sel)
	if err := nothingIngested(sel); err != nil {
		return err
	}
	m, err := modelOf(s, c.Store, sel, c.Names, c.Baseline)
	if err != nil {
		return err
	}
	m.AllSteps = c.Steps == "all"
	return drawReport(s, m, sel, c.Out, c.Quiet)
}

// modelOf summarizes selected runs for a report, and explains the memory of the GPUs that NVML sampled.
func modelOf(s *streams, dir string, sel *store.Selection, names []string, baseline string) (report.Model, error) {
	m := report.Model{Ladders: map[string]analyze.LadderRun{}}
	var runs []analyze.Summary
	err := each(s, sel, names, store.WantAll|store.WantClock, true, func(in analyze.Input) error {
		if len(in.Samples) == 0 {
			runs = append(runs, analyze.Summarize(in))
			return nil
		}
		run, ladder, err := analyze.SummarizeWithLadder(in)
		runs = append(runs, run)
		m.Ladders[in.Manifest.RunID] = ladder
		return withoutEvents(err, true)
	})
	if err != nil {
		return m, err
	}
	base, _, err := namedBaseline(s, dir, runs, baseline)
	if err != nil {
		return m, err
	}
	lendEnergy(sel, runs)
	m.Study = studyBeside(sel, runs, base)
	return m, nil
}

// drawReport writes the report and prints its summary, or of it the overhead, and where it lies.
func drawReport(s *streams, m report.Model, sel *store.Selection, out string, quiet bool) error {
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
	if sel.Trials > 0 {
		m.Notes = append(m.Notes, trialsNote(sel.Trials))
	}
	if sel.Superseded > 0 {
		m.Notes = append(m.Notes, supersededNote(sel.Superseded))
	}
	written, err := report.Write(out, m)
	var foreign *report.ForeignError
	switch {
	case errors.As(err, &foreign):
		return withHint{err, "name another folder, or move it away"}
	case err != nil:
		return withHint{err, "name a folder that can be written"}
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
	fmt.Fprintf(s.err, "dpsight: report in %s (%d files)\n", filepath.Clean(out), len(written))
	return nil
}
