package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// selectRuns resolves RUN arguments and says on errw what was taken where nothing was named or a name stands for
// several runs, and what could not be read.
func selectRuns(errw io.Writer, dir string, args []string) (*store.Selection, error) {
	return announce(errw, dir, func(s *store.Store) (*store.Selection, error) { return s.Resolve(args) })
}

// selectAll takes a store's runs.
func selectAll(errw io.Writer, dir string) (*store.Selection, error) {
	return announce(errw, dir, (*store.Store).All)
}

func announce(errw io.Writer, dir string, choose func(*store.Store) (*store.Selection, error)) (*store.Selection,
	error) {
	sel, err := choose(store.Open(dir))
	if err != nil {
		return nil, withHint{err, selectHint(err, dir)}
	}
	for _, n := range sel.Newest {
		fmt.Fprintf(errw, "dpsight: %s\n", n)
	}
	if sel.Chosen != "" {
		fmt.Fprintln(errw, "dpsight: taking "+sel.Chosen)
	}
	for _, d := range sel.Damaged {
		fmt.Fprintf(errw, "dpsight: warning: %v\n", d)
	}
	for _, id := range sel.Missing {
		fmt.Fprintf(errw, "dpsight: warning: run %s of the suite is not in the store\n", id)
	}
	if len(sel.Runs) > 1 { // one alone is refused by name
		notePending(errw, sel.Runs)
	}
	return sel, nil
}

// notePending says which runs have no tables, and what makes them.
func notePending(errw io.Writer, runs []store.Run) {
	switch n, folder := pending(runs); {
	case n == 0:
	case len(runs) == 1:
		fmt.Fprintf(errw, "dpsight: warning: %v\n", &store.NotIngestedError{RunID: runs[0].ID, Dir: runs[0].Dir})
	default:
		fmt.Fprintf(errw, "dpsight: warning: %d of %d runs have not been ingested, so there is nothing to analyse of "+
			"them: dpsight ingest %s\n", n, len(runs), folder)
	}
}

// pending counts the runs that are no longer recorded and have no tables, and gives what to ingest: the run, or the
// store of several.
func pending(runs []store.Run) (n int, folder string) {
	for _, r := range runs {
		if r.Ingested() || r.Manifest.Status == schemas.StatusPartial && collect.Running(r.Dir) {
			continue
		}
		switch n++; {
		case n == 1:
			folder = r.Dir
		case n == 2 && filepath.Dir(folder) == filepath.Dir(r.Dir):
			folder = filepath.Dir(r.Dir)
		case folder != filepath.Dir(r.Dir):
			folder = "FOLDER"
		}
	}
	return n, folder
}

// nothingIngested refuses runs of which none has tables. Some that lack theirs are said beside the others; without any
// there would be pages of dashes, and sentences about figures that nobody knows.
func nothingIngested(sel *store.Selection) error {
	switch n, folder := pending(sel.Runs); {
	case n == 0 || n < len(sel.Runs):
		return nil
	case n == 1:
		return &store.NotIngestedError{RunID: sel.Runs[0].ID, Dir: sel.Runs[0].Dir}
	default:
		return withHint{fmt.Errorf("none of %d runs has been ingested", n), "dpsight ingest " + folder}
	}
}

// selectHint says what to do about runs that are not there.
func selectHint(err error, dir string) string {
	var none *store.NoRunsError
	var notFound *store.NotFoundError
	var damaged store.Damaged
	switch {
	case errors.As(err, &none) && len(none.Below) > 0:
		return "a store is the folder that the run folders lie in: " +
			strings.Join(none.Below[:min(len(none.Below), 4)], ", ") + " has runs"
	case errors.As(err, &none):
		return "record one with dpsight collect, or name a store with --store"
	case errors.As(err, &notFound) && notFound.Many:
		return "give more of the id"
	case errors.As(err, &notFound) && notFound.File:
		return "dpsight ingest takes files; an analysis takes what it makes of them"
	case errors.As(err, &notFound):
		return "dpsight runs --store " + dir + " lists them; a store of another place goes in as a folder"
	case errors.As(err, &damaged):
		return damagedHint(damaged)
	}
	return "name a folder of runs with --store"
}

// damagedHint says what to do about a manifest that cannot be read.
func damagedHint(err error) string {
	var other *schemas.SchemaError
	if errors.As(err, &other) && other.Newer() {
		return "what a newer dpsight recorded wants that dpsight; --store names another store"
	}
	return "a run is its folder: take it from a copy, or leave it out"
}

// load reads what an analysis wants of a run. With tolerate, a run without tables is given with its manifest alone: a
// list of runs shows it, where an analysis of it would be refused.
func load(r store.Run, want store.Want, tolerate bool) (analyze.Input, error) {
	t, err := store.Load(r, want)
	var pending *store.NotIngestedError
	if tolerate && errors.As(err, &pending) {
		return analyze.Input{Manifest: r.Manifest}, nil
	}
	if err != nil {
		return analyze.Input{}, unreadable{err, r}
	}
	return analyze.Input(*t), nil
}

// unreadable is a run whose tables cannot be read. They can be derived again.
type unreadable struct {
	error
	run store.Run
}

func (u unreadable) Unwrap() error { return u.error }

func (u unreadable) Hint() string {
	var pending *store.NotIngestedError
	if errors.As(u.error, &pending) { // the error says it
		return ""
	}
	return "dpsight ingest --again " + u.run.Dir + " makes the tables anew from the recording"
}

// each hands the selected runs to use, one after another, so that the tables of one are in memory at a time. A run that
// cannot be read is an error where it was named; where an argument stood for many runs it goes to the damaged ones, as
// it would hide the others.
func each(s *streams, sel *store.Selection, names []string, want store.Want, tolerate bool,
	use func(analyze.Input) error) error {
	var whole []store.Run
	for _, r := range sel.Runs {
		in, err := load(r, want, tolerate)
		if err != nil {
			if len(sel.Runs) <= max(1, len(names)) {
				return err
			}
			damaged := store.Damaged{Dir: r.Dir, Err: err}
			sel.Damaged = append(sel.Damaged, damaged)
			fmt.Fprintf(s.err, "dpsight: warning: %s\n", oneLine(damaged.Error()))
			continue
		}
		if err := use(in); err != nil {
			return err
		}
		whole = append(whole, r)
	}
	if len(sel.Runs) == 0 && len(sel.Damaged) > 0 { // not even their manifests
		err := store.UnreadableError{Damaged: sel.Damaged[0]}
		return withHint{err, damagedHint(err)}
	}
	if len(whole) == 0 {
		return withHint{fmt.Errorf("none of %d runs can be read", len(sel.Runs)), "dpsight ingest --again FOLDER " +
			"makes the tables anew from the recordings"}
	}
	sel.Runs = whole
	return nil
}

// summarized resolves RUN arguments and reduces the runs, without what searches tried. Where none has tables they are
// refused.
func summarized(s *streams, dir string, names []string) (*store.Selection, []analyze.Summary, error) {
	return summarizedBut(s, dir, names, leaveTrials)
}

// A leaver takes out of a selection what a command does not look at, and says so.
type leaver func(io.Writer, *store.Selection)

func leaveTrials(errw io.Writer, sel *store.Selection) { withoutTrials(errw, sel, nil) }

// leaveNone takes nothing out.
func leaveNone(io.Writer, *store.Selection) {}

// summarizedBut is [summarized] without what leave takes out of the selection, instead of trials.
func summarizedBut(s *streams, dir string, names []string, leave leaver) (*store.Selection, []analyze.Summary, error) {
	sel, err := selectRuns(s.err, dir, names)
	if err != nil {
		return nil, nil, err
	}
	leave(s.err, sel)
	withoutSuperseded(s.err, sel)
	if err := nothingIngested(sel); err != nil {
		return nil, nil, err
	}
	runs, err := summarize(s, sel, names)
	return sel, runs, err
}

// summarize reduces the selected runs.
func summarize(s *streams, sel *store.Selection, names []string) ([]analyze.Summary, error) {
	var out []analyze.Summary
	err := each(s, sel, names, store.WantAll, true, func(in analyze.Input) error {
		out = append(out, analyze.Summarize(in))
		return nil
	})
	return out, err
}

// withHint adds advice to an error.
type withHint struct {
	error
	hint string
}

func (w withHint) Hint() string  { return w.hint }
func (w withHint) Unwrap() error { return w.error }
