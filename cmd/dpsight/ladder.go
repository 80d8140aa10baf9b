package main

import (
	"errors"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/schemas/store"
)

type ladderCmd struct{ analysis }

func (ladderCmd) Help() string { return help("ladder") }

func (c *ladderCmd) Run(s *streams) error {
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	many := len(runs.Runs) > 1
	want := store.WantMemory | store.WantTimes | store.WantEvents | store.WantSamples | store.WantClock
	rows, err := selected.Rows(runs, want, func(in analyze.Input) (analyze.LadderRun, error) {
		run, err := analyze.Ladder(in)
		if none := (*analyze.NoEventsError)(nil); errors.As(err, &none) && many { // it is listed without GPUs
			err = nil
		}
		return run, err
	})
	if err != nil {
		return err
	}
	return c.write(s, report.LadderTables(analyze.NewLadderDocument(rows...))...)
}
