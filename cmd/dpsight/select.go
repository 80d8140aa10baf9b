package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/schemas/store"
)

// selectRuns resolves RUN arguments and says on errw what was taken where nothing was named, and what could not be read.
func selectRuns(errw io.Writer, dir string, args []string) (*store.Selection, error) {
	sel, err := store.Open(dir).Resolve(args)
	if errors.Is(err, store.ErrNoRuns) {
		return nil, withHint{err, "record one with dpsight collect, or name a store with --store"}
	}
	var notFound *store.NotFoundError
	if errors.As(err, &notFound) && !notFound.Many {
		return nil, withHint{err, "dpsight runs --store " + dir + " lists them"}
	}
	var damaged store.Damaged
	if errors.As(err, &damaged) {
		return nil, withHint{err, "a run is its folder: take it from a copy, or leave it out"}
	}
	if err != nil {
		return nil, withHint{err, "name a folder of runs with --store"}
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
	return sel, nil
}

// load reads what an analysis wants of a run. With tolerate, a run without tables is given with its manifest alone: a list of runs
// shows it, where an analysis of it would be refused.
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
func each(s *streams, sel *store.Selection, names []string, want store.Want, tolerate bool, use func(analyze.Input) error) error {
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
	if len(whole) == 0 {
		return fmt.Errorf("none of %d runs can be read", len(sel.Runs))
	}
	sel.Runs = whole
	return nil
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
