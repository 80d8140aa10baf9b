// Package selected reads the runs that a command selected, one after another, and hands them to analyses.
package selected

import (
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// A Source is a store from which runs are selected, with callbacks for messages about the selection.
type Source struct {
	Store string
	// Named is true if the command names the store. If it is true, a command without run arguments means all runs of
	// the store. If not, it means the newest suite or run.
	Named bool
	// Where is a condition on the runs. Runs that do not fulfil it are left out. "" keeps all runs.
	Where string
	// Recording returns how far a run has come that a collector is still recording, and nil for any other folder.
	Recording func(dir string) *store.Progress
	// Say gets messages about what was selected, Note about what was left out, and Warn about runs that could not be
	// read or have no tables.
	Say, Note, Warn func(text string)
	// Doing is called with the progress of long work, the last time with done equal to of. Doing may be nil.
	Doing func(text string, done, of int)
}

// Runs are the selected runs of a source.
type Runs struct {
	*store.Selection
	from    *Source
	leftOut []string // notes on runs that were removed from the selection
}

// Only returns the source with a condition on its runs.
func (s *Source) Only(where string) *Source {
	only := *s
	only.Where = where
	return &only
}

// Select returns the runs that the RUN arguments of a command name.
func (s *Source) Select(names []string) (*Runs, error) {
	if (s.Named || s.Where != "") && len(names) == 0 {
		return s.SelectEach(nil)
	}
	return s.announce(store.OpenIndexed(s.Store).Resolve(names))
}

// SelectEach does what Select does, but a name stands for all runs with that name, and no name stands for the whole
// store.
func (s *Source) SelectEach(names []string) (*Runs, error) {
	return s.announce(store.OpenIndexed(s.Store).ResolveEach(names))
}

// Folder selects one run by its folder, and prints no messages.
func (s *Source) Folder(dir string) (*Runs, error) {
	sel, err := store.Open(s.Store).Resolve([]string{dir})
	return &Runs{Selection: sel, from: s}, err
}

// SuiteRuns selects the runs of a suite by their folders, and prints no messages.
func (s *Source) SuiteRuns(suite *store.Suite, dirs []string) (*Runs, error) {
	sel, err := store.Open(s.Store).Resolve(dirs)
	if err != nil {
		return nil, err
	}
	sel.Suite = suite
	return &Runs{Selection: sel, from: s}, nil
}

func (s *Source) announce(sel *store.Selection, err error) (*Runs, error) {
	if err != nil {
		return nil, err
	}
	sel.SetRunning(s.Recording)
	if s.Where != "" {
		if err := sel.Where(s.Where); err != nil {
			return nil, err
		}
	}
	r := &Runs{Selection: sel, from: s}
	notes, warnings := sel.Notes()
	for _, n := range notes {
		s.Say(n)
	}
	for _, w := range warnings {
		s.Warn(w)
	}
	if len(sel.Runs) > 1 { // a single run without tables is an error elsewhere
		r.WarnPending()
	}
	return r, nil
}

// WarnPending warns of runs that have no tables, and of runs that are still being recorded.
func (r *Runs) WarnPending() {
	if n := r.Pending().Note(); n != "" {
		r.from.Note(n)
	}
	if w := r.Pending().Warning(); w != "" {
		r.from.Warn(w)
	}
}

// Ingested returns an error if no run has tables.
func (r *Runs) Ingested() error { return r.Pending().Err() }

// A leaver removes the runs that a command ignores from a selection, and notes what it removed.
type leaver func(*Runs) *Runs

// leaveNone removes no runs.
func leaveNone(r *Runs) *Runs { return r }

// leaveTrials removes the trials of searches.
func leaveTrials(r *Runs) *Runs { return leaveTrialsBut(nil)(r) }

// leaveTrialsBut removes the trials of searches that are not in the baseline.
func leaveTrialsBut(baseline *schemas.Baseline) leaver {
	return func(r *Runs) *Runs {
		return r.without(analyze.WithoutTrials(r.Runs, manifest, r.IsNamed, baseline), report.TrialsNote)
	}
}

// leaveSuperseded removes failed runs that were rerun.
func leaveSuperseded(r *Runs) *Runs {
	return r.without(analyze.WithoutSuperseded(r.Runs, manifest, r.IsNamed, r.Manifests), report.SupersededNote)
}

// without returns a selection of only the kept runs. note describes how many runs were removed.
func (r *Runs) without(kept []store.Run, note func(runs int) string) *Runs {
	n := len(r.Runs) - len(kept)
	if n == 0 {
		return r
	}
	text := note(n)
	r.from.Note(text)
	return &Runs{r.Only(kept), r.from, append(slices.Clip(r.leftOut), text)}
}

func manifest(r store.Run) *schemas.Manifest { return r.Manifest }

// Read reads the tables of one run.
func Read(r store.Run, want schemas.Want) (schemas.Tables, error) {
	t, err := store.Load(r, want)
	if err != nil {
		return schemas.Tables{}, &store.TablesError{Dir: r.Dir, Err: err}
	}
	return withConfidence(t), nil
}

// ReadWithin does what [Read] does, for the blocks that live within a window.
func ReadWithin(r store.Run, want schemas.Want, w store.Window) (schemas.Tables, error) {
	t, err := store.LoadWithin(r, want, w)
	if err != nil {
		return schemas.Tables{}, &store.TablesError{Dir: r.Dir, Err: err}
	}
	return withConfidence(t), nil
}

// withConfidence adds a prediction's confidence with its doubts, which reports of older versions lack. Package selected
// passes all tables that it reads through withConfidence, so that no analysis has a level of confidence without its
// doubts.
func withConfidence(t *schemas.Tables) schemas.Tables {
	in := *t
	in.Confidence = report.ConfidenceOf(t)
	return in
}

// Prediction reads the predicted run in a folder.
func Prediction(dir string) (run predict.PredictionRun, err error) {
	in, err := prediction(dir)
	if err != nil {
		return run, err
	}
	return predict.Predict(in), nil
}

// Probe reads the search's run in a folder.
func Probe(dir string) (run report.Probe, err error) {
	in, err := prediction(dir)
	if err != nil {
		return run, err
	}
	return report.Probe{FitRun: predict.NewFitRun(in)}, nil
}

func prediction(dir string) (in schemas.Tables, err error) {
	r, err := store.OpenRun(dir)
	if err != nil {
		return in, err
	}
	return Read(r, predict.Tables)
}

// Each does what [store.Selection.Each] does, and warns of runs that cannot be read. Each returns the runs that could
// be read.
func (r *Runs) Each(want schemas.Want, tolerant bool, use func(schemas.Tables) error) (read *Runs, err error) {
	sel, damaged, err := r.Selection.Each(want, tolerant, func(t *schemas.Tables) error { return use(withConfidence(t)) })
	for _, d := range damaged {
		r.from.Warn(d.Error())
	}
	return &Runs{sel, r.from, r.leftOut}, err
}

// rows analyses each run. If there are several runs, it lists those without tables by their manifests.
func rows[T any](r *Runs, want schemas.Want, one func(schemas.Tables) (T, error)) ([]T, error) {
	var out []T
	_, err := r.Each(want, len(r.Runs) > 1, func(in schemas.Tables) error {
		row, err := one(in)
		out = append(out, row)
		return err
	})
	return out, err
}

// RowsOf analyses each run, and returns an error if a run has no tables.
func RowsOf[T any](r *Runs, want schemas.Want, one func(schemas.Tables) T) ([]T, error) {
	var out []T
	_, err := r.Each(want, false, func(in schemas.Tables) error {
		out = append(out, one(in))
		return nil
	})
	return out, err
}

// always adapts an analysis that cannot fail.
func always[T any](one func(schemas.Tables) T) func(schemas.Tables) (T, error) {
	return func(in schemas.Tables) (T, error) { return one(in), nil }
}

// Summaries selects runs, removes those that leave ignores, and reduces the rest to summaries. Summaries returns an
// error if no run has tables.
func (s *Source) Summaries(names []string, leave leaver) (*Runs, []analyze.Summary, error) {
	r, err := s.reduced(names, leave)
	if err != nil {
		return nil, nil, err
	}
	return r.summarize()
}

// Kept does what [Source.Summaries] does, for comparisons and checks of many runs. The summaries of Kept have only what
// [analyze.KeptReader] provides.
func (s *Source) Kept(names []string, leave leaver) (*Runs, []analyze.Summary, error) {
	r, err := s.reduced(names, leave)
	if err != nil {
		return nil, nil, err
	}
	return r.kept()
}

// reduced selects the runs that are then reduced to summaries.
func (s *Source) reduced(names []string, leave leaver) (*Runs, error) {
	r, err := s.Select(names)
	if err != nil {
		return nil, err
	}
	if err := r.Ingested(); err != nil {
		return r, err
	}
	if ended := slices.DeleteFunc(slices.Clone(r.Runs), func(run store.Run) bool {
		return run.Manifest.Status == schemas.StatusRunning && !run.Ingested()
	}); len(ended) < len(r.Runs) && len(ended) > 0 { // [Runs.WarnPending] already named the running runs
		r = &Runs{r.Only(ended), r.from, r.leftOut}
	}
	r = leaveSuperseded(leave(r))
	return r, r.Ingested()
}

// Summaries reduces the runs to summaries.
func (r *Runs) Summaries() ([]analyze.Summary, error) {
	_, sums, err := r.summarize()
	return sums, err
}

// summarize reduces the runs to summaries, and returns the runs that could be read.
func (r *Runs) summarize() (read *Runs, sums []analyze.Summary, err error) {
	read, err = r.Each(analyze.SummaryTables, true, func(in schemas.Tables) error {
		sums = append(sums, analyze.Summarize(in))
		return nil
	})
	return read, sums, err
}
