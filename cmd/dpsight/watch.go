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
	return watch.Show(os.Stdin, s.out, live.NewView(s.source(c.Store), c.Names, collect.Running).Runs)
}
