package suite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// Options says how to run a suite.
type Options struct {
	// Template has what all experiments share: Store, Machine, Python, Signals, where output goes. Its command, name and
	// parameters are not used; its Timeout holds where the suite has none.
	Template collect.Experiment
	// Begin is told of each experiment before it runs. May be nil.
	Begin func(index, of int, x Experiment)
	// End is told of each run. May be nil.
	End func(*collect.Result)
}

// A Failure is an experiment that could not be recorded. What became of one that was is in its manifest.
type Failure struct {
	Experiment Experiment
	Err        error
}

// Outcome is what a suite's run left.
type Outcome struct {
	Suite    *store.Suite
	Results  []*collect.Result
	Failures []Failure
	// Interrupted is set when the suite was stopped before its end.
	Interrupted bool
}

// OK reports whether every experiment was run and ended well.
func (o *Outcome) OK() bool {
	ok := len(o.Failures) == 0 && !o.Interrupted
	for _, r := range o.Results {
		ok = ok && r.Manifest.Status == schemas.StatusOK
	}
	return ok
}

// Plan is the suite's document before any run.
func (s *Suite) Plan(id string, created time.Time) *store.Suite {
	doc := &store.Suite{ID: id, Name: s.Name, Created: created.UTC(), Baseline: s.Baseline}
	index := map[string]bool{}
	for _, x := range s.Experiments {
		if index[x.Key] {
			continue // a repetition is a further run of the same experiment
		}
		index[x.Key] = true
		params := maps.Clone(x.Params)
		if x.Bare {
			params["bare"] = true
		}
		doc.Experiments = append(doc.Experiments, store.Experiment{Key: x.Key, Name: x.Name, Params: params, RunIDs: []string{}})
	}
	return doc
}

// Run makes all runs of the suite. One failure stops nothing; an interruption stops everything. The suite's document is
// written before the first run and after each. The error is the suite's own, or, if not one experiment could be run, the
// first one's.
func (s *Suite) Run(ctx context.Context, o Options) (*Outcome, error) {
	created := time.Now()
	out := &Outcome{Suite: s.Plan(collect.NewRunID(created, s.Name), created)}
	runs := store.Open(o.Template.Store)
	_, absent := os.Stat(runs.Dir())
	if err := runs.WriteSuite(out.Suite); err != nil {
		return out, &collect.UsageError{Problem: fmt.Sprintf("the store %s cannot be written: %v", o.Template.Store, err), Hint: "name another folder with --store"}
	}
	for i, x := range s.Experiments {
		if o.Begin != nil {
			o.Begin(i, len(s.Experiments), x)
		}
		e := o.Template
		e.Command, e.Name, e.Params, e.Bare = nil, x.Name, x.Params, x.Bare
		if s.Timeout > 0 {
			e.Timeout = s.Timeout
		}
		e.Suite = &schemas.SuiteRef{ID: out.Suite.ID, Name: s.Name, Key: x.Key, Repetition: x.Repetition}
		r, err := collect.Run(ctx, e)
		if err != nil {
			out.Failures = append(out.Failures, Failure{x, err})
		}
		if r != nil {
			out.Results = append(out.Results, r)
			out.add(x.Key, r.Manifest.RunID)
			if err := runs.WriteSuite(out.Suite); err != nil {
				return out, err
			}
			if o.End != nil {
				o.End(r)
			}
		}
		if r != nil && r.Interrupted || ctx.Err() != nil {
			out.Interrupted = i+1 < len(s.Experiments)
			break
		}
		var usage *collect.UsageError
		if r == nil && errors.As(err, &usage) && len(out.Results) == 0 {
			// No Python, no torch, no compiler: the next one would say the same. A plan without a run is of no use to anyone.
			file := runs.SuiteFile(out.Suite.ID)
			err = errors.Join(err, os.Remove(file))
			if absent != nil { // what was not there before goes again; a folder that is not empty stays
				_ = os.Remove(filepath.Dir(file))
				_ = os.Remove(runs.Dir())
			}
			return out, err
		}
	}
	return out, nil
}

func (o *Outcome) add(key, runID string) {
	for i := range o.Suite.Experiments {
		if x := &o.Suite.Experiments[i]; x.Key == key {
			x.RunIDs = append(x.RunIDs, runID)
		}
	}
}
