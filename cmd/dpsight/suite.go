package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
	"github.com/dpsight/dpsight/schemas/units"
)

// suiteFlags are the options of collect that apply to suites only.
type suiteFlags struct {
	Suite       string   `predictor:"suite" help:"${suite}" placeholder:"FILE|NAME"`
	DryRun      bool     `help:"Print the suite's plan and run nothing."`
	Format      string   `help:"How to print the plan: ${enum}." enum:"${formats}" default:"table" placeholder:"FORMAT"`
	Only        []string `help:"${only}" placeholder:"K=V" sep:"none"`
	Resume      bool     `help:"Continue the newest suite of this name in the store, without repeating finished runs."`
	ResumeFrom  string   `help:"Continue the suite with this id." placeholder:"SUITE-ID"`
	RetryFailed bool     `help:"With --resume: also repeat failed runs."`
	Jobs        int      `help:"Experiments to run at the same time, each on its own GPU." default:"1" placeholder:"N"`
	Report      string   `help:"Folder for the suite's report (default: STORE/report-SUITE)." placeholder:"DIR"`
	NoReport    bool     `help:"Do not draw the suite's report."`
}

// check refuses options that have no effect.
func (f *suiteFlags) check() error {
	single := f.Suite == ""
	return refuse(
		misuse{single && (f.Report != "" || f.NoReport), "--report and --no-report belong to a suite",
			"dpsight report RUN -o DIR reports on a single run"},
		misuse{single && (f.DryRun || f.resuming() || f.RetryFailed || len(f.Only) > 0 || f.Jobs != 1),
			"--dry-run, --only, --resume, --retry-failed and --jobs belong to a suite", "name one with --suite"},
		misuse{f.Jobs < 1, fmt.Sprintf("--jobs must be 1 or more, not %d", f.Jobs),
			"1 makes the experiments one after another"},
		misuse{f.RetryFailed && !f.resuming(), "--retry-failed goes with --resume",
			"--resume --retry-failed continues the newest suite of the name; a new suite makes all its runs"},
		misuse{f.Format != "table" && !f.DryRun, "--format is of the plan that --dry-run prints",
			"dpsight runs and dpsight analyze print what was recorded in every format"})
}

func (f *suiteFlags) resuming() bool { return f.Resume || f.ResumeFrom != "" }

// load reads the suite and selects the experiments that --only names.
func (f *suiteFlags) load() (*suite.Suite, error) {
	plan, err := suite.Load(f.Suite)
	if err == nil && len(f.Only) > 0 {
		plan, err = plan.Select(f.Only)
	}
	return plan, err
}

// earlier finds the runs of the suite that the store already has.
func (c *collectCmd) earlier(plan *suite.Suite, m *collect.Machine, console *collect.Console) (*suite.Resumption,
	error) {
	waiting := func(id string) { console.Println("dpsight: waiting for run " + id + ", which a killed suite has left") }
	return plan.Resume(store.Open(c.Store), suite.ResumeOptions{ID: c.ResumeFrom, Machine: m, RetryFailed: c.RetryFailed,
		LookOnly: c.DryRun, Waiting: waiting})
}

// dryRun prints the suite's plan for --dry-run. A suite for a GPU can be planned on a machine without a GPU.
func (c *collectCmd) dryRun(s *streams, console *collect.Console, plan *suite.Suite) error {
	machine, err := collect.PlannedMachine(c.Device)
	if err != nil {
		return err
	}
	defer machine.Close()
	earlier, err := c.earlier(plan, machine, console)
	if err != nil {
		return err
	}
	return table.Write(s.out, c.Format, report.PlanTable(plan.Plan(earlier, c.resuming()), c.resuming(), machine.Note))
}

func (c *collectCmd) runSuite(s *streams, console *collect.Console, plan *suite.Suite, e collect.Experiment) error {
	if c.Report == "" {
		c.Report = plan.ReportFolder(c.Store)
	} else if !c.NoReport && schemas.CheckFolder(c.Report) != nil {
		return withHint(fmt.Errorf("the report %s cannot be written: not a directory", c.Report),
			"name another folder with --report")
	}
	options := suite.Options{Template: e, Jobs: c.Jobs, Deciding: deciding(console), End: func(r *collect.Result) error {
		_, err := makeTables(console, r)
		return err
	}}
	if c.resuming() {
		earlier, err := c.earlier(plan, e.Machine, console)
		if err != nil {
			return err
		}
		options.Resume = earlier
		console.Println("dpsight: " + plan.ResumeNote(earlier, c.Store))
	}
	output := s.err
	if c.Quiet {
		output = nil
	}
	options.Show(console, output)
	out, err := plan.Run(context.Background(), options)
	if err != nil {
		return err
	}
	for _, f := range out.Failures {
		console.Println("dpsight: warning: " + units.OneLine(f.Error()))
	}
	if err := c.reportSuite(s, out); err != nil {
		return err
	}
	if err := out.Err(); err != nil {
		return failure{err}
	}
	return nil
}

// reportSuite draws the report of all of the suite's runs, including runs made before this call. With --no-report, it
// prints by method what became of the runs.
func (c *collectCmd) reportSuite(s *streams, out *suite.Outcome) error {
	dirs := store.Folders(out.Runs)
	switch {
	case len(dirs) == 0:
		return nil
	case len(out.Results) == 0 && !c.NoReport && report.Drawn(c.Report, dirs):
		s.say("report in " + filepath.Clean(c.Report) + ", drawn before")
		return nil
	}
	if c.NoReport {
		runs, err := s.source(c.Store).SuiteRuns(out.Suite, dirs)
		if err != nil {
			return err
		}
		sums, err := runs.Summaries()
		if err != nil {
			return err
		}
		return table.Write(s.out, "table", report.SuccessTables(compare.Success(sums))...)
	}
	m, err := s.suiteModel(c.Store, out)
	if err != nil {
		return err
	}
	return drawReport(s, m, c.Report, c.Quiet)
}

// suiteModel returns the model of the report on a suite's runs.
func (s *streams) suiteModel(dir string, out *suite.Outcome) (m report.Model, err error) {
	runs, err := s.source(dir).SuiteRuns(out.Suite, store.Folders(out.Runs))
	if err != nil {
		return m, err
	}
	return runs.Model("")
}
