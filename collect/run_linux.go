package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dpsight/dpsight/collect/host"
	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

const (
	progressInterval = 500 * time.Millisecond
	// teeTime bounds the wait for the end of the output once no process of the run is left.
	teeTime = 2 * time.Second
)

// Run runs one experiment and records it. Whatever becomes of the experiment is in the result's manifest; an error is
// the collector's own: a [UsageError] if nothing was run, else what went wrong while recording, with the result as far
// as it got.
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
		return nil, &UsageError{"no command to run", "give one after --, as in: dpsight collect -- python train.py, " +
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
	err = r.record(ctx)
	return &Result{Manifest: r.manifest, Dir: r.dir, Interrupted: r.manifest.Interrupted,
		Garbage: r.garbage}, err
}

// A recording is a run in progress.
type recording struct {
	e        *Experiment
	machine  *Machine
	plan     *plan
	dir      string
	spool    string
	lock     *os.File
	secrets  *mask.Secrets
	manifest *schemas.Manifest
	started  time.Time // of the experiment
	cpu      cpuMeter
	steps    int64
	journals int // that the run has
	why      cause
	signals  int // received so far
	garbage  *schemas.Garbage
}

// begin makes the run's folder and its first manifest.
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
	start := time.Now().UTC()
	id := NewRunID(start, name)
	store, err := filepath.Abs(e.Store)
	if err != nil {
		return nil, err
	}
	r.dir = filepath.Join(store, id)
	r.spool = filepath.Join(r.dir, spool.Dir)
	if err = os.MkdirAll(store, 0o755); err == nil {
		err = os.Mkdir(r.dir, 0o755) // of this run alone: it is removed again below
	}
	if err != nil {
		return nil, StoreError(store, err)
	}
	if err = os.Mkdir(r.spool, 0o755); err == nil {
		r.lock, err = lockRun(r.dir)
	}
	if err != nil {
		os.RemoveAll(r.dir)
		return nil, StoreError(store, err)
	}
	r.manifest = &schemas.Manifest{
		RunID: id, Name: name, Source: schemas.Measured, Status: schemas.StatusPartial,
		Reason:  "the collector did not finish",
		Command: r.secrets.Command(p.argv), Params: r.secrets.Params(m.ParamsWithMachine(e)), Bare: e.Bare, Suite: e.Suite,
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

// record runs the experiment and finishes the run, whatever happens in between.
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

// isolate waits for the device to be free; false means that it was interrupted.
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

// run holds the experiment's whole life. Its errors are the recording's.
func (r *recording) run(ctx context.Context) error {
	scratch, err := os.MkdirTemp("", "dpsight-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	path, plugin, err := r.plan.unpack(scratch)
	if err != nil {
		return err
	}
	env := childEnv(r.plan.environ, r.e, r.manifest.RunID, r.spool, path, plugin, r.machine.Predicted)
	var strangers []string // ranks that joined no process group
	if r.plan.phantom != nil {
		library := *r.plan.phantom
		library.InductorDir = filepath.Join(scratch, "inductor") // every prediction compiles as a first run does
		library.Shared = filepath.Join(scratch, "devices")
		shared, err := phantom.NewShared(library.Shared, r.plan.world.pages())
		if err != nil {
			return err
		}
		defer shared.Close()
		defer func() { r.keepUses(shared, strangers) }()
		env = library.Env(env)
	}
	command, argv := r.plan.path, r.plan.argv
	if world := r.plan.world; world != nil {
		joined, err := os.MkdirTemp("", "dpsight-joined-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(joined)
		defer func() {
			strangers = world.strangers(joined)
			if len(strangers) > 0 && r.manifest.Status == schemas.StatusOK {
				r.warn("rank " + strings.Join(strangers, ", ") + " joined no process group: the script never called " +
					"torch.distributed.init_process_group, so what was recorded is a process on its own")
			}
		}()
		env = append(env, joinedVariable+"="+joined)
		command, argv, env = world.command(scratch, r.plan.interpreter.Path, command, argv, env)
	}
	spec := supervisorSpec{Path: command, Argv: argv, Env: env, Dir: r.plan.dir, Spool: r.spool, Cleanup: scratch}

	out, stdout, err := startTee(filepath.Join(r.dir, StdoutFile), r.e.Stdout, r.secrets)
	if err != nil {
		return err
	}
	errOut, stderr, err := startTee(filepath.Join(r.dir, StderrFile), r.e.Stderr, r.secrets)
	if err != nil {
		stdout.Close()
		return errors.Join(err, out.close(nil))
	}
	devices := r.machine.devices()
	before := computing(devices)
	setup := r.cpu.part() + r.machine.openingCPU()
	r.manifest.Collector.SetupCPUNS = &setup
	r.started = time.Now()
	c, err := startChild(spec, r.manifest.RunID, r.lock, r.stdin(), stdout, stderr)
	stdout.Close()
	stderr.Close()
	if err != nil {
		r.manifest.Status, r.manifest.Reason = schemas.StatusFailed, r.secrets.String(err.Error())
		limit := make(chan struct{})
		time.AfterFunc(teeTime, func() { close(limit) })
		out.close(limit)
		errOut.close(limit)
		return err
	}
	watch := newTorchWatch()
	tree := host.NewTree(c.supervisor.Process.Pid, watch.look)
	s := startSamplers(r.dir, r.manifest.RunID, devices, r.interval(), tree, newRunProcesses(c.supervisor.Process.Pid,
		before))

	r.follow(ctx, c, s)

	sampling := s.close()
	limit := make(chan struct{})
	timer := time.AfterFunc(teeTime, func() { close(limit) })
	logs := errors.Join(out.close(limit), errOut.close(limit))
	timer.Stop()
	r.steps = max(r.steps, newStepCounter(r.spool).read())
	r.manifest.Collector.CPUNS = r.cpu.part() + c.exit.CPUNS
	if s.gpu != nil {
		r.manifest.Collector.Samples, r.manifest.Collector.MissedTicks = s.gpu.samples, s.gpu.missed
	}
	return errors.Join(sampling, logs, MergeSegments(r.dir), r.conclude(c, watch, errOut.last.String()))
}

// keepUses puts into the manifest what the processes held of each device together. Strangers are the ranks of a played
// world that joined no process group.
func (r *recording) keepUses(shared *phantom.Shared, strangers []string) {
	uses, err := shared.Uses()
	if err != nil {
		r.warn("what processes held of a device together is not known: " + err.Error())
		return
	}
	r.manifest.Phantom.Devices = deviceUses(uses)
	if world := r.plan.world; world != nil {
		if warning := world.astray(uses, strangers); warning != "" {
			r.warn(warning)
		}
	}
}

// stdin is what the experiment reads.
func (r *recording) stdin() *os.File {
	if r.e.Stdin == nil || isTerminal(r.e.Stdin) {
		return nil
	}
	return r.e.Stdin
}
