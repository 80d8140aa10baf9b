package main

import (
	"errors"

	"github.com/dpsight/dpsight/report"
)

type overheadCmd struct {
	analysis
	Baseline string `help:"Run to compare with (default: the suite's baseline, else the first vanilla run, else the first)." placeholder:"RUN"`
}

func (overheadCmd) Help() string { return help("overhead") }

func (c *overheadCmd) Run(s *streams) error {
	sel, runs, err := summarized(s, c.Store, c.Names, leaveTrials)
	if err != nil {
		return err
	}
	base, err := namedBaseline(s, c.Store, sel, runs, c.Baseline)
	if err != nil {
		return err
	}
	base.noteRepeats(sel, runs)
	lendEnergy(sel, runs)
	study := base.study(sel, runs)
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
