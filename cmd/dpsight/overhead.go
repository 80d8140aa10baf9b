package main

import (
	"errors"

	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
)

type overheadCmd struct {
	analysis
	Baseline string `help:"Run to compare with (default: the suite's baseline, else the first vanilla run, else the first)." placeholder:"RUN"`
}

func (overheadCmd) Help() string { return help("overhead") }

func (c *overheadCmd) Run(s *streams) error {
	runs, sums, err := s.source(c.Store).Summaries(c.Names, selected.LeaveTrials)
	if err != nil {
		return err
	}
	base, err := runs.Baseline(c.Baseline, sums)
	if err != nil {
		return err
	}
	base.NoteRepeats(runs, sums)
	runs.LendEnergy(sums)
	study := base.Study(runs, sums)
	switch {
	case study.Uncompared != "":
		return withHint{errors.New(study.Uncompared + ": an overhead of one over the other says nothing"),
			"name the run to compare with by --baseline"}
	case study.Baseline == nil:
		return withHint{errors.New("no run to compare with: none ended well"), "name one with --baseline"}
	case len(study.Runs) == 1 && study.Baseline.RunID == study.Runs[0].RunID:
		return withHint{errors.New("one run has nothing to be compared with"),
			"name a second run, or what to compare with by --baseline; dpsight runs lists the runs"}
	}
	return c.write(s, report.OverheadTables(study)...)
}
