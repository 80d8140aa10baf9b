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

// Options say how a suite is run.
type Options struct {
	// Template has what all experiments share: Store, Machine, Python, Signals, and the output. Run ignores Template's
	// command, name and parameters. Template's Timeout applies if the suite has no timeout.
	Template collect.Experiment
	// Resume is the result of [Suite.Resume]. nil means that a new suite begins.
	Resume *Resumption
	// Jobs is the number of experiments that run at the same time, each on its own GPU. 0 means 1.
	Jobs int
	// Output sets the writers of an experiment's output, if several experiments run at the same time. Output may be
	// nil.
	Output func(Task, *collect.Experiment)
	// Begin is called before the i-th run of the suite, and End after it. Calls are serialised, and come between the
	// runs of one job, so End can disturb only the runs of other jobs. Begin and End may be nil.
	Begin func(i, of int, t Task)
	// End makes the tables of each run. For a continued suite End also makes the missing tables of earlier runs. An
	// error that End returns stops nothing.
	End func(*collect.Result) error
	// Deciding is called when a prediction is repeated with another answer to a read of an unknown value. Calls of
	// Deciding are serialised like calls of Begin and End.
	Deciding collect.Deciding

	split func(n int) ([]*collect.Machine, error) // nil means Template.Machine.Split
}

// running is a suite that is being run.
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

// Run makes all runs of the suite that are still to be made. A failed run does not stop the other runs. An interruption
// stops all runs. Run writes the suite's document before the first run and after each run. Run returns an error of the
// suite itself or, if no experiment could be run, the first experiment's error.
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
		// The document of a suite without runs is useless.
		r.fatal = errors.Join(r.fatal, os.Remove(r.store.SuiteFile(r.out.Suite.ID)))
	}
	return r.out, r.fatal
}

// fanOut passes signals on to several receivers. Closing done ends that.
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
					default: // nobody has taken the eight runs before
					}
				}
			}
		}
	}()
	return out, done
}

// take returns the next run to make. With several jobs, each takes the first run, in the order of repetitions, that no
// other job has taken.
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

// work makes runs on one machine until no run is left.
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

// failed makes the tables of a failed run that is repeated with another answer to a read. An error in that stops
// nothing.
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

// enter adds a run to the suite's document.
func (r *running) enter(result *collect.Result) {
	r.ledger.enter(store.Run{ID: result.Manifest.RunID, Dir: result.Dir, Manifest: result.Manifest})
	if err := r.store.WriteSuite(r.out.Suite); err != nil && r.fatal == nil {
		r.fatal, r.stopped = err, true
	}
}

// finished records how a run ended.
func (r *running) finished(ctx context.Context, t Task, result *collect.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.out.Failures = append(r.out.Failures, fmt.Errorf("dpsight could not record %s: %w", t.Name, err))
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
		// Without Python, torch or a compiler, the next experiment would fail too.
		r.fatal, r.stopped = err, true
	}
}
