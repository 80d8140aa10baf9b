package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dpsight/dpsight/collect/host"
	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
	"github.com/dpsight/dpsight/schemas/units"
)

const progressInterval = 500 * time.Millisecond

// Run runs one experiment and records it. The result's manifest says how the experiment ended. An error is the
// collector's own: a [UsageError] if nothing was run, or else what went wrong in recording, together with an incomplete
// result.
func Run(ctx context.Context, e Experiment) (*Result, error) {
	cpu := newCPUMeter()
	m := e.Machine
	if m == nil {
		var err error
		if m, err = OpenMachine(e.Device); err != nil {
			return nil, err
		}
		defer m.Close()
		if e.Stderr != nil {
			fmt.Fprintln(e.Stderr, m.Note)
		}
	}
	if len(e.Command) == 0 && e.Params == nil {
		return nil, &UsageError{"no command to run", "give one, as in: dpsight collect python train.py, " +
			"or a --method"}
	}
	p, err := m.prepare(ctx, &e)
	if err != nil {
		return nil, err
	}
	r, err := begin(m, &e, p)
	if err != nil {
		return nil, err
	}
	r.cpu = cpu
	defer r.lock.Close()
	defer r.release()
	defer r.last()
	err = r.record(ctx)
	return &Result{Manifest: r.manifest, Dir: r.dir, Interrupted: r.manifest.Interrupted,
		Garbage: r.garbage, Suspects: r.suspects}, err
}

// A recording is a run in progress.
type recording struct {
	e         *Experiment
	machine   *Machine
	plan      *plan
	dir       string
	spool     string
	lock      *os.File
	release   func() // frees the space kept for the run's end
	last      func() // frees the space kept for the run's manifest
	secrets   *mask.Secrets
	manifest  *schemas.Manifest
	started   time.Time // when the experiment started
	cpu       cpuMeter
	steps     int64
	journals  int // number of the run's journals
	why       cause
	signals   int // number of signals received so far
	garbage   *schemas.Garbage
	suspects  []string     // reads of unknown values that may have led to its exception
	strangers []string     // ranks of a simulated world that joined no process group
	held      func() int64 // the most that the processes reserved on phantom GPUs so far; nil on a GPU
}

// begin creates the run's folder and writes its first manifest.
func begin(m *Machine, e *Experiment, p *plan) (*recording, error) {
	r := &recording{e: e, machine: m, plan: p, steps: -1, secrets: mask.Gather(p.argv, p.environ, e.Params)}
	name := e.Name
	if name == "" {
		if method, ok := e.Params["method"].(string); ok && p.builtin {
			name = method
		} else {
			name = nameOf(p.argv)
		}
	}
	name = r.secrets.Label(name)
	start := time.Now().UTC()
	id := NewRunID(start, name)
	store, err := filepath.Abs(e.Store)
	if err != nil {
		return nil, err
	}
	r.dir = filepath.Join(store, id)
	r.spool = filepath.Join(r.dir, spool.Dir)
	if err = os.MkdirAll(store, 0o755); err == nil {
		err = os.Mkdir(r.dir, 0o700) // fails if the folder exists, since it is removed again on errors
	}
	if err != nil {
		return nil, StoreError(store, err)
	}
	if err = os.Mkdir(r.spool, 0o700); err == nil {
		r.lock, err = lockRun(r.dir)
	}
	if err == nil {
		if r.release, r.last, err = reserve(r.dir); err != nil {
			r.lock.Close()
		}
	}
	if err != nil {
		os.RemoveAll(r.dir)
		return nil, StoreError(store, err)
	}
	r.manifest = &schemas.Manifest{
		RunID: id, Name: units.Text(name), Source: schemas.Measured, Status: schemas.StatusPartial,
		Reason:  "the collector did not finish",
		Command: r.secrets.Command(units.Texts(p.argv)), Params: r.secrets.Params(m.ParamsWithMachine(e)),
		Bare: e.Bare, Suite: e.Suite,
		Start: start, Host: host.Facts(), GPUs: m.gpus(), Driver: m.driver(), Interpreter: p.interpreter,
		Collector: schemas.Collector{Version: e.Version, Built: new(Built()), SampleIntervalNS: int64(r.interval()),
			NVML:       m.library != nil,
			NVMLReason: m.nvmlReason, Uninjected: []string{}},
		Warnings: []string{},
	}
	if m.Predicted {
		r.manifest.Source, r.manifest.Profile = schemas.Predicted, &m.profile.ID
		r.manifest.Phantom = m.phantomFacts(e)
	}
	if e.Bare {
		r.manifest.Params["bare"] = true
	}
	if err := schemas.WriteManifest(r.dir, r.manifest); err != nil {
		r.release()
		r.last()
		r.lock.Close()
		os.RemoveAll(r.dir)
		return nil, StoreError(store, err)
	}
	return r, nil
}

func (r *recording) interval() time.Duration {
	if r.e.SampleInterval > 0 {
		return r.e.SampleInterval
	}
	return DefaultSampleInterval
}

// record runs the experiment, and finishes the run even after errors.
func (r *recording) record(ctx context.Context) error {
	r.manifest.Git = gitRevision(ctx, r.plan.sources()...)
	if !r.isolate(ctx) {
		r.why.cancelled = ctx.Err() != nil
		r.manifest.Status, r.manifest.Reason = schemas.StatusKilled, "interrupted before it began"
		return r.finish(nil)
	}
	errs := r.run(ctx)
	return r.finish(errors.Join(errs, r.unseen()))
}

// isolate waits until the device is free, and returns false if the wait was interrupted.
func (r *recording) isolate(ctx context.Context) bool {
	stop, done := make(chan struct{}), make(chan *schemas.Isolation, 1)
	go func() {
		iso := r.machine.waitIdle(ctx, isolationLimit, stop)
		r.machine.cool(ctx, r.e.Cooldown, iso, stop)
		done <- iso
	}()
	begin := time.Now()
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	signals := r.e.Signals
	for {
		select {
		case r.manifest.Isolation = <-done:
			if iso := r.manifest.Isolation; !iso.Verified && r.machine.library != nil {
				r.warn("isolation: " + iso.Reason)
			}
			return ctx.Err() == nil && r.why.signal == nil
		case s, ok := <-signals:
			if !ok {
				signals = nil
				continue
			}
			if r.why.signal == nil {
				r.why.signal = s
				close(stop)
			}
		case <-ticker.C:
			r.progress(Progress{Waiting: true, Elapsed: time.Since(begin), Steps: -1})
		}
	}
}

func (r *recording) warn(text string) {
	r.manifest.Warnings = append(r.manifest.Warnings, r.secrets.String(text))
}

func (r *recording) progress(p Progress) {
	if r.e.Progress != nil {
		p.RunID, p.Name, p.Predicted = r.manifest.RunID, r.manifest.Name, r.machine.Predicted
		r.e.Progress(p)
	}
}

// run runs the experiment from its start to its end. run's errors concern recording, not the experiment.
func (r *recording) run(ctx context.Context) error {
	scratch, remove, err := newScratch()
	if err != nil {
		return err
	}
	defer remove()
	path, plugin, err := r.plan.unpack(scratch)
	if err != nil {
		return err
	}
	spec := supervisorSpec{Path: r.plan.path, Argv: r.plan.argv, Dir: r.plan.dir, Spool: r.spool, Cleanup: scratch,
		Env: childEnv(r.plan.environ, r.e, r.manifest.RunID, r.spool, path, plugin, r.machine.Predicted)}
	if r.plan.phantom != nil {
		leave, err := r.onPhantom(&spec, scratch)
		if err != nil {
			return err
		}
		defer leave()
	}
	if r.plan.world != nil {
		leave, err := r.inWorld(&spec, scratch)
		if err != nil {
			return err
		}
		defer leave()
	}

	var terminal *session
	var typed *os.File
	stdin := r.stdin()
	if r.e.Terminal != nil {
		if terminal, err = newSession(r.e.Terminal, r.e.Stdin); err != nil {
			return fmt.Errorf("opening a terminal for the experiment: %w", err)
		}
		defer terminal.close()
		spec.Terminal = true
		if terminal.input != nil {
			typed, stdin = terminal.input, terminal.stdout.theirs
		}
	}
	out, err := r.startOutput(terminal)
	if err != nil {
		return err
	}
	devices := r.machine.devices()
	before := computing(devices)
	setup := r.cpu.part() + r.machine.openingCPU()
	r.manifest.Collector.SetupCPUNS = &setup
	r.started = time.Now()
	c, err := startChild(spec, r.manifest.RunID, r.lock, typed, stdin, out.stdout.theirs, out.stderr.theirs)
	out.handOver()
	if err != nil {
		r.manifest.Status, r.manifest.Reason = schemas.StatusFailed, r.secrets.String(err.Error())
		out.close()
		return err
	}
	watch := newTorchWatch()
	tree := host.NewTree(c.supervisor.Process.Pid, watch.look)
	s := startSamplers(r.dir, r.manifest.RunID, devices, r.interval(), tree, newRunProcesses(c.supervisor.Process.Pid,
		before))

	if terminal != nil {
		terminal.begin()
	}
	r.follow(ctx, c, s, terminal)

	sampling := s.close()
	logs := out.close()
	r.steps = max(r.steps, newStepCounter(r.spool).read())
	r.release()
	r.manifest.Collector.CPUNS = r.cpu.part() + c.exit.CPUNS
	if s.gpu != nil {
		r.manifest.Collector.Samples, r.manifest.Collector.MissedTicks = s.gpu.samples, s.gpu.missed
	}
	return errors.Join(sampling, logs, MergeSegments(r.dir), r.conclude(c, watch, out.lastError()))
}

// stdin returns the file that the experiment reads, if it is no terminal.
func (r *recording) stdin() *os.File {
	if r.e.Stdin == nil || isTerminal(r.e.Stdin) {
		return nil
	}
	return r.e.Stdin
}
