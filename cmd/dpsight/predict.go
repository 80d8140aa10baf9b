package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/cmd/grammar"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

type predictCmd struct {
	storeFlag
	formatFlag
	recordFlags
	Device    []string             `predictor:"profile" help:"${predict_device}" default:"h200" placeholder:"PROFILE"`
	GPUMemory collect.DeviceMemory `name:"gpu-memory" help:"${predict_gpu_memory}" placeholder:"SIZE"`
	Margin    *units.Percentage    `help:"${margin}" placeholder:"PERCENT"`
	Quiet     bool                 `help:"Write the output of experiments only to their logs."`
	Seeds     int                  `help:"${seeds}" default:"1" placeholder:"N"`
	Steps     string               `help:"${predict_steps}" default:"auto" placeholder:"N"`
	GPUs      int                  `name:"gpus" help:"${gpus}" placeholder:"N"`
	worldFlags
	fitFlags `group:"Search"`
	grammar.ModelFlags
	commandArg
}

func (predictCmd) Help() string { return help("predict") }

// check refuses combinations of options that mean nothing, before anything runs.
func (c *predictCmd) check(given map[string]string) error {
	builtin, command := len(given) > 0, len(c.Command) > 0
	err := refuse(
		misuse{!builtin && !command, "nothing to predict",
			"give a command, or a --method; dpsight predict --help has examples"},
		misuse{builtin && command, "a built-in experiment and a command exclude each other", optionsOfCommand},
		misuse{len(c.Param) > 0 && !command, paramOfBuiltin, optionsOfBuiltin},
		misuse{c.Seeds < 1 || c.Seeds > 100, fmt.Sprintf("--seeds must be from 1 to 100, not %d", c.Seeds),
			"--seeds 5 makes five runs, each with segments in other places"})
	return cmp.Or(err, collect.CheckSteps(c.Steps), collect.CheckGPUs(c.GPUs, c.WorldSize),
		c.fitFlags.check(c), c.recordFlags.check())
}

func (c *predictCmd) Run(s *streams) error {
	given := c.Values()
	if err := c.check(given); err != nil {
		return err
	}
	console := newConsole(s.err)
	signals, stop := collect.Interrupts()
	defer stop()
	e := c.recordFlags.experiment(c.Store, console, s.err, signals)
	var err error
	if e.World, err = c.world(); err != nil {
		return err
	}
	memory := cmp.Or(c.Fit, c.GPUMemory)
	memory.Tell(console)
	machines, err := collect.OpenPhantoms(c.Device, collect.PhantomOptions{MemoryBytes: memory.Bytes})
	if err != nil {
		return err
	}
	if c.Quiet || c.Vary != "" { // a search runs one script dozens of times
		e.Stdout, e.Stderr = io.Discard, io.Discard
	} else {
		console.FakeValues()
	}
	e.Command, e.Params, e.Steps, e.GPUs = c.Command, c.paramsOfCommand(), c.Steps, c.GPUs
	if c.Vary != "" {
		return c.search(s, console, e, given, machines)
	}
	if len(given) > 0 {
		if e.Params, err = resolved(console, given); err != nil {
			return err
		}
	}
	return c.predict(s, console, e, machines)
}

// predict predicts the experiment on each device and prints the results.
func (c *predictCmd) predict(s *streams, console *collect.Console, e collect.Experiment,
	machines []*collect.Machine) error {
	tell := func(m *collect.Machine, err error) {
		if err == nil {
			console.Println("dpsight: " + m.Note)
		} else {
			console.Println("dpsight: warning: " + units.OneLine(err.Error()))
		}
	}
	made, err := collect.RunOn(context.Background(), e, machines, c.placements(console), tell)
	if err != nil {
		return err
	}
	var runs []predict.PredictionRun
	for _, dir := range made.Dirs {
		run, err := selected.Prediction(dir)
		if err != nil {
			return err
		}
		if c.Margin != nil {
			run = run.WithMargin(float64(*c.Margin))
		}
		runs = append(runs, run)
	}
	tables, err := s.source(c.Store).PredictionTables(runs, made.Dirs, c.Format, c.Verbose)
	if err != nil {
		return err
	}
	if err := table.Write(s.out, c.Format, tables...); err != nil {
		return err
	}
	if err := cmp.Or(made.Err(), report.PredictionFailure(runs, made.Dirs)); err != nil {
		return failure{err}
	}
	return nil
}

// placements returns how the run is repeated under --seeds address policies, and what is printed meanwhile.
func (c *predictCmd) placements(console *collect.Console) collect.Placements {
	return collect.Placements{
		Runs: c.Seeds, Deciding: deciding(console),
		Begin: func(i, of int, policy string) {
			console.Plan(i, of)
			console.Println(fmt.Sprintf("dpsight: placement %d of %d: %s", i+1, of, policy))
		},
		End: func(r *collect.Result) (schemas.Placement, error) {
			tables, err := makeTables(console, r)
			if err != nil {
				return schemas.Placement{}, err
			}
			return ingest.Placement(r.Manifest, tables), nil
		},
		Collections: collect.Collections{
			Begin: func(when string, g schemas.Garbage) {
				console.Println("dpsight: " + report.CollectionProgress(when, g))
			},
			End: func(r *collect.Result) (schemas.Collection, error) {
				tables, err := makeTables(console, r)
				if err != nil {
					return schemas.Collection{}, err
				}
				return ingest.Collection(r.Manifest, tables), nil
			},
		},
	}
}

// deciding returns a callback for a run that is repeated with another answer to a read. The callback prints why.
func deciding(console *collect.Console) collect.Deciding {
	return func(failed *collect.Result, d schemas.Decision) error {
		console.Println("dpsight: " + units.OneLine(report.DecisionProgress(d)))
		_, err := makeTables(console, failed)
		return err
	}
}
