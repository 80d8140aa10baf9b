package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/report"
)

type demoCmd struct {
	storeFlag
	Python string `help:"Interpreter that has torch and Opacus (default: as for collect)." placeholder:"PATH"`
	Out    string `short:"o" help:"Folder of the report (default: STORE/demo-report)." placeholder:"DIR"`
	Device string `predictor:"device" help:"${device}" default:"auto" placeholder:"DEVICE"`
}

func (demoCmd) Help() string { return help("demo") }

func (c *demoCmd) Run(s *streams) error {
	if c.Out == "" {
		c.Out = filepath.Join(c.Store, "demo-report")
	}
	console := newConsole(s.err)
	signals, stop := collect.Interrupts()
	defer stop()
	if err := collect.CheckPrivate(context.Background(), c.Python); err != nil {
		return err
	}
	machine, err := collect.OpenMachineWith(c.Device, 0)
	if err != nil {
		return err
	}
	defer machine.Close()
	e := collect.Experiment{Store: c.Store, Python: c.Python, Version: version, Machine: machine, Stdout: io.Discard,
		Stderr: io.Discard, Progress: console.Update, Signals: signals}
	if !machine.Predicted {
		plan, err := suite.Load("quick")
		if err != nil {
			return err
		}
		fmt.Fprintln(s.err, report.DemoOnGPU(machine.Note))
		real := collectCmd{storeFlag: c.storeFlag, Quiet: true, suiteFlags: suiteFlags{Jobs: 1, Report: c.Out}}
		return real.runSuite(s, console, plan, e)
	}
	defer collect.FewThreads(1)()
	return c.predict(s, console, e)
}

// predict predicts the demo's runs on the phantom GPU and prints their tables.
func (c *demoCmd) predict(s *streams, console *collect.Console, e collect.Experiment) error {
	plan, err := suite.Demo()
	if err != nil {
		return err
	}
	console.Brief()
	fmt.Fprintln(s.err, report.DemoOpening(e.Machine.GPUName(), plan.Tasks()[0].Params))
	out, err := plan.Run(context.Background(), suite.Options{Template: e,
		Begin: func(i, of int, t suite.Task) {
			console.Plan(i, of)
			console.Println(report.DemoRun(i, of, fmt.Sprint(t.Params["method"])))
		},
		End: func(r *collect.Result) error {
			_, err := makeTables(console, r)
			return err
		}})
	if err != nil {
		return err
	}
	if err := out.Err(); err != nil {
		return failure{err}
	}
	m, err := s.suiteModel(c.Store, out)
	if err != nil {
		return err
	}
	if _, err := report.Write(c.Out, m); err != nil {
		return err
	}
	return report.WriteDemo(s.out, m.Study, c.Store, c.Out)
}
