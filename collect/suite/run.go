package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// Options says how to run a suite.
type Options struct {
	// Template has what all experiments share: Store, Machine, Python, Signals, and the output. Run does not use the
	// template's command, name and parameters. The template's Timeout applies if the suite has none.
	Template collect.Experiment
	// Resume is the result of [Suite.Resume]; nil begins a new suite.
	Resume *Resumption
	// Jobs is how many experiments run at the same time, each on its own GPU; 0 is 1.
	Jobs int
	// Output gives the writers of an experiment's output where several run at the same time. May be nil.
	Output func(Task, *collect.Experiment)
	// Begin is called before the i-th of the suite's runs, End after it. Calls come one at a time and between the runs
	// of one job, so End can disturb only runs of other jobs. Begin and End may be nil.
	Begin func(i, of int, t Task)
	// End makes the tables of each run. For a continued suite it also makes the missing tables of earlier runs. An
	// error of End stops nothing.
	End func(*collect.Result) error
	// Deciding is called when a prediction is repeated with another answer to a read of an unknown value. Calls of
	// Deciding are serialised as those of Begin and End.
	Deciding collect.Deciding

	split func(n int) ([]*collect.Machine, error) // nil: Template.Machine.Split
}

// running is a suite's run in progress.
type running struct {
	suite   *Suite
	options Options
	store   *store.Store
	tasks   []Task

	mu      sync.Mutex
	next    int
	stopped bool
	fatal   error
	ledger  *ledger
	out     *Outcome
}

// Run makes all runs of the suite that are not made yet. A failed run does not stop the suite's other runs; an
// interruption stops all. The suite's document is written before the first run and after each. The error is the suite's
// own, or, if not one experiment could be run, the first one's.
func (s *Suite) Run(ctx context.Context, o Options) (*Outcome, error) {
	r := &running{suite: s, options: o, store: store.Open(o.Template.Store), out: &Outcome{Planned: len(s.Tasks())}}
	plan := o.Resume
	if plan == nil {
		plan = s.begin(r.store)
	}
	defer plan.Close()
	r.tasks, r.ledger = plan.Todo, plan.ledger
	r.recover(plan.Runs)
	r.out.Suite = r.ledger.suite
	defer func() { r.out.Runs = r.ledger.runs(s) }()
	if len(r.tasks) == 0 {
		return r.out, r.store.WriteSuite(r.out.Suite)
	}
	split := o.split
	if split == nil {
		split = o.Template.Machine.Split
	}
	machines, err := split(max(1, o.Jobs))
	if err != nil {
		return r.out, err
	}
	if err := plan.announce(r.store); err != nil {
		return r.out, collect.StoreError(o.Template.Store, err)
	}
	var workers sync.WaitGroup
	signals, done := fanOut(o.Template.Signals, len(machines))
	for i, m := range machines {
		workers.Go(func() { r.work(ctx, m, signals[i]) })
	}
	workers.Wait()
	close(done)
	var usage *collect.UsageError
	if errors.As(r.fatal, &usage) && plan.Begins {
		// A document of a suite without runs is useless.
		r.fatal = errors.Join(r.fatal, os.Remove(r.store.SuiteFile(r.out.Suite.ID)))
	}
	return r.out, r.fatal
}

// fanOut passes signals on to several receivers. Close done to end it.
func fanOut(in <-chan os.Signal, n int) (out []chan os.Signal, done chan struct{}) {
	done = make(chan struct{})
	for range n {
		out = append(out, make(chan os.Signal, 8))
	}
	go func() {
		for {
			select {
			case <-done:
				return
			case s, ok := <-in:
				if !ok {
					in = nil
					continue
				}
				for _, c := range out {
					select {
					case c <- s:
					default: // nobody has taken the eight before
					}
				}
			}
		}
	}()
	return out, done
}

// take returns the next run to make. With several jobs, a job takes the first run in the order of the repetitions
// that no other has taken.
func (r *running) take(ctx context.Context) (Task, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || r.next == len(r.tasks) {
		return Task{}, false
	}
	if ctx.Err() != nil {
		r.out.Interrupted, r.stopped = true, true
		return Task{}, false
	}
	t := r.tasks[r.next]
	if r.options.Begin != nil {
		r.options.Begin(r.next, len(r.tasks), t)
	}
	r.next++
	return t, true
}

// work makes runs on one machine until none is left to do.
func (r *running) work(ctx context.Context, m *collect.Machine, signals <-chan os.Signal) {
	for first := true; ; first = false {
		t, ok := r.take(ctx)
		if !ok {
			return
		}
		e := r.options.Template
		e.Command, e.Name, e.Params, e.Bare = t.Command, t.Name, t.Params, t.Bare || !r.suite.records(t)
		e.Machine, e.Signals = m, signals
		if len(r.suite.Environment) > 0 {
			e.Environ = collect.Overlay(e.Environ, r.suite.Environment)
		}
		if r.suite.RecordSteps != nil {
			e.RecordSteps = r.suite.RecordSteps
		}
		if r.suite.Timeout > 0 {
			e.Timeout = r.suite.Timeout
		}
		if !first {
			e.Cooldown = r.suite.Cooldown
		}
		e.Suite = &schemas.SuiteRef{ID: r.out.Suite.ID, Name: r.suite.Name, Key: t.Key, Repetition: t.Repetition}
		if r.options.Output != nil {
			r.options.Output(t, &e)
		}
		result, err := collect.RunDeciding(ctx, &e, r.failed)
		r.finished(ctx, t, result, err)
	}
}

// failed writes down a run that is made again with another answer for a read. An error of its tables stops nothing.
func (r *running) failed(result *collect.Result, d schemas.Decision) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(result)
	if r.options.Deciding != nil {
		if err := r.options.Deciding(result, d); err != nil {
			r.out.Failures = append(r.out.Failures, err)
		}
	}
	return nil
}

// enter puts a run into the suite's document.
func (r *running) enter(result *collect.Result) {
	r.ledger.enter(store.Run{ID: result.Manifest.RunID, Dir: result.Dir, Manifest: result.Manifest})
	if err := r.store.WriteSuite(r.out.Suite); err != nil && r.fatal == nil {
		r.fatal, r.stopped = err, true
	}
}

// finished writes down what became of a run.
func (r *running) finished(ctx context.Context, t Task, result *collect.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.out.Failures = append(r.out.Failures, fmt.Errorf("%s could not be recorded: %w", t.Name, err))
	}
	if result != nil {
		r.out.Results = append(r.out.Results, result)
		r.enter(result)
		if err := r.end(result); err != nil {
			r.out.Failures = append(r.out.Failures, err)
		}
	}
	if result != nil && result.Interrupted || ctx.Err() != nil {
		r.out.Interrupted, r.stopped = r.next < len(r.tasks), true
	}
	var usage *collect.UsageError
	if result == nil && errors.As(err, &usage) && len(r.out.Results) == 0 && r.fatal == nil {
		// No Python, no torch, no compiler: the next experiment would fail for the same reason.
		r.fatal, r.stopped = err, true
	}
}
