package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/fit"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// fitFlags are the options of predict that search.
type fitFlags struct {
	Fit   string `help:"With --vary: the memory to fit into, as 80GiB: what the process can take for its tensors, beside its CUDA context (default: what the device leaves to it)." placeholder:"SIZE" group:"Search"`
	Vary  string `help:"Find the largest value of a parameter that fits, by bisection and a few values beside it: NAME=LOW..HIGH or NAME=LOW..HIGH:STEP. --method may then name several. A command has {NAME} where the value goes." placeholder:"NAME=LOW..HIGH" group:"Search"`
	Fresh bool   `help:"With --vary: make every run anew, also those that the store has." group:"Search"`
	Out   string `short:"o" help:"With --vary: folder for the tables and the figure (default: STORE/fit-NAME); where it has those of another search, DIR-2 and so on." placeholder:"DIR" group:"Search"`
}

// check refuses what has no effect.
func (f *fitFlags) check(c *predictCmd) error {
	switch {
	case f.Vary == "" && f.Fit != "":
		return withHint{errors.New("--fit says what to fit into, and --vary is not given"),
			"as in --fit 80GiB --vary batch_size=1..512; --gpu-memory predicts a single run"}
	case f.Vary == "" && (f.Fresh || f.Out != ""):
		return withHint{errors.New("--fresh and --out go with --vary"), "dpsight report RUN -o DIR reports on a " +
			"single run"}
	case f.Fit != "" && c.GPUMemory != "":
		return withHint{errors.New("--fit and --gpu-memory both say how much memory there is"), "leave one out"}
	case f.Vary != "" && c.Seeds != 1:
		return withHint{errors.New("--seeds does not go with --vary"), "predict the value that was found with --seeds"}
	}
	return nil
}

// runFit finds for each method and device the largest value that fits.
func (c *predictCmd) runFit(s *streams, console *collect.Console, e collect.Experiment, given map[string]string,
	machines []*collect.Machine) error {
	vary, err := fit.ParseRange(c.Vary)
	if err != nil {
		return err
	}
	out := c.Out
	if out == "" {
		out = filepath.Join(c.Store, "fit-"+collect.SafeName(vary.Name))
	}
	var written []string
	for _, folder := range report.FitFolders(out) {
		written = append(written, folder, filepath.Join(folder, "fit.json"))
	}
	search := &fit.Search[analyze.FitRun]{Range: vary, Template: e, Machines: machines, Fresh: c.Fresh, Ours: written,
		Load: fitLoaded,
		Run:  func(e collect.Experiment) (analyze.FitRun, error) { return fitRun(console, e) }}
	if len(given) > 0 {
		search.Given = given
	} else {
		search.Template.Command, search.Template.Params = c.Command, c.paramsOfCommand()
	}
	cells, err := search.Cells()
	if err != nil {
		return err
	}
	if schemas.CheckFolder(out) != nil { // better now than after an hour
		return withHint{fmt.Errorf("the folder %s cannot be written: not a directory", out), "name another with -o"}
	}
	var searches []analyze.FitSearch
	var bad []string
	for i := range cells {
		cell := &cells[i]
		done := analyze.FitSearch{Method: cell.Method, Profile: cell.Machine.Profile(),
			MemoryBytes: cell.Machine.ProcessBytes(), GPU: cell.Machine.GPUName(),
			Only: cell.Values.Only, Barred: cell.Values.Barred, Top: cell.Values.Top}
		console.Println("dpsight: " + cell.Machine.Note)
		err := search.Find(context.Background(), cell, func(f fit.Found[analyze.FitRun]) {
			run := f.Answer
			run.Value, run.Kept = f.Value, f.Kept
			done.Runs = append(done.Runs, run)
			console.Println(fitProgress(&done, &cell.Values))
		})
		var usage *collect.UsageError
		// nothing was run: it is a mistake in what was asked for
		if errors.As(err, &usage) && len(searches) == 0 && len(done.Runs) == 0 {
			return err
		}
		if err != nil {
			done.Stopped = oneLine(err.Error())
			bad = append(bad, done.Method+" on "+done.GPU+": "+done.Stopped)
		}
		searches = append(searches, done)
		if errors.Is(err, fit.ErrInterrupted) {
			break
		}
	}
	doc := analyze.Fit(analyze.Vary{Name: vary.Name, Low: vary.Low, High: vary.High, Step: vary.Step}, searches)
	if err := table.Write(s.out, c.Format, report.FitTables(doc)...); err != nil {
		return err
	}
	folder := report.FitFolder(out, &doc)
	if _, err := report.WriteFit(folder, doc); err != nil {
		return withHint{err, "name a folder that can be written"}
	}
	if folder != filepath.Clean(out) {
		fmt.Fprintf(s.err, "dpsight: note: %s has the tables of another search, which are kept\n", filepath.Clean(out))
	}
	fmt.Fprintf(s.err, "dpsight: tables and figure in %s\n", folder)
	if len(bad) > 0 {
		return failure{withHint{errors.New("the search did not come to its end: " + bad[0]), "what was predicted is " +
			"kept: the same command goes on from there"}}
	}
	if nothing := doc.Failure(); nothing != "" {
		return failure{withHint{errors.New(nothing), "dpsight analyze findings on its run says what was in the way"}}
	}
	return nil
}

// fitProgress is the line of the last run of a search.
func fitProgress(done *analyze.FitSearch, vary *fit.Values) string {
	run := &done.Runs[len(done.Runs)-1]
	text := fmt.Sprintf("dpsight: %s on %s, %s %d: ", done.Method, done.GPU, vary.Name, run.Value)
	switch fits, why := run.Verdict(); {
	case fits == nil:
		text += "ended for another reason than memory"
		if why != "" {
			text += " (" + oneLine(why) + ")"
		}
	case !*fits:
		text += "does not fit"
		if why != "" {
			text += " (" + why + ")"
		}
	case run.Run.PeakReservedBytes != nil:
		text += fmt.Sprintf("fits, %s reserved", table.Size(*run.Run.PeakReservedBytes))
	default:
		text += "fits"
	}
	if run.Kept {
		text += ", as the store has it"
	}
	return fmt.Sprintf("%s (run %d of about %d)", text, len(done.Runs), vary.Probes())
}

// fitLoaded reads a run that the store has.
func fitLoaded(r store.Run) (analyze.FitRun, error) {
	in, err := load(r, store.WantAll|store.WantDetail)
	if err != nil {
		return analyze.FitRun{}, err
	}
	return analyze.NewFitRun(in), nil
}

// fitRun makes a run and reads it.
func fitRun(console *collect.Console, e collect.Experiment) (analyze.FitRun, error) {
	var none analyze.FitRun
	r, err := collect.Run(context.Background(), e)
	if r == nil {
		return none, err
	}
	if _, unmade := makeTables(console, r); unmade != nil {
		return none, unmade
	}
	switch {
	case r.Interrupted:
		return none, fit.ErrInterrupted
	case err != nil:
		return none, fmt.Errorf("the run %s was not recorded as it should have been: %w", r.Manifest.RunID, err)
	}
	in, err := tablesOf(r.Dir)
	if err != nil {
		return none, err
	}
	return analyze.NewFitRun(in), nil
}
