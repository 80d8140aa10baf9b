package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/dpsight/dpsight/cmd/grammar"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/screen"
)

// The exit codes. Users' scripts depend on them.
const (
	exitDone   = 0
	exitFailed = 1 // an experiment or a check failed
	exitUsage  = 2 // bad usage or bad input
)

// cli is the command line. Each subcommand has a field here, and most have a file of their own.
type cli struct {
	Collect collectCmd `cmd:"" aliases:"run" help:"Run an experiment and record it."`
	Predict predictCmd `cmd:"" help:"Predict an experiment's memory without a GPU: does it fit, what takes it?"`
	Ingest  ingestCmd  `cmd:"" help:"Make the tables of snapshots, killed runs and recorded runs."`
	Runs    runsCmd    `cmd:"" help:"List the runs of a store."`
	Analyze analyzeCmd `cmd:"" help:"Print one analysis of one or more runs."`
	Report  reportCmd  `cmd:"" help:"Write the page, tables and figures of runs into a folder."`
	Paper   paperCmd   `cmd:"" help:"Write tables and figures for a paper, which LaTeX compiles."`
	Compare compareCmd `cmd:"" help:"Compare runs by parameter, or two runs side by side."`
	Check   checkCmd   `cmd:"" help:"Compare runs with a baseline; exit 1 if memory or time grew."`
	Export  exportCmd  `cmd:"" help:"Write runs in another tool's format."`
	View    viewCmd    `cmd:"" help:"Serve the page of runs, also while they are recorded."`
	Watch   watchCmd   `cmd:"" help:"Show runs that are being recorded in a terminal."`
	Demo    demoCmd    `cmd:"" help:"Show what differential privacy costs, on a model of 1 B parameters, without a GPU."`
	Doctor  doctorCmd  `cmd:"" help:"Check what this machine can record, and what is missing."`
	Env     envCmd     `cmd:"" help:"Print the environment of a phantom GPU, for processes that dpsight does not start."`
	Version versionCmd `cmd:"" help:"Print the version."`

	Completion grammar.Completion `cmd:"" help:"Print a script with which a shell completes commands, options and runs."`
	Man        grammar.Man        `cmd:"" help:"Print the manual page."`

	ShowVersion versionFlag `name:"version" help:"Print the version."`
	Wide        bool        `help:"Print tables with all columns, even if the terminal is narrower."`

	analyses // dpsight breakdown means dpsight analyze breakdown
}

// streams are a command's outputs: results go to out, everything else goes to err.
type streams struct {
	out, err   io.Writer
	storeNamed bool // the user gave --store
}

// storeFlag is the option --store, the same in all commands.
type storeFlag struct {
	Store string `help:"${store}" env:"DPSIGHT_STORE" default:"runs" placeholder:"DIR"`
}

// Validate refuses an empty path, which an unset shell variable gives: dpsight would write runs into the current
// folder.
func (f *storeFlag) Validate() error {
	if f.Store == "" {
		return errors.New("--store, or $DPSIGHT_STORE, is empty")
	}
	return nil
}

// run is the whole program except the process around it, so that tests can call it without starting a process.
func run(args []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		if p := recover(); p != nil {
			complain(stderr, fmt.Errorf("internal error: %v", p), "this is a bug in dpsight: please report it with "+
				"what stands below")
			stderr.Write(debug.Stack())
			code = exitUsage
		}
	}()
	var c cli
	exited := false
	parser, err := newParser(&c, stdout, stderr, func(n int) { exited, code = true, n })
	if err != nil {
		complain(stderr, err, "")
		return exitUsage
	}
	if grammar.Complete(parser) {
		return exitDone
	}
	ctx, err := grammar.Parse(parser, args)
	if exited { // --help has ended the program
		return code
	}
	if err != nil {
		complain(stderr, grammar.Mistake(err, args), "")
		return exitUsage
	}
	ctx.BindTo(context.Background(), (*context.Context)(nil))
	s := &streams{screen.On(stdout, c.Wide), stderr, grammar.Gives(ctx, "store")}
	if behind := grammar.Behind(ctx); behind != "" {
		s.note(behind)
	}
	if err = ctx.Run(s); err == nil {
		return exitDone
	}
	complain(stderr, err, "")
	var failed failure
	if errors.As(err, &failed) {
		return exitFailed
	}
	return exitUsage
}

// newParser returns the parser of the command line.
func newParser(c *cli, stdout, stderr io.Writer, exit func(int)) (*kong.Kong, error) {
	c.Collect.Plugins = kong.Plugins{c.Collect.Options()}
	c.Predict.Plugins = kong.Plugins{c.Predict.Options()}
	parser, err := kong.New(c,
		kong.Name("dpsight"),
		kong.Description("Where the GPU memory and time of differentially private training go, to the byte."),
		kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 80}),
		kong.ValueFormatter(grammar.HelpWithDefault),
		kong.Vars{"formats": strings.Join(table.Names(), ","), "exports": strings.Join(selected.Exports, ",")},
		grammar.OptionTexts(help("options")),
		kong.Exit(exit),
	)
	if err == nil {
		grammar.HideShortForms(parser.Model.Node)
	}
	return parser, err
}
