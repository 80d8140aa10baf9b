package main

import (
	"errors"
	"fmt"

	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

type checkCmd struct {
	storeFlag
	formatFlag
	Names         []string `arg:"" optional:"" name:"run" help:"Runs or stores to check (default: the newest suite or run)."`
	Baseline      string   `help:"What to hold them to: a file that --write-baseline wrote, or runs." placeholder:"FILE|RUN"`
	Threshold     []string `help:"How much may grow: NAME=RATIO or NAME=N%; may be repeated (default: peak=1.05 and time=1.10)." placeholder:"NAME=RATIO"`
	Floor         string   `help:"What a category that the baseline has none of may grow to (default: 1MiB)." default:"1MiB" placeholder:"SIZE"`
	Partial       bool     `help:"Experiments of the baseline that no run is of are no failure."`
	WriteBaseline string   `help:"Write the runs as a baseline, to commit; beside --baseline only if nothing grew." placeholder:"FILE"`
}

func (checkCmd) Help() string { return help("check") }

func (c *checkCmd) Run(s *streams) error {
	if c.Baseline == "" && c.WriteBaseline == "" {
		return withHint{errors.New("there is nothing to check against: no --baseline is given"),
			"dpsight check --write-baseline FILE writes one from runs that are good"}
	}
	given := c.Threshold
	if len(given) == 0 {
		given = gate.DefaultThresholds
	}
	thresholds, err := gate.ParseThresholds(given)
	if err != nil {
		return withHint{err, "as in --threshold peak=1.05 --threshold category:gradients=5%"}
	}
	floor, err := gate.ParseBytes(c.Floor)
	if err != nil {
		return withHint{fmt.Errorf("--floor: %w", err), "as in --floor 1MiB"}
	}
	from := s.source(c.Store)
	var baseline *schemas.Baseline
	var ofRuns bool
	if c.Baseline != "" { // first: trials that it has are checked
		if baseline, ofRuns, err = from.ReadBaseline("the baseline", c.Baseline, version,
			selected.LeaveTrials); err != nil {
			return err
		}
	}
	_, runs, err := from.Summaries(c.Names, selected.LeaveTrialsBut(baseline))
	if err != nil {
		return err
	}
	runs = from.Newest(runs)
	var doc *gate.Document
	if baseline != nil {
		if err := gate.CheckPhases(thresholds, *baseline, runs); err != nil {
			return withHint{err, "dpsight analyze phases lists the phases"}
		}
		d := gate.Check(*baseline, runs, gate.Options{Baseline: c.Baseline, Thresholds: thresholds,
			Floor: floor, Partial: c.Partial, Pair: ofRuns})
		doc = &d
	}
	if doc != nil {
		if err := table.Write(s.out, c.Format, report.CheckTables(*doc)...); err != nil {
			return err
		}
		if !doc.OK {
			hint := "where this is meant, dpsight check --write-baseline FILE writes a new baseline"
			if c.WriteBaseline != "" {
				hint = "no baseline was written; where this is meant, leave out --baseline"
			}
			return failure{withHint{errors.New(doc.Sentence()), hint}}
		}
	}
	if c.WriteBaseline != "" {
		fresh := gate.BaselineOf(runs, version)
		if err := schemas.WriteBaseline(c.WriteBaseline, &fresh); err != nil {
			return withHint{fmt.Errorf("writing the baseline: %w", err), "name a file that can be written"}
		}
		for _, gap := range gate.BaselineGaps(&fresh) {
			s.warn(gap)
		}
		s.say(fmt.Sprintf("baseline of %d experiments in %s", len(fresh.Experiments), c.WriteBaseline))
	}
	return nil
}
