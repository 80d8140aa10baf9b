package main

import (
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/report/table"
)

type analyzeCmd struct{ analyses }

// analyses are the subcommands of dpsight analyze. A user may leave out the word analyze.
type analyses struct {
	Breakdown breakdownCmd `cmd:"" help:"What the allocated bytes are for, at the peak or at any moment."`
	Timeline  timelineCmd  `cmd:"" help:"${timeline}"`
	Phases    phasesCmd    `cmd:"" help:"Memory and time of each phase."`
	Overhead  overheadCmd  `cmd:"" help:"How much more memory and time runs take than a baseline, by category and phase."`
	Explain   explainCmd   `cmd:"" help:"Why one run's peak exceeds another's, and why its step is longer."`
	Time      timeCmd      `cmd:"" help:"GPU time of each module, forward and backward."`
	Cost      costCmd      `cmd:"" help:"What recording itself cost, and whether it lost or moved anything."`
	Findings  findingsCmd  `cmd:"" help:"What is worth changing, and what it would save."`
	Accuracy  accuracyCmd  `cmd:"" help:"How far predictions are from measurements."`
	Marks     marksCmd     `cmd:"" help:"What was allocated at the moments that the script marked with dpsight.mark."`
	Ranks     ranksCmd     `cmd:"" help:"Peaks of the ranks side by side, and what the outlier holds more of."`
	Host      hostCmd      `cmd:"" help:"Resident and page-locked memory on the host, and in which phases it grew."`
	Ladder    ladderCmd    `cmd:"" help:"Device memory, from what NVML shows down to the categories."`
}

// analysis has the options and arguments that all analyses share.
type analysis struct {
	storeFlag
	formatFlag
	Names []string `arg:"" optional:"" name:"run" predictor:"run" help:"${analyze_run}"`
}

// write prints tables.
func (c *analysis) write(s *streams, tables ...table.Table) error {
	return table.Write(s.out, c.Format, tables...)
}

// show makes a document of the selected runs and prints its tables.
func show[D any](s *streams, c *analysis, of func(*selected.Runs) (D, error), tables func(D) []table.Table) error {
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	doc, err := of(runs)
	if err != nil {
		return err
	}
	return c.write(s, tables(doc)...)
}

// showRecords is show for an analysis whose CSV has records for programs instead of the printed tables.
func showRecords[D any](s *streams, c *analysis, of func(*selected.Runs) (D, error), tables func(D) []table.Table,
	records func(D) table.Table) error {
	if c.Format == "csv" {
		tables = alone(records)
	}
	return show(s, c, of, tables)
}

// alone wraps a function that makes a document's only table, so that it returns a list of tables.
func alone[D any](one func(D) table.Table) func(D) []table.Table {
	return func(doc D) []table.Table { return []table.Table{one(doc)} }
}
