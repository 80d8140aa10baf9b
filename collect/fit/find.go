package fit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// An Answer says whether a run's value fits.
type Answer interface {
	// Verdict says whether the value fits. fits is nil, and why has the reason, if the run ended for a reason other
	// than memory.
	Verdict() (fits *bool, why string)
	// Leaves reports whether the value fits and leaves that many bytes free.
	Leaves(bytes int64) bool
}

// A Search is the search that predict --vary makes. The caller makes and reads the runs, since that needs packages that
// collect may not import.
type Search[A Answer] struct {
	Range Range
	// Template has what all runs share. A command has its placeholder, and the parameters that are kept with it.
	Template collect.Experiment
	Given    map[string]string // options of a built-in experiment; nil for a command
	Machines []*collect.Machine
	// Margin returns how many bytes a value should leave free on a machine. If it is nil, the search is only for the
	// largest value that fits.
	Margin func(*collect.Machine) int64
	Fresh  bool     // makes runs again that the store has
	Ours   []string // files and folders that dpsight writes outside the store (see [Changed])

	// Plan is called before a run with its number, from 0, and the likely number of runs. It may be nil.
	Plan func(i, runs int)
	// Slow is called after the first run of a command that takes [SlowRun] or longer though --steps could end it
	// earlier. It may be nil.
	Slow func(took time.Duration)
	Run  func(collect.Experiment) (A, error)
	Load func(store.Run) (A, error)
	// Basis returns what a prediction depends on. If it is nil, the cell's machine tells.
	Basis func(context.Context, *collect.Experiment) (collect.Basis, error)

	id string // id of this search: its runs are no repeats of another search's runs
}

// SlowRun is the shortest time of a run for which a search suggests to end runs after a few steps.
const SlowRun = 20 * time.Second

// A Found is one value with its answer.
type Found[A Answer] struct {
	Value  int64
	Kept   bool // the run was in the store
	Answer A
}

// ErrInterrupted ends a search. Predictions made so far are kept.
var ErrInterrupted = errors.New("it was interrupted")

// ErrInterruptedAfter means that the interruption came after the present run had ended, so that the run's answer
// counts.
var ErrInterruptedAfter = fmt.Errorf("%w", ErrInterrupted)

// Find searches one cell: first for the largest value that fits, then, using the results, for the largest that leaves
// the cell's margin. Find calls found once for each value with an answer. Find's error says why the search ended early.
func (s *Search[A]) Find(ctx context.Context, cell *Cell, found func(Found[A])) error {
	tried := map[int64]A{}
	fits := func(value int64) (bool, error) {
		answer, ok := tried[value]
		if !ok {
			f, err := s.probe(ctx, cell, value)
			if err != nil && !errors.Is(err, ErrInterruptedAfter) {
				return false, err
			}
			answer, tried[value] = f.Answer, f.Answer
			if found(f); err != nil {
				return false, err
			}
		}
		fits, why := answer.Verdict()
		if fits == nil {
			return false, &UnansweredError{fmt.Sprintf("%s %d ended for another reason than memory: %s", s.Range.Name,
				value, why)}
		}
		return *fits, nil
	}
	if err := cell.Values.Search(fits); err != nil || cell.Margin == 0 {
		return err
	}
	return cell.Values.Search(func(value int64) (bool, error) {
		ok, err := fits(value)
		return ok && tried[value].Leaves(cell.Margin), err
	})
}

// probe returns a value's run from the store, or makes it.
func (s *Search[A]) probe(ctx context.Context, cell *Cell, value int64) (Found[A], error) {
	f := Found[A]{Value: value}
	e, err := s.experiment(cell, value)
	if err != nil {
		return f, err
	}
	key, err := s.key(ctx, &e)
	if err != nil {
		return f, err
	}
	if !s.Fresh {
		run, err := made(store.Open(e.Store), key, func() Change { return s.changed(&e) })
		if err != nil {
			return f, err
		}
		if run != nil {
			f.Kept = true
			f.Answer, err = s.Load(*run)
			return f, err
		}
	}
	name := "fit-" + collect.SafeName(s.Range.Name)
	if s.id == "" {
		s.id = collect.NewRunID(time.Now(), name)
	}
	e.Suite = &schemas.SuiteRef{ID: s.id, Name: name, Key: key, Search: true}
	began := time.Now()
	f.Answer, err = s.Run(e)
	if took := time.Since(began); err == nil && took >= SlowRun && s.Slow != nil && e.Command != nil && e.Steps == "" {
		s.Slow(took)
		s.Slow = nil
	}
	return f, err
}

func (s *Search[A]) changed(e *collect.Experiment) Change {
	dir, err := filepath.Abs(e.Dir)
	if err != nil {
		return Change{Unknown: true}
	}
	// The paths in Ours are relative to this process's folder, which may not be the experiment's.
	var ours []string
	for _, path := range append([]string{e.Store}, s.Ours...) {
		if path, err = filepath.Abs(path); err == nil {
			ours = append(ours, path)
		}
	}
	return Changed(dir, e.Command, ours...)
}

// key returns the key of the experiment's content.
func (s *Search[A]) key(ctx context.Context, e *collect.Experiment) (string, error) {
	basis := s.Basis
	if basis == nil {
		basis = e.Machine.Basis
	}
	p := Probe{Params: e.Machine.ParamsWithMachine(e), Command: e.Command, Profile: e.Machine.Profile(),
		Version: e.Version}
	var err error
	if p.Basis, err = basis(ctx, e); err != nil {
		return "", err
	}
	if len(e.Command) > 0 {
		if p.Folder, err = filepath.Abs(e.Dir); err != nil {
			return "", err
		}
	}
	return p.Key()
}
