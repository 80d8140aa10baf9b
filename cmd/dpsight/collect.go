package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/cmd/grammar"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/live"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

type collectCmd struct {
	storeFlag
	recordFlags
	Device         string               `predictor:"device" help:"${device}" default:"auto" placeholder:"DEVICE"`
	GPUMemory      collect.DeviceMemory `name:"gpu-memory" help:"${collect_gpu_memory}" placeholder:"SIZE"`
	Bare           bool                 `help:"Record counters and timers only, without allocator events."`
	SampleInterval time.Duration        `help:"Time between two samples of NVML." default:"10ms" placeholder:"DURATION"`
	Quiet          bool                 `help:"${collect_quiet}"`
	View           bool                 `help:"${collect_view}"`
	worldFlags
	suiteFlags `group:"Suite"`
	grammar.ModelFlags
	commandArg
}

func (collectCmd) Help() string { return help("collect") }

func (c *collectCmd) Run(s *streams) error {
	given := c.Values()
	if err := c.check(given); err != nil {
		return err
	}
	console := newConsole(s.err)
	signals, stop := collect.Interrupts()
	defer stop()
	e := c.recordFlags.experiment(c.Store, console, s.err, signals)
	e.Bare, e.SampleInterval = c.Bare, c.SampleInterval
	if c.Quiet {
		e.Stdout, e.Stderr = io.Discard, io.Discard
	}
	if c.Suite == "" {
		e.Terminal = console.Terminal()
	}
	var plan *suite.Suite
	var err error
	if e.World, err = c.world(); err != nil {
		return err
	}
	switch {
	case c.Suite != "":
		plan, err = c.load()
	case len(given) > 0:
		e.Params, err = resolved(console, given)
	default:
		e.Command, e.Params = c.Command, c.paramsOfCommand()
	}
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.dryRun(s, console, plan)
	}
	c.GPUMemory.Tell(console)
	if e.Machine, err = collect.OpenMachineWith(c.Device, c.GPUMemory.Bytes); err != nil {
		return err
	}
	defer e.Machine.Close()
	console.Println("dpsight: " + e.Machine.Note)
	if e.Machine.Predicted && !c.Quiet {
		console.FakeValues()
	}
	defer collect.FewThreads(c.Jobs)()
	if c.View {
		v := live.NewView(s.source(c.Store), nil, collect.Running)
		stop, err := live.Beside(v, live.Options{Say: func(text string) { console.Println("dpsight: " + text) }})
		if err != nil {
			return err
		}
		defer stop()
	}
	if plan != nil {
		return c.runSuite(s, console, plan, e)
	}
	return c.runOne(s, console, e)
}

// runOne records one experiment and prints it.
func (c *collectCmd) runOne(s *streams, console *collect.Console, e collect.Experiment) error {
	r, recording := collect.RunDeciding(context.Background(), &e, deciding(console))
	if r == nil {
		return recording
	}
	if recording != nil {
		console.Println("dpsight: warning: " + units.OneLine(recording.Error()))
	}
	rep, err := makeTables(console, r)
	if err != nil {
		return err
	}
	if err := c.show(s, r, recording == nil && confidence.TookNothing(r.Manifest, rep)); err != nil {
		return err
	}
	hint := "see the run's output in " + r.Dir
	switch {
	case recording != nil:
		return failure{withHint(errors.New("the recording failed"), hint)}
	case r.Manifest.Status != schemas.StatusOK:
		return failure{withHint(errors.New("the experiment did not end well: its status is "+r.Manifest.Status), hint)}
	}
	return nil
}

// check refuses options that would have no effect.
func (c *collectCmd) check(given map[string]string) error {
	const eachSays = "a suite's file sets it for each experiment: name, bare"
	suite, builtin, command := c.Suite != "", len(given) > 0, len(c.Command) > 0
	err := refuse(
		misuse{!suite && !builtin && !command, "nothing to run",
			"give a command, a --method, or a --suite; dpsight collect --help has examples"},
		misuse{suite && builtin || suite && command || builtin && command,
			"a suite, a built-in experiment and a command exclude each other", optionsOfCommand},
		misuse{len(c.Param) > 0 && !command, paramOfBuiltin, optionsOfBuiltin},
		misuse{suite && c.Bare, "--bare does not apply to a suite", eachSays},
		misuse{suite && c.WorldSize != nil, "--world-size does not apply to a suite", "give the script as a command"},
		misuse{suite && c.Name != "", "--name does not apply to a suite", eachSays},
		misuse{c.Bare && c.Stacks != "none", "--stacks has no effect on a bare run",
			"stacks are of allocator events, which it does not record"},
		misuse{c.SampleInterval < time.Millisecond,
			fmt.Sprintf("--sample-interval must be 1ms or more, not %s", c.SampleInterval), "it is 10ms where it is left out"})
	return cmp.Or(err, c.recordFlags.check(), c.suiteFlags.check())
}

// makeTables ingests a recorded run, also a failed one, so that everything recorded is kept.
func makeTables(console *collect.Console, r *collect.Result) (*schemas.IngestReport, error) {
	defer ingest.Frugal()()
	console.Doing("making the tables of "+r.Manifest.Name, 0, 0)
	defer console.Done()
	rep, err := ingest.Run(r.Dir, ingest.Options{Version: version})
	if err != nil {
		return nil, failure{withHint(fmt.Errorf("the run is recorded in %s, but could not be ingested: %w", r.Dir, err),
			"once that is fixed, dpsight ingest "+r.Dir+" makes its tables")}
	}
	if err := judge(r.Dir); err != nil {
		return nil, err
	}
	for _, w := range append(r.Manifest.Warnings, rep.Warnings...) {
		console.Println("dpsight: warning: " + w)
	}
	return rep, nil
}

// show prints the tables of the recorded run, or that the script used no GPU.
func (c *collectCmd) show(s *streams, r *collect.Result, unused bool) error {
	one, err := s.source(c.Store).Folder(r.Dir)
	if err != nil {
		return err
	}
	ending, err := one.Ending()
	if err != nil {
		return err
	}
	tables, warnings := report.RecordedTables(ending, r.Manifest, c.Verbose)
	if unused {
		note, hint := report.UnusedGPU(len(r.Manifest.Collector.Uninjected))
		s.note(note)
		s.say("hint: " + hint)
		warnings = nil
	}
	for _, w := range warnings {
		s.warn(w)
	}
	return table.Write(s.out, "table", tables...)
}
