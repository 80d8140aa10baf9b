package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

type collectCmd struct {
	storeFlag
	Name           string            `help:"Name of the run (default: the method, or the script)." placeholder:"NAME"`
	Param          map[string]string `help:"Parameter to keep with the run of a command, K=V; may be repeated." placeholder:"K=V" mapsep:"none"`
	Device         string            `help:"Where to run: auto, cuda, phantom or phantom:PROFILE." default:"auto" placeholder:"DEVICE"`
	Bare           bool              `help:"Counters and timers only: no allocator events."`
	Timeout        time.Duration     `help:"End each experiment after this long (90s, 10m)." placeholder:"DURATION"`
	RecordSteps    int               `help:"How many steps to record the allocator's events of, from the first; of the others counters and times are kept." default:"100" placeholder:"N"`
	SampleInterval time.Duration     `help:"How often NVML is asked." default:"10ms" placeholder:"DURATION"`
	Python         string            `help:"Interpreter of built-in experiments (default: $$DPSIGHT_PYTHON, the active virtual environment, that of make setup, python3)." placeholder:"PATH"`
	suiteFlags

	kong.Plugins          // the model and training flags: see options
	Command      []string `arg:"" optional:"" help:"Command to record, after --."`

	given reflect.Value
}

func (collectCmd) Help() string {
	return `Runs an experiment in a process of its own and records what the CUDA caching allocator did, what the training loop was doing, and what
NVML saw. Any PyTorch training script works unchanged. Without a GPU it runs on the phantom GPU, which predicts memory and has no times.

A suite that was interrupted or killed goes on with --resume: an experiment is known by its content, so the file may be reordered and
extended. What ended by itself is done, well or not; what was cut short is made again; --retry-failed makes again what failed, too.

Progress counts steps from 1; in tables, and for --at, the first step is 0, and -1 is what came before it.

Examples:
  dpsight collect -- python train.py --epochs 1
  dpsight collect --name lora --param rank=8 -- torchrun --nproc-per-node 1 train.py
  dpsight collect --method ghost --preset small --batch-size 8
  dpsight collect --suite quick --device phantom
  dpsight collect --suite headline --store runs
  dpsight collect --suite headline-batch --only method=vanilla --only method=ghost --dry-run
  dpsight collect --suite trainers --resume --retry-failed
  dpsight collect --suite headline-batch --jobs 2

Built-in suites: ` + strings.Join(suite.Names(), ", ") + `.

Presets, what --preset stands for (docs/presets.md has the memory that they need):
` + presets()
}

func (c *collectCmd) Run(s *streams) error {
	given := c.experiment()
	forms := 0
	for _, used := range []bool{c.Suite != "", len(given) > 0, len(c.Command) > 0} {
		if used {
			forms++
		}
	}
	switch {
	case forms == 0:
		return withHint{errors.New("nothing to run"), "give a command after --, a --method, or a --suite; dpsight collect --help has examples"}
	case forms > 1:
		return withHint{errors.New("a suite, a built-in experiment and a command exclude each other"), "the options of a command go after --"}
	case len(c.Param) > 0 && len(c.Command) == 0:
		return withHint{errors.New("--param belongs to a command"), "a built-in experiment has options of its own: --preset, --batch-size, …"}
	}
	if err := c.check(); err != nil {
		return err
	}
	if value, ok := c.Param[""]; ok {
		return withHint{fmt.Errorf("--param =%s has no name", value), "as in --param rank=8"}
	}
	errFile, _ := s.err.(*os.File)
	if errFile == nil {
		errFile = os.Stderr
	}
	console := collect.NewConsole(errFile)
	signals, stop := collect.Interrupts()
	defer stop()
	e := collect.Experiment{
		Store: c.Store, Name: c.Name, Bare: c.Bare, Timeout: c.Timeout, SampleInterval: c.SampleInterval, RecordSteps: &c.RecordSteps, Python: c.Python,
		Version: version, Stdin: os.Stdin, Stdout: console.Writer(s.err), Stderr: console.Writer(s.err), Progress: console.Update, Signals: signals,
	}
	var plan *suite.Suite
	var err error
	switch {
	case c.Suite != "":
		plan, err = c.load()
	case len(given) > 0:
		e.Params, err = experiments.Resolve(given)
		for _, name := range experiments.Ignored(given, e.Params) {
			if err == nil {
				console.Println(fmt.Sprintf("dpsight: note: %s has no effect on this experiment", name))
			}
		}
	default:
		e.Command, e.Params = c.Command, map[string]any{}
		for k, v := range c.Param {
			e.Params[k] = v
		}
	}
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.dryRun(s, console, plan)
	}
	machine, err := collect.OpenMachine(c.Device)
	if err != nil {
		return err
	}
	defer machine.Close()
	e.Machine = machine
	console.Println("dpsight: " + machine.Note)
	// The collector wakes a hundred times a second to do a few microseconds' work; on a machine of many cores each wake stirs
	// idle schedulers on the others, which costs more than the work.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	if plan != nil {
		return c.runSuite(s, console, plan, e)
	}
	r, err := collect.Run(context.Background(), e)
	if r == nil {
		return err
	}
	recording := err
	if recording != nil {
		console.Println("dpsight: warning: " + oneLine(recording.Error()))
	}
	if err := digest(console, r); err != nil {
		return err
	}
	if err := c.show(s, r); err != nil {
		return err
	}
	hint := "its output is kept in " + r.Dir
	switch {
	case recording != nil:
		return failure{withHint{errors.New("the run was not recorded as it should have been"), hint}}
	case r.Manifest.Status != schemas.StatusOK:
		return failure{withHint{errors.New("the experiment did not end well: its status is " + r.Manifest.Status), hint}}
	}
	return nil
}

// check refuses options that would have no effect: who gave one would believe that it had.
func (c *collectCmd) check() error {
	ofSuite := withHint{hint: "a suite's file says it for each experiment: name, bare"}
	switch {
	case c.Suite != "" && c.Bare:
		ofSuite.error = errors.New("--bare does not apply to a suite")
		return ofSuite
	case c.Suite != "" && c.Name != "":
		ofSuite.error = errors.New("--name does not apply to a suite")
		return ofSuite
	case c.Timeout < 0:
		return fmt.Errorf("--timeout must be positive, not %s", c.Timeout)
	case c.RecordSteps < 1:
		return withHint{fmt.Errorf("--record-steps must be 1 or more, not %d", c.RecordSteps), "--bare records no events at all"}
	case c.SampleInterval < time.Millisecond:
		return fmt.Errorf("--sample-interval must be 1ms or more, not %s", c.SampleInterval)
	}
	return c.suiteFlags.check()
}

// digest turns a recorded run into tables, whatever its status: what was recorded is kept.
func digest(console *collect.Console, r *collect.Result) error {
	rep, err := ingest.Run(r.Dir, ingest.Options{Version: version})
	if err != nil {
		return fmt.Errorf("the run is recorded in %s, but could not be ingested: %w", r.Dir, err)
	}
	for _, w := range append(r.Manifest.Warnings, rep.Warnings...) {
		console.Println("dpsight: warning: " + w)
	}
	return nil
}

// show prints what was recorded: the run, and its peak by category.
func (c *collectCmd) show(s *streams, r *collect.Result) error {
	sel, err := store.Open(c.Store).Resolve([]string{r.Dir})
	if err != nil {
		return err
	}
	study, err := studyOf(s, c.Store, sel, []string{r.Dir}, "")
	if err != nil {
		return err
	}
	tables := []table.Table{report.RunsTable(analyze.Runs(study.Runs))}
	if b := study.Runs[0].Breakdown; len(b.Devices) > 0 {
		tables = append(tables, report.BreakdownTables(analyze.NewBreakdownDocument(b))...)
	} else if len(r.Manifest.Warnings) == 0 && !r.Manifest.Bare { // a script that trains on the CPU, say
		for _, w := range study.Runs[0].Warnings {
			fmt.Fprintln(s.err, "dpsight: warning: "+w)
		}
	}
	return table.Write(s.out, "table", tables...)
}
