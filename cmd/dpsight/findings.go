package main

import (
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
)

type findingsCmd struct {
	analysis
	All    bool `help:"Show all findings, in more detail."`
	Schema int  `help:"Version of the JSON document." enum:"1,2" default:"2" placeholder:"N"`
}

func (findingsCmd) Help() string { return help("findings") }

func (c *findingsCmd) Run(s *streams) error {
	return show(s, &c.analysis, (*selected.Runs).Findings, report.FindingsView{All: c.All, Schema: c.Schema}.Tables)
}
