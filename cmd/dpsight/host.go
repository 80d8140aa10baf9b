package main

import (
	"strings"

	"github.com/dpsight/dpsight/report"
)

type hostCmd struct {
	analysis
	Out   string `short:"o" help:"Folder to draw host_memory into, as .png and .svg." placeholder:"DIR"`
	Force bool   `help:"Overwrite pictures of the same name that dpsight did not draw."`
}

func (hostCmd) Help() string { return help("host") }

func (c *hostCmd) Run(s *streams) error {
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	doc, err := runs.Host()
	if err != nil {
		return err
	}
	if c.Out != "" {
		written, err := report.WriteHostFigure(c.Out, doc, c.Force)
		if err != nil {
			return err
		}
		s.say(strings.Join(written, ", "))
	}
	return c.write(s, report.HostTables(doc)...)
}
