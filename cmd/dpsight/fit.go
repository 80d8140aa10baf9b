package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/fit"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
	"github.com/dpsight/dpsight/schemas/units"
)

// fitFlags are the options of predict that make it a search for the largest value that fits.
type fitFlags struct {
	Fit   collect.DeviceMemory `help:"${fit}" placeholder:"SIZE"`
	Vary  string               `help:"${vary}" placeholder:"NAME=LOW..HIGH"`
	Fresh bool                 `help:"With --vary: repeat all runs, even those that the store has."`
	Out   string               `short:"o" help:"${predict_out}" placeholder:"DIR"`
}

// check refuses options that have no effect.
func (f *fitFlags) check(c *predictCmd) error {
	return refuse(
		misuse{f.Vary == "" && f.Fit.Bytes != 0, "--fit says what to fit into, and --vary is not given",
			"as in --fit 80GiB --vary batch_size=1..512; --gpu-memory predicts a single run"},
		misuse{f.Vary == "" && (f.Fresh || f.Out != ""), "--fresh and --out go with --vary",
			"dpsight report RUN -o DIR reports on a single run"},
		misuse{f.Fit.Bytes != 0 && c.GPUMemory.Bytes != 0, "--fit and --gpu-memory both say how much memory there is",
			"leave one out"},
		misuse{f.Vary != "" && c.Seeds != 1, "--seeds does not go with --vary",
			"predict the value that was found with --seeds"})
}

// search finds the largest value that fits, for each method and device.
func (c *predictCmd) search(s *streams, console *collect.Console, e collect.Experiment, given map[string]string,
	machines []*collect.Machine) error {
	vary, err := fit.ParseRange(c.Vary)
	if err != nil {
		return err
	}
	out := filepath.Clean(c.Out)
	if c.Out == "" {
		out = vary.Folder(c.Store)
	}
	search := &fit.Search[report.Probe]{Range: vary, Template: e, Given: given, Machines: machines, Fresh: c.Fresh,
		Ours: report.FitOutputs(out), Margin: c.marginOf, Plan: console.Plan,
		Slow: func(took time.Duration) { console.Println("dpsight: hint: " + report.SlowProbe(took)) },
		Load: func(r store.Run) (report.Probe, error) { return selected.Probe(r.Dir) },
		Run: fit.Record(context.Background(), func(r *collect.Result) error {
			_, err := makeTables(console, r)
			return err
		}, deciding(console), selected.Probe)}
	cells, err := search.Cells()
	if err != nil {
		return err
	}
	if schemas.CheckFolder(out) != nil { // refused now rather than after an hour
		return withHint(fmt.Errorf("the folder %s cannot be written: not a directory", out), "name another with -o")
	}
	trails, err := search.All(context.Background(), cells,
		func(cell *fit.Cell) { console.Println("dpsight: " + cell.Machine.Note) },
		func(t *fit.Trail[report.Probe]) {
			done := fitSearch(t)
			console.Println("dpsight: " + units.OneLine(report.FitProgress(&done, vary.Name, t.Probes())))
		})
	if err != nil {
		return err
	}
	var searches []predict.FitSearch
	for i := range trails {
		searches = append(searches, fitSearch(&trails[i]))
	}
	doc := predict.Fit(predict.Vary{Name: vary.Name, Low: vary.Low, High: vary.High, Step: vary.Step}, searches)
	if err := c.writeFit(s, doc, out); err != nil {
		return err
	}
	if err := report.FitFailure(&doc); err != nil {
		return failure{err}
	}
	return nil
}

// marginOf returns the memory that a search should leave free on a machine's GPU.
func (c *predictCmd) marginOf(m *collect.Machine) int64 {
	return predict.MarginBytes(m.ProcessBytes(), m.Checked(), (*float64)(c.Margin))
}

// writeFit prints the results of searches and writes them to a folder. If the folder has another search's tables,
// writeFit keeps these and writes to a new folder beside.
func (c *predictCmd) writeFit(s *streams, doc predict.FitDocument, out string) error {
	if err := table.Write(s.out, c.Format, report.FitTables(doc)...); err != nil {
		return err
	}
	folder, err := report.SaveFit(out, doc)
	if err != nil {
		return err
	}
	if folder != out {
		s.note(out + " has the tables of another search, which are kept")
	}
	s.say("tables and figure in " + folder)
	return nil
}

// fitSearch converts what one search has found so far.
func fitSearch(t *fit.Trail[report.Probe]) predict.FitSearch {
	m := t.Machine
	done := predict.FitSearch{Method: t.Method, Profile: m.Profile(), MemoryBytes: m.ProcessBytes(),
		MarginBytes: t.Margin, GPU: m.GPUName(),
		Only: t.Values.Only, Barred: t.Values.Barred, Top: t.Values.Top}
	for _, f := range t.Found {
		run := f.Answer.FitRun
		run.Value, run.Kept = f.Value, f.Kept
		done.Runs = append(done.Runs, run)
	}
	if t.Stopped != nil {
		done.Stopped, done.Unanswered = units.OneLine(t.Stopped.Error()), t.Unanswered()
	}
	return done
}
