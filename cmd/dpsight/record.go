package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/dpsight/dpsight/collect"
)

// recordFlags are the options for what is kept of an experiment. collect and predict share them.
type recordFlags struct {
	Name        string            `help:"Name of the run (default: the method, or the script)." placeholder:"NAME"`
	Param       map[string]string `help:"${param}" placeholder:"K=V" mapsep:"none"`
	Timeout     time.Duration     `help:"End each experiment after this long (90s, 10m)." placeholder:"DURATION"`
	RecordSteps int               `help:"${record_steps}" default:"100" placeholder:"N"`
	WindowSteps int               `help:"${window_steps}" default:"10" placeholder:"N"`
	Stacks      string            `help:"${stacks}" enum:"none,python" default:"none" placeholder:"WHICH"`
	StackSteps  int               `help:"${stack_steps}" default:"3" placeholder:"N"`
	Lines       string            `help:"${lines}" enum:"script,none" default:"script" placeholder:"WHICH"`
	Python      string            `help:"${python}" placeholder:"PATH"`
	Verbose     bool              `short:"v" help:"Print all tables."`
}

// check refuses values that mean nothing.
func (f *recordFlags) check() error {
	e := collect.Experiment{Timeout: f.Timeout, RecordSteps: &f.RecordSteps, WindowSteps: &f.WindowSteps,
		StackSteps: &f.StackSteps}
	value, nameless := f.Param[""]
	return cmp.Or(e.Check(), refuse(
		misuse{nameless, fmt.Sprintf("--param =%s has no name", value), "as in --param rank=8"}))
}

// experiment returns an experiment with everything that the flags determine.
func (f *recordFlags) experiment(dir string, console *collect.Console, stderr io.Writer,
	signals <-chan os.Signal) collect.Experiment {
	return collect.Experiment{
		Store: dir, Name: f.Name, Timeout: f.Timeout, RecordSteps: &f.RecordSteps, WindowSteps: &f.WindowSteps,
		Stacks: f.Stacks == "python", StackSteps: &f.StackSteps, NoLines: f.Lines == "none", Python: f.Python,
		Version: version, Stdin: os.Stdin, Stdout: console.Writer(stderr), Stderr: console.Writer(stderr),
		Progress: console.Update, Signals: signals,
	}
}

// paramsOfCommand returns the parameters that --param gives to a user's command.
func (f *recordFlags) paramsOfCommand() map[string]any {
	params := map[string]any{}
	for k, v := range f.Param {
		params[k] = v
	}
	return params
}

// newConsole returns a console on standard error. In a test stderr is no file, and the console is on the process's.
func newConsole(stderr io.Writer) *collect.Console {
	file, ok := stderr.(*os.File)
	if !ok {
		file = os.Stderr
	}
	return collect.NewConsole(file)
}

// worldFlags choose the ranks of a torchrun script that predict runs on the phantom GPU.
type worldFlags struct {
	WorldSize   *int   `help:"${world_size}" placeholder:"N"`
	Ranks       string `help:"Which ranks to run, with --world-size." default:"0" placeholder:"R,…"`
	GPUsPerNode int    `name:"gpus-per-node" help:"${gpus_per_node}" default:"8" placeholder:"N"`
}

// world returns the world that the flags describe, or nil without --world-size.
func (f *worldFlags) world() (*collect.World, error) {
	return collect.WorldOf(f.WorldSize, f.Ranks, f.GPUsPerNode)
}

// Errors about which options belong to which kind of experiment.
const (
	optionsOfCommand = "the options of a command go behind it"
	paramOfBuiltin   = "--param belongs to a command"
	optionsOfBuiltin = "a built-in experiment has options of its own: --preset, --batch-size, …"
)

// commandArg is the user's command, with or without a -- before it.
type commandArg struct {
	Command []string `arg:"" optional:"" passthrough:"partial" help:"${command}"`
}

// AfterApply takes the command from the original arguments, since the parser replaces invalid UTF-8, without --.
func (c *commandArg) AfterApply(ctx *kong.Context) error {
	c.Command = ctx.Args[len(ctx.Args)-len(c.Command):]
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	return nil
}
