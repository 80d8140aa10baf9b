package main

import (
	"errors"

	"github.com/dpsight/dpsight/collect"
)

// worldFlags say which ranks of a script that torchrun would start are run, on the phantom GPU.
type worldFlags struct {
	WorldSize   *int   `help:"Run ranks of a script that torchrun would start so many times, on phantom GPUs; the other ranks are copies of the one that runs." placeholder:"N"`
	Ranks       string `help:"Which ranks to run, with --world-size." default:"0" placeholder:"R,…"`
	GPUsPerNode int    `name:"gpus-per-node" help:"How many GPUs a machine has, with --world-size: a rank's device is its remainder." default:"8" placeholder:"N"`
}

// world is what the flags say, nil where --world-size was not given.
func (f *worldFlags) world() (*collect.World, error) {
	switch {
	case f.WorldSize != nil:
		return collect.NewWorld(*f.WorldSize, f.Ranks, f.GPUsPerNode)
	case f.Ranks != "0":
		return nil, withHint{errors.New("--ranks has no effect without --world-size"),
			"as in --world-size 8 --ranks 0,7"}
	case f.GPUsPerNode != 8:
		return nil, withHint{errors.New("--gpus-per-node has no effect without --world-size"),
			"as in --world-size 8 --gpus-per-node 4"}
	}
	return nil, nil
}
