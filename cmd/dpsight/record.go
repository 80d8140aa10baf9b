package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dpsight/dpsight/collect"
)

// recordFlags say what to keep of an experiment and how, the same where it is measured and where it is predicted.
type recordFlags struct {
	Name        string            `help:"Name of the run (default: the method, or the script)." placeholder:"NAME"`
	Param       map[string]string `help:"Parameter to keep with the run of a command, K=V; may be repeated." placeholder:"K=V" mapsep:"none"`
	Timeout     time.Duration     `help:"End each experiment after this long (90s, 10m)." placeholder:"DURATION"`
	RecordSteps int               `help:"How many steps to record the allocator's events of, from the first; of later ones counters and times are kept, but for windows." default:"100" placeholder:"N"`
	WindowSteps int               `help:"How many steps to record again at steps 200, 400, 800 … of a long run, from twice --record-steps on where that is more; 0 = none." default:"10" placeholder:"N"`
	Stacks      string            `help:"Record the Python stack of each allocation in set-up and in steps 0 to --stack-steps less one, warm-up among them, none or python: what lives later was born there, or has no stack." enum:"none,python" default:"none" placeholder:"WHICH"`
	StackSteps  int               `help:"How many steps have stacks, from the first; up to --record-steps to see those of a peak that comes late, at 55 µs an event." default:"3" placeholder:"N"`
	Python      string            `help:"Interpreter of built-in experiments (default: $$DPSIGHT_PYTHON, the active virtual environment, that of make setup, python3)." placeholder:"PATH"`
}

// check refuses values that mean nothing.
func (f *recordFlags) check() error {
	switch {
	case f.Timeout < 0:
		return withHint{fmt.Errorf("--timeout must be positive, not %s", f.Timeout), "without --timeout an " +
			"experiment may take as long as it likes"}
	case f.RecordSteps < 1:
		return withHint{fmt.Errorf("--record-steps must be 1 or more, not %d", f.RecordSteps),
			"--bare records no events at all"}
	case f.WindowSteps < 0:
		return withHint{fmt.Errorf("--window-steps must be 0 or more, not %d", f.WindowSteps),
			"0 records the first steps only"}
	case f.StackSteps < 1:
		return withHint{fmt.Errorf("--stack-steps must be 1 or more, not %d", f.StackSteps),
			"without --stacks there are none at all"}
	}
	if value, ok := f.Param[""]; ok {
		return withHint{fmt.Errorf("--param =%s has no name", value), "as in --param rank=8"}
	}
	return nil
}

// experiment is what all runs of these flags share.
func (f *recordFlags) experiment(dir string, console *collect.Console, stderr io.Writer,
	signals <-chan os.Signal) collect.Experiment {
	return collect.Experiment{
		Store: dir, Name: f.Name, Timeout: f.Timeout, RecordSteps: &f.RecordSteps, WindowSteps: &f.WindowSteps,
		Stacks: f.Stacks == "python", StackSteps: &f.StackSteps, Python: f.Python,
		Version: version, Stdin: os.Stdin, Stdout: console.Writer(stderr), Stderr: console.Writer(stderr),
		Progress: console.Update, Signals: signals,
	}
}

// paramsOfCommand are the parameters that are kept with a command of the user's.
func (f *recordFlags) paramsOfCommand() map[string]any {
	params := map[string]any{}
	for k, v := range f.Param {
		params[k] = v
	}
	return params
}

// newConsole is a console on standard error, which a test may have replaced.
func newConsole(stderr io.Writer) *collect.Console {
	file, ok := stderr.(*os.File)
	if !ok {
		file = os.Stderr
	}
	return collect.NewConsole(file)
}

// asked refuses none, or several, of the ways to say what to run.
func asked(ways ...bool) error {
	forms := 0
	for _, used := range ways {
		if used {
			forms++
		}
	}
	switch {
	case forms == 0:
		return withHint{errors.New("nothing to run"), "give a command after --, a --method, or a --suite; dpsight " +
			"collect --help has examples"}
	case forms > 1:
		return withHint{errors.New("a suite, a built-in experiment and a command exclude each other"),
			"the options of a command go after --"}
	}
	return nil
}
