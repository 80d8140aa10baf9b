package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dpsight/dpsight/report/paper"
)

type paperCmd struct {
	storeFlag
	Names    []string `arg:"" optional:"" name:"run" predictor:"run" help:"${run}"`
	Out      string   `short:"o" required:"" help:"Folder to write the paper's files into." placeholder:"DIR"`
	Baseline string   `predictor:"run" help:"${baseline}" placeholder:"RUN"`
	Steps    string   `enum:"peak,all" default:"peak" help:"Steps whose memory the figures draw." placeholder:"peak|all"`
	Config   string   `help:"Settings of the paper (default: paper.yaml in DIR)." placeholder:"FILE"`
	Init     bool     `help:"Write only a paper.yaml for these runs."`
	Force    bool     `help:"Overwrite files in the folder that dpsight did not write."`
}

func (paperCmd) Help() string { return help("paper") }

func (c *paperCmd) Run(s *streams) error {
	config, err := paper.ReadConfig(c.Config, c.Out, c.Init)
	if err != nil {
		return err
	}
	if c.Steps == paper.AllSteps {
		config.Steps = c.Steps
	}
	m, err := s.source(c.Store).Paper(c.Names, c.Baseline, config)
	if err != nil {
		return err
	}
	m.Force, m.Command = c.Force, append([]string{"dpsight"}, os.Args[1:]...)
	if c.Init {
		path, err := paper.Init(c.Out, &m)
		if err == nil {
			s.say("settings in " + path)
		}
		return err
	}
	written, err := paper.Write(c.Out, m)
	if err == nil {
		s.say(fmt.Sprintf("paper in %s (%d files); main.tex begins it", filepath.Clean(c.Out), len(written)))
	}
	return err
}
