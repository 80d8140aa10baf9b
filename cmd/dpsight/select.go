package main

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// selectRuns resolves RUN arguments.
func selectRuns(s *streams, dir string, names []string) (*store.Selection, error) {
	return s.selected(store.Open(dir).Resolve(names))
}

// selected says which runs were taken where that is not obvious, and what could not be read or has no tables.
func (s *streams) selected(sel *store.Selection, err error) (*store.Selection, error) {
	if err != nil {
		return nil, advise(err, "name a folder of runs with --store")
	}
	notes, warnings := sel.Notes()
	for _, n := range notes {
		s.say(n)
	}
	for _, w := range warnings {
		s.warn(w)
	}
	if len(sel.Runs) > 1 { // a single run without tables is refused by name
		s.warn(sel.Pending(collect.Running).Warning())
	}
	return sel, nil
}

// A leaver takes out of a selection what a command does not look at, and says so.
type leaver func(*streams, *store.Selection)

// leaveNone takes nothing out.
func leaveNone(*streams, *store.Selection) {}

// leaveTrials takes out what searches tried.
func leaveTrials(s *streams, sel *store.Selection) { leaveTrialsBut(nil)(s, sel) }

// leaveTrialsBut takes out what searches tried and the baseline has not.
func leaveTrialsBut(baseline *schemas.Baseline) leaver {
	return func(s *streams, sel *store.Selection) {
		kept := analyze.WithoutTrials(sel.Runs, manifestOf, sel.IsNamed, baseline)
		sel.Trials, sel.Runs = len(sel.Runs)-len(kept), kept
		s.note(report.TrialsNote(sel.Trials))
	}
}

// leaveSuperseded takes out the runs that did not end well and that were made again.
func leaveSuperseded(s *streams, sel *store.Selection) {
	kept := analyze.WithoutSuperseded(sel.Runs, manifestOf, sel.IsNamed, sel.Manifests)
	sel.Superseded, sel.Runs = len(sel.Runs)-len(kept), kept
	s.note(report.SupersededNote(sel.Superseded))
}

func manifestOf(r store.Run) *schemas.Manifest { return r.Manifest }

// load reads all tables of one run.
func load(r store.Run, want store.Want) (analyze.Input, error) {
	t, err := store.Load(r, want)
	if err != nil {
		return analyze.Input{}, &store.TablesError{Dir: r.Dir, Err: err}
	}
	return analyze.Input(*t), nil
}

// each is [store.Selection.Each] that warns of what cannot be read.
func each(s *streams, sel *store.Selection, want store.Want, tolerant bool, use func(analyze.Input) error) error {
	known := len(sel.Damaged)
	err := sel.Each(want, tolerant, func(t *store.Tables) error { return use(analyze.Input(*t)) })
	for _, d := range sel.Damaged[known:] {
		s.warn(d.Error())
	}
	return err
}

// rows analyses each selected run. Of several, those without tables are listed by their manifests.
func rows[T any](s *streams, sel *store.Selection, want store.Want, one func(analyze.Input) (T, error)) ([]T, error) {
	var out []T
	err := each(s, sel, want, len(sel.Runs) > 1, func(in analyze.Input) error {
		row, err := one(in)
		out = append(out, row)
		return err
	})
	return out, err
}

// always is an analysis that every run has.
func always[T any](one func(analyze.Input) T) func(analyze.Input) (T, error) {
	return func(in analyze.Input) (T, error) { return one(in), nil }
}

// summarized selects runs without what leave takes out, and reduces them.
func summarized(s *streams, dir string, names []string, leave leaver) (*store.Selection, []analyze.Summary, error) {
	sel, err := selectRuns(s, dir, names)
	if err != nil {
		return nil, nil, err
	}
	leave(s, sel)
	leaveSuperseded(s, sel)
	if err := sel.Pending(collect.Running).Err(); err != nil {
		return nil, nil, err
	}
	runs, err := summarize(s, sel)
	return sel, runs, err
}

// summarize reduces the selected runs.
func summarize(s *streams, sel *store.Selection) (runs []analyze.Summary, err error) {
	err = each(s, sel, store.WantAll, true, func(in analyze.Input) error {
		runs = append(runs, analyze.Summarize(in))
		return nil
	})
	return runs, err
}
