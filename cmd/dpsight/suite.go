package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// suiteFlags are the options of collect that belong to a suite.
type suiteFlags struct {
	Suite       string   `help:"Run a list of experiments: a file, or a built-in suite." placeholder:"FILE|NAME" group:"Suite"`
	DryRun      bool     `help:"Print the suite's plan and run nothing." group:"Suite"`
	Format      string   `help:"How to print the plan: ${enum}." enum:"table,json,csv,markdown,latex" default:"table" placeholder:"FORMAT" group:"Suite"`
	Only        []string `help:"Only the experiments with this parameter; may be repeated: values of one parameter are alternatives, and all parameters must hold." placeholder:"K=V" sep:"none" group:"Suite"`
	Resume      bool     `help:"Go on with the newest suite of this name in the store: what is done is not made again." group:"Suite"`
	ResumeFrom  string   `help:"Go on with the suite of this id." placeholder:"SUITE-ID" group:"Suite"`
	RetryFailed bool     `help:"With --resume: make again what failed, too." group:"Suite"`
	Jobs        int      `help:"Experiments at the same time, each on a GPU of its own." default:"1" placeholder:"N" group:"Suite"`
	Report      string   `help:"Folder for the suite's report (default: STORE/report-SUITE)." placeholder:"DIR" group:"Suite"`
	NoReport    bool     `help:"Do not draw the suite's report." group:"Suite"`
}

// check refuses what has no effect.
func (f *suiteFlags) check() error {
	switch {
	case f.Suite == "" && (f.Report != "" || f.NoReport):
		return withHint{errors.New("--report and --no-report belong to a suite"), "dpsight report RUN -o DIR reports " +
			"on a single run"}
	case f.Suite == "" && (f.DryRun || f.Resume || f.ResumeFrom != "" || f.RetryFailed || len(f.Only) > 0 ||
		f.Jobs != 1):
		return withHint{errors.New("--dry-run, --only, --resume, --retry-failed and --jobs belong to a suite"),
			"name one with --suite"}
	case f.Jobs < 1:
		return withHint{fmt.Errorf("--jobs must be 1 or more, not %d", f.Jobs), "1 makes the experiments one after " +
			"another"}
	case f.RetryFailed && !f.resuming():
		return withHint{errors.New("--retry-failed goes with --resume"), "--resume --retry-failed goes on with the " +
			"newest suite of the name; a suite that begins anew makes all its runs"}
	case f.Format != "table" && !f.DryRun:
		return withHint{errors.New("--format is of the plan that --dry-run prints"), "dpsight runs and dpsight " +
			"analyze print what was recorded in every format"}
	}
	return nil
}

func (f *suiteFlags) resuming() bool { return f.Resume || f.ResumeFrom != "" }

// load reads the suite and leaves what --only asks for.
func (f *suiteFlags) load() (*suite.Suite, error) {
	plan, err := suite.Load(f.Suite)
	if err == nil && len(f.Only) > 0 {
		plan, err = plan.Select(f.Only)
	}
	return plan, err
}

func (f *suiteFlags) earlier(plan *suite.Suite, dir string, m *collect.Machine,
	console *collect.Console) (*suite.Resumption, error) {
	r, err := plan.Resume(store.Open(dir), suite.ResumeOptions{ID: f.ResumeFrom, Machine: m, RetryFailed: f.RetryFailed,
		LookOnly: f.DryRun,
		Waiting: func(id string) {
			console.Println("dpsight: waiting for run " + id + ", which a killed suite has left")
		}})
	var path *fs.PathError
	if errors.As(err, &path) {
		err = withHint{fmt.Errorf("the store %s cannot be read: %w", dir, path.Err), "name another folder with --store"}
	}
	return r, err
}

// dryRun is --dry-run: a suite for a GPU can be planned where there is none.
func (c *collectCmd) dryRun(s *streams, console *collect.Console, plan *suite.Suite) error {
	machine, err := collect.PlannedMachine(c.Device)
	if err != nil {
		return err
	}
	defer machine.Close()
	earlier, err := c.earlier(plan, c.Store, machine, console)
	if err != nil {
		return err
	}
	return c.printPlan(s, plan, earlier, machine.Note)
}

func (f *suiteFlags) printPlan(s *streams, plan *suite.Suite, r *suite.Resumption, device string) error {
	doc := plan.Plan(r, f.resuming())
	t := table.Table{Title: "Suite " + doc.Name, Document: doc,
		Columns: []table.Column{{Title: "Experiment", Key: "name"}}}
	for _, name := range doc.Varies {
		t.Columns = append(t.Columns, table.Column{Title: name, Key: name})
	}
	t.Columns = append(t.Columns, table.Column{Title: "Repeats", Key: "repeats", Right: true},
		table.Column{Title: "Done", Key: "done", Right: true},
		table.Column{Title: "Failed", Key: "failed", Right: true}, table.Column{Title: "To make", Key: "todo",
			Right: true, For: table.Programs}, table.Column{Title: "Key", Key: "key"})
	if f.resuming() && doc.SuiteID != nil {
		t.Columns[len(t.Columns)-2].For = table.Everybody
	}
	var again []string
	for _, x := range doc.Experiments {
		row := []table.Cell{table.Text(x.Name)}
		for _, name := range doc.Varies {
			cell := table.Absent()
			if name == "bare" {
				cell = table.Cell{Text: fmt.Sprint(x.Bare), Value: x.Bare}
			} else if v, ok := x.Params[name]; ok {
				cell = table.Cell{Text: fmt.Sprint(v), Value: v}
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, append(row, table.Count(int64(x.Repeats)), table.Count(int64(x.Done)),
			table.Count(int64(x.Failed)), table.Count(int64(x.Todo)), table.Text(x.Key)))
		for _, status := range x.Again {
			again = append(again, x.Name+" ("+status+")")
		}
	}
	note := fmt.Sprintf("%d experiments, %d runs, %d to make", len(doc.Experiments), doc.Runs, doc.Todo)
	if doc.LeftOut > 0 {
		note += fmt.Sprintf("; exclude and where leave out %d more", doc.LeftOut)
	}
	t.Notes = append(t.Notes, note)
	if len(again) > 0 {
		const most = 8
		t.Notes = append(t.Notes, fmt.Sprintf("%d of them again: %s", len(again), analyze.Some(again, most)))
	}
	t.Notes = append(t.Notes, device)
	if doc.SuiteID != nil {
		note = "done and failed are those of suite " + *doc.SuiteID
		if !f.resuming() {
			note += "; without --resume all are made anew"
		}
		t.Notes = append(t.Notes, note)
	}
	return table.Write(s.out, f.Format, t)
}

func (c *collectCmd) runSuite(s *streams, console *collect.Console, plan *suite.Suite, e collect.Experiment) error {
	if c.Report != "" && !c.NoReport && writable(c.Report) != nil { // better now than after hours of recording
		return withHint{fmt.Errorf("the report %s cannot be written: not a directory", c.Report),
			"name another folder with --report"}
	}
	options := suite.Options{Template: e, Jobs: c.Jobs}
	var broken []string
	if c.resuming() {
		earlier, err := c.earlier(plan, c.Store, e.Machine, console)
		if err != nil {
			return err
		}
		if options.Resume = earlier; earlier == nil {
			console.Println(fmt.Sprintf("dpsight: no suite %s to go on with in %s: beginning anew", plan.Name, c.Store))
		} else {
			console.Println(fmt.Sprintf("dpsight: going on with suite %s: %s", earlier.Suite.ID,
				leftToDo(len(earlier.Todo), len(plan.Tasks()))))
			broken = recoverRuns(console, earlier.Runs)
		}
	}
	options.Begin = func(i, of int, t suite.Task) {
		text := fmt.Sprintf("dpsight: experiment %d of %d: %s", i+1, of, t.Name)
		if t.Repeats > 1 {
			text += fmt.Sprintf(" (repetition %d of %d)", t.Repetition+1, t.Repeats)
		}
		console.Println(text)
	}
	options.End = func(r *collect.Result) {
		if err := digest(console, r); err != nil {
			broken = append(broken, err.Error())
		}
	}
	if c.Jobs > 1 {
		console.Together()
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(2*c.Jobs, runtime.NumCPU())))
	}
	if c.Jobs > 1 && !c.Quiet {
		options.Output = func(t suite.Task, e *collect.Experiment) {
			e.Stdout, e.Stderr = console.Prefixed(s.err, t.Name), console.Prefixed(s.err, t.Name)
		}
	}
	out, err := plan.Run(context.Background(), options)
	if err != nil {
		return err
	}
	for _, f := range out.Failures {
		broken = append(broken, fmt.Sprintf("%s could not be recorded: %v", f.Task.Name, f.Err))
	}
	for _, b := range broken {
		console.Println("dpsight: warning: " + oneLine(b))
	}
	switch dest := c.reportFolder(plan); {
	case len(out.Runs) == 0:
	case len(out.Results) == 0 && !c.NoReport && report.Drawn(dest, folders(out.Runs)):
		fmt.Fprintf(s.err, "dpsight: report in %s, drawn before\n", filepath.Clean(dest))
	default:
		if err := c.reportSuite(s, out, dest); err != nil {
			return err
		}
	}
	return suiteFailure(out, len(broken))
}

func leftToDo(todo, of int) string {
	if todo == 0 {
		return fmt.Sprintf("all %d experiments are done", of)
	}
	return fmt.Sprintf("%d of %d experiments are left to do", todo, of)
}

func (c *collectCmd) reportFolder(plan *suite.Suite) string {
	if c.Report != "" {
		return c.Report
	}
	return filepath.Join(c.Store, "report-"+collect.SafeName(plan.Name))
}

func folders(runs []store.Run) []string {
	var out []string
	for _, r := range runs {
		out = append(out, r.Dir)
	}
	return out
}

// recoverRuns ingests what a killed suite left: runs that were made and not ingested, and those that were cut short.
func recoverRuns(console *collect.Console, runs []store.Run) (broken []string) {
	for _, r := range runs {
		if _, err := schemas.ReadIngestReport(r.Dir); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := collect.MergeSegments(r.Dir)
		if err == nil {
			err = digest(console, &collect.Result{Manifest: r.Manifest, Dir: r.Dir})
		}
		if err != nil {
			broken = append(broken, fmt.Sprintf("run %s: %v", r.ID, err))
		}
	}
	return broken
}

// reportSuite draws the report of the suite's runs, those made before too; without one it says by method what became of
// them.
func (c *collectCmd) reportSuite(s *streams, out *suite.Outcome, dest string) error {
	dirs := folders(out.Runs)
	sel, err := store.Open(c.Store).Resolve(dirs)
	if err != nil {
		return err
	}
	sel.Suite = out.Suite
	if c.NoReport {
		study, err := studyOf(s, sel, dirs)
		if err != nil {
			return err
		}
		return table.Write(s.out, "table", report.SuccessTables(analyze.Success(study.Runs))...)
	}
	m, err := modelOf(s, c.Store, sel, dirs, "")
	if err != nil {
		return err
	}
	return drawReport(s, m, sel, dest, c.Quiet)
}

// suiteFailure is nil where every experiment was recorded and ended well.
func suiteFailure(out *suite.Outcome, broken int) error {
	var bad []string
	for _, r := range out.Runs {
		if r.Manifest.Status != schemas.StatusOK {
			bad = append(bad, fmt.Sprintf("%s (%s)", r.Manifest.Name, r.Manifest.Status))
		}
	}
	const most = 8
	named := analyze.Some(bad, most)
	hint := "what was recorded is kept: dpsight runs lists it"
	switch {
	case out.Interrupted:
		return failure{withHint{fmt.Errorf("the suite was interrupted after %d of %d experiments", len(out.Runs),
			out.Planned), hint + "; --resume makes the others"}}
	case len(bad) > 0:
		return failure{withHint{fmt.Errorf("%d of %d experiments did not end well: %s", len(bad), out.Planned, named),
			hint + "; --resume --retry-failed makes these again"}}
	case !out.OK() || broken > 0:
		return failure{withHint{fmt.Errorf("%d of %d experiments could not be recorded and ingested", broken,
			out.Planned), hint}}
	}
	return nil
}
