package main

import (
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
)

type marksCmd struct{ analysis }

func (marksCmd) Help() string { return help("marks") }

func (c *marksCmd) Run(s *streams) error {
	return show(s, &c.analysis, (*selected.Runs).Marks, alone(report.MarksTable))
}
