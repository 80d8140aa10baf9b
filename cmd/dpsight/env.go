package main

import (
	"context"

	"github.com/dpsight/dpsight/collect"
)

type envCmd struct {
	Device string `predictor:"device" help:"${device}" default:"phantom" placeholder:"DEVICE"`
	GPUs   int    `name:"gpus" help:"Number of phantom GPUs." default:"1" placeholder:"N"`
	Python string `help:"Interpreter whose torch the phantom GPU is for (default: as for collect)." placeholder:"PATH"`
}

func (envCmd) Help() string { return help("env") }

func (c *envCmd) Run(s *streams) error {
	machine, err := collect.OpenMachineWith(c.Device, 0)
	if err != nil {
		return err
	}
	defer machine.Close()
	vars, err := collect.PhantomEnv(context.Background(), machine, c.Python, c.GPUs)
	if err != nil {
		return err
	}
	return collect.WriteExports(s.out, vars)
}
