package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/live"
)

// serveFlags are the options for serving the page.
type serveFlags struct {
	Port   int  `help:"${view_port}" default:"0" placeholder:"PORT"`
	NoOpen bool `help:"Print the address without opening a browser."`
}

type viewCmd struct {
	storeFlag
	Names []string `arg:"" optional:"" name:"run" predictor:"run" help:"${view_run}"`
	serveFlags
}

func (viewCmd) Help() string { return help("view") }

func (c *viewCmd) Run(s *streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	v := live.NewView(s.source(c.Store), c.Names, collect.Running)
	if err := v.Look(); err != nil {
		return err
	}
	return live.Show(ctx, v, c.options(s))
}

func (f *serveFlags) options(s *streams) live.Options {
	return live.Options{Port: f.Port, Open: !f.NoOpen, Say: s.say}
}
