package main

import (
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
)

// The analyses phases, cost, ladder, marks and ranks have no options beyond the common ones.

type phasesCmd struct{ analysis }

func (phasesCmd) Help() string { return help("phases") }

func (c *phasesCmd) Run(s *streams) error {
	return show(s, &c.analysis, (*selected.Runs).Phases, report.PhasesTables)
}

type costCmd struct{ analysis }

func (costCmd) Help() string { return help("cost") }

func (c *costCmd) Run(s *streams) error {
	return show(s, &c.analysis, (*selected.Runs).Cost, alone(report.CostTable))
}

type ladderCmd struct{ analysis }

func (ladderCmd) Help() string { return help("ladder") }

func (c *ladderCmd) Run(s *streams) error {
	return show(s, &c.analysis, (*selected.Runs).Ladder, report.LadderTables)
}

type marksCmd struct{ analysis }

func (marksCmd) Help() string { return help("marks") }

func (c *marksCmd) Run(s *streams) error {
	return show(s, &c.analysis, (*selected.Runs).Marks, alone(report.MarksTable))
}

type ranksCmd struct{ analysis }

func (ranksCmd) Help() string { return help("ranks") }

func (c *ranksCmd) Run(s *streams) error {
	return showRecords(s, &c.analysis, (*selected.Runs).Ranks, report.RanksTables, report.RanksTable)
}
