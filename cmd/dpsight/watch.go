package main

import (
	"os"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/live"
	"github.com/dpsight/dpsight/report/watch"
)

type watchCmd struct {
	storeFlag
	Names []string `arg:"" optional:"" name:"run" predictor:"run" help:"${view_run}"`
}

func (watchCmd) Help() string { return help("watch") }

func (c *watchCmd) Run(s *streams) error {
	v := live.NewView(s.source(c.Store), c.Names, collect.Running)
	if err := v.Check(); err != nil {
		return err
	}
	return watch.Show(os.Stdin, s.out, c.Names, v.Runs)
}
