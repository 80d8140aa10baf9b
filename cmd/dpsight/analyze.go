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
	Phases    phasesCmd    `cmd:"" help:"The memory and the time of each phase."`
	Overhead  overheadCmd  `cmd:"" help:"How much more memory and time runs take than a baseline, by category and phase."`
	Explain   explainCmd   `cmd:"" help:"Why one run's peak exceeds another's, and why its step is longer."`
	Time      timeCmd      `cmd:"" help:"The GPU time of each module, forward and backward."`
	Cost      costCmd      `cmd:"" help:"How much recording slowed a run, and whether it lost events or changed the peak."`
	Findings  findingsCmd  `cmd:"" help:"What is worth changing in a script, and what the change would save."`
	Accuracy  accuracyCmd  `cmd:"" help:"How far predictions are from measurements."`
	Marks     marksCmd     `cmd:"" help:"What was allocated at the moments that the script marked with dpsight.mark."`
	Ranks     ranksCmd     `cmd:"" help:"The peaks of a run's ranks, and which bytes an unusual rank has more of."`
	Host      hostCmd      `cmd:"" help:"Resident and page-locked memory of the host, and the phases in which it grew."`
	Ladder    ladderCmd    `cmd:"" help:"How the device memory that NVML shows divides, down to the categories."`
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
