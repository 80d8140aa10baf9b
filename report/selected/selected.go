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

// A Source is a store to select runs from, with callbacks for notes about what a result does not show.
type Source struct {
	Store string
	// Named is true if the command names the store. A command without runs then means all of its runs, else the
	// newest suite or run.
	Named bool
	// Where is a condition on the runs. Runs for which the condition is not true are left out. "" takes all.
	Where string
	// Recording says how far a run is that a collector is still at work at, nil for any other folder.
	Recording func(dir string) *store.Progress
	// Say reports what was selected, Note what was left out, Warn what could not be read or has no tables.
	Say, Note, Warn func(text string)
	// Doing is called with the progress of long work, the last time with done equal to of. Doing may be nil.
	Doing func(text string, done, of int)
}

// Runs are the selected runs of a source.
type Runs struct {
	*store.Selection
	from    *Source
	leftOut []string // what was removed from the selection
}

// Only is the source with a condition on its runs.
func (s *Source) Only(where string) *Source {
	only := *s
	only.Where = where
	return &only
}

// Select resolves RUN arguments.
func (s *Source) Select(names []string) (*Runs, error) {
	if (s.Named || s.Where != "") && len(names) == 0 {
		return s.SelectEach(nil)
	}
	return s.announce(store.OpenIndexed(s.Store).Resolve(names))
}

// SelectEach is Select, but a name stands for all runs that have it, and no name for the whole store.
func (s *Source) SelectEach(names []string) (*Runs, error) {
	return s.announce(store.OpenIndexed(s.Store).ResolveEach(names))
}

// Folder selects one run by its folder, and prints nothing about the run.
func (s *Source) Folder(dir string) (*Runs, error) {
	sel, err := store.Open(s.Store).Resolve([]string{dir})
	return &Runs{Selection: sel, from: s}, err
}

// SuiteRuns selects the runs of a suite by their folders, and prints nothing about the runs.
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
	if len(sel.Runs) > 1 { // a single run without tables is refused by name
		r.WarnPending()
	}
	return r, nil
}

// WarnPending says which runs have no tables, and which are still running.
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

// A leaver returns the runs without those that a command does not look at, and notes what it left out.
type leaver func(*Runs) *Runs

// leaveNone takes nothing out.
func leaveNone(r *Runs) *Runs { return r }

// leaveTrials takes out what searches tried.
func leaveTrials(r *Runs) *Runs { return leaveTrialsBut(nil)(r) }

// leaveTrialsBut takes out what searches tried and the baseline has not.
func leaveTrialsBut(baseline *schemas.Baseline) leaver {
	return func(r *Runs) *Runs {
		return r.without(analyze.WithoutTrials(r.Runs, manifest, r.IsNamed, baseline), report.TrialsNote)
	}
}

// leaveSuperseded takes out the runs that did not end well and that were made again.
func leaveSuperseded(r *Runs) *Runs {
	return r.without(analyze.WithoutSuperseded(r.Runs, manifest, r.IsNamed, r.Manifests), report.SupersededNote)
}

// without returns the runs that are kept; note says how many runs are not.
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

// ReadWithin is [Read], of the blocks that live in a window.
func ReadWithin(r store.Run, want schemas.Want, w store.Window) (schemas.Tables, error) {
	t, err := store.LoadWithin(r, want, w)
	if err != nil {
		return schemas.Tables{}, &store.TablesError{Dir: r.Dir, Err: err}
	}
	return withConfidence(t), nil
}

// withConfidence adds how sure a prediction is, and why, which the reports of older versions do not say. All tables
// that this package reads go through withConfidence: an analysis never has a level without its reasons.
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

// Probe reads the run of a search in a folder.
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

// Each is [store.Selection.Each] that warns about runs that cannot be read. Each returns the runs that could be read.
func (r *Runs) Each(want schemas.Want, tolerant bool, use func(schemas.Tables) error) (read *Runs, err error) {
	sel, damaged, err := r.Selection.Each(want, tolerant, func(t *schemas.Tables) error { return use(withConfidence(t)) })
	for _, d := range damaged {
		r.from.Warn(d.Error())
	}
	return &Runs{sel, r.from, r.leftOut}, err
}

// rows analyses each run. If there are several runs, those without tables are listed by their manifests.
func rows[T any](r *Runs, want schemas.Want, one func(schemas.Tables) (T, error)) ([]T, error) {
	var out []T
	_, err := r.Each(want, len(r.Runs) > 1, func(in schemas.Tables) error {
		row, err := one(in)
		out = append(out, row)
		return err
	})
	return out, err
}

// RowsOf analyses each run, and refuses those without tables.
func RowsOf[T any](r *Runs, want schemas.Want, one func(schemas.Tables) T) ([]T, error) {
	var out []T
	_, err := r.Each(want, false, func(in schemas.Tables) error {
		out = append(out, one(in))
		return nil
	})
	return out, err
}

// always is an analysis that every run has.
func always[T any](one func(schemas.Tables) T) func(schemas.Tables) (T, error) {
	return func(in schemas.Tables) (T, error) { return one(in), nil }
}

// Summaries selects runs without those that leave removes, and reduces them. Summaries returns an error if no run has
// tables.
func (s *Source) Summaries(names []string, leave leaver) (*Runs, []analyze.Summary, error) {
	r, err := s.reduced(names, leave)
	if err != nil {
		return nil, nil, err
	}
	return r.summarize()
}

// Kept is [Source.Summaries] for comparisons and checks of many runs, which look at what [analyze.KeptReader] gives.
func (s *Source) Kept(names []string, leave leaver) (*Runs, []analyze.Summary, error) {
	r, err := s.reduced(names, leave)
	if err != nil {
		return nil, nil, err
	}
	return r.kept()
}

// reduced selects runs that are to be reduced.
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
	}); len(ended) < len(r.Runs) && len(ended) > 0 { // [Runs.WarnPending] already said which runs are still running
		r = &Runs{r.Only(ended), r.from, r.leftOut}
	}
	r = leaveSuperseded(leave(r))
	return r, r.Ingested()
}

// Summaries reduces the runs.
func (r *Runs) Summaries() ([]analyze.Summary, error) {
	_, sums, err := r.summarize()
	return sums, err
}

// summarize reduces the runs, and gives those that could be read.
func (r *Runs) summarize() (read *Runs, sums []analyze.Summary, err error) {
	read, err = r.Each(analyze.SummaryTables, true, func(in schemas.Tables) error {
		sums = append(sums, analyze.Summarize(in))
		return nil
	})
	return read, sums, err
}
