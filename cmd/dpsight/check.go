package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

type checkCmd struct {
	storeFlag
	formatFlag
	Where         string   `help:"${where}" placeholder:"CONDITION"`
	Names         []string `arg:"" optional:"" name:"run" predictor:"run" help:"${check_run}"`
	Baseline      string   `predictor:"run" help:"${check_baseline}" placeholder:"FILE|RUN"`
	Threshold     []string `help:"${threshold}" placeholder:"NAME=RATIO"`
	Floor         string   `help:"${floor}" placeholder:"SIZE"`
	Config        string   `help:"${config}" placeholder:"FILE"`
	Acknowledge   []string `help:"${acknowledge}" placeholder:"NAME"`
	Until         string   `help:"With --acknowledge: the last day on which it counts, in UTC." placeholder:"DATE"`
	Why           string   `help:"With --acknowledge: why the metric is acknowledged." placeholder:"TEXT"`
	By            string   `help:"Who acknowledges the metric." env:"GITHUB_ACTOR,USER" placeholder:"NAME"`
	Partial       bool     `help:"Do not fail if experiments of the baseline have no run."`
	Force         bool     `help:"Let --write-baseline overwrite a file that is not a baseline."`
	Comment       string   `help:"Also write the check as a comment for a pull request." placeholder:"FILE"`
	JUnit         string   `name:"junit" help:"Also write the check as JUnit XML." placeholder:"FILE"`
	SARIF         string   `name:"sarif" help:"Also write the check as SARIF 2.1.0." placeholder:"FILE"`
	WriteBaseline string   `predictor:"run" help:"${write_baseline}" placeholder:"FILE"`
}

func (checkCmd) Help() string { return help("check") }

func (c *checkCmd) Run(s *streams) error {
	if c.Baseline == "" && c.WriteBaseline == "" {
		return withHint(errors.New("there is nothing to check against: no --baseline is given"),
			"dpsight check --write-baseline FILE writes one from runs that are good")
	}
	config, err := schemas.FindConfig(c.Config)
	if err != nil {
		return err
	}
	thresholds, floor, err := gate.Limits(c.Threshold, c.Floor, &config.Check)
	if err != nil {
		return withHint(err, "as in --threshold peak=1.05 --threshold category:gradients=5% --floor 1MiB")
	}
	if err := refuse(misuse{len(c.Acknowledge) > 0 && (c.Baseline == "" || c.WriteBaseline != ""),
		"--acknowledge is for the file that --baseline names, and without --write-baseline",
		"as in --baseline baseline.json --acknowledge peak@ghost"},
		misuse{len(c.Acknowledge) == 0 && (c.Until != "" || c.Why != ""),
			"--until and --why are of an acknowledgement, and no --acknowledge is given",
			"as in --acknowledge peak@ghost --until 2026-12-31 --why 'fixed in the next release'"}); err != nil {
		return err
	}
	base, done, err := ingest.Baseline(c.Baseline, version)
	if err != nil {
		return err
	}
	defer done()
	checked, err := s.source(c.Store).Only(c.Where).CheckAnd(c.Names, version, gate.Options{Baseline: c.Baseline,
		BaselineAt: base, Thresholds: thresholds, Floor: floor, Partial: c.Partial,
		Today: time.Now().UTC().Format(time.DateOnly)}, c.Acknowledge,
		schemas.Acknowledgement{Until: c.Until, By: c.By, Why: c.Why})
	if err != nil {
		return err
	}
	if checked.Result != nil {
		doc := report.NewCheckDocument(*checked.Result)
		if err := table.Write(s.out, c.Format, report.CheckTables(doc)...); err != nil {
			return err
		}
		if err := report.WriteCheckFiles(&doc, c.JUnit, c.SARIF, c.Comment, version); err != nil {
			return err
		}
		if !doc.OK {
			hint := "if this is meant, write a new baseline with --write-baseline FILE, or let it pass for a while with " +
				"--acknowledge"
			if c.WriteBaseline != "" {
				hint = "no baseline was written; where this is meant, leave out --baseline"
			}
			return failure{withHint(errors.New(doc.Sentence()), hint)}
		}
	}
	if c.WriteBaseline == "" {
		return nil
	}
	if !c.Force {
		if err := schemas.CheckOwn(c.WriteBaseline, schemas.IsBaseline); err != nil {
			return withHint(fmt.Errorf("writing the baseline: %w", err), "name another file, or write over it with --force")
		}
	}
	fresh := checked.Baseline(version)
	if err := schemas.WriteBaseline(c.WriteBaseline, &fresh); err != nil {
		return withHint(fmt.Errorf("writing the baseline: %w", err), "name a file that can be written")
	}
	for _, gap := range report.BaselineGaps(&fresh) {
		s.warn(gap)
	}
	written := units.Plural(len(fresh.Experiments), "experiment", "experiments")
	s.say(fmt.Sprintf("baseline of %s in %s", written, c.WriteBaseline))
	return nil
}
