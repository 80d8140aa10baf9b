package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect"
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

func (reportCmd) Help() string { return help("report") }

func (c *reportCmd) Run(s *streams) error {
	sel, err := selectRuns(s, c.Store, c.Names)
	if err != nil {
		return err
	}
	leaveTrials(s, sel)
	leaveSuperseded(s, sel)
	if err := sel.Pending(collect.Running).Err(); err != nil {
		return err
	}
	return c.draw(s, sel)
}

// draw writes the report of selected runs and prints its summary, or with --quiet the overhead alone, and where it lies.
func (c *reportCmd) draw(s *streams, sel *store.Selection) error {
	m, err := c.model(s, sel)
	if err != nil {
		return err
	}
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

// model is what the report shows of selected runs.
func (c *reportCmd) model(s *streams, sel *store.Selection) (report.Model, error) {
	runs, ladders, err := laddered(s, sel)
	if err != nil {
		return report.Model{}, err
	}
	base, err := namedBaseline(s, c.Store, sel, runs, c.Baseline)
	if err != nil {
		return report.Model{}, err
	}
	lendEnergy(sel, runs)
	m := report.NewModel(sel)
	m.Study, m.Ladders, m.AllSteps = base.study(sel, runs), ladders, c.Steps == "all"
	return m, nil
}

// laddered summarizes the selected runs, and explains the memory of the GPUs that NVML sampled.
func laddered(s *streams, sel *store.Selection) ([]analyze.Summary, map[string]analyze.LadderRun, error) {
	var runs []analyze.Summary
	ladders := map[string]analyze.LadderRun{}
	err := each(s, sel, store.WantAll|store.WantClock, true, func(in analyze.Input) error {
		if len(in.Samples) == 0 {
			runs = append(runs, analyze.Summarize(in))
			return nil
		}
		run, ladder, err := analyze.SummarizeWithLadder(in)
		runs, ladders[in.Manifest.RunID] = append(runs, run), ladder
		return withoutEvents(err, true)
	})
	return runs, ladders, err
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
