package main

import (
	"errors"

	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/schemas"
)

type ladderCmd struct{ analysis }

func (ladderCmd) Help() string { return help("ladder") }

func (c *ladderCmd) Run(s *streams) error {
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	many := len(runs.Runs) > 1
	want := schemas.WantMemory | schemas.WantTimes | schemas.WantEvents | schemas.WantSamples | schemas.WantClock
	rows, err := selected.Rows(runs, want, func(in schemas.Tables) (ladder.Run, error) {
		run, err := ladder.Of(in)
		if none := (*memory.NoEventsError)(nil); errors.As(err, &none) && many { // it is listed without GPUs
			err = nil
		}
		return run, err
	})
	if err != nil {
		return err
	}
	return c.write(s, report.LadderTables(ladder.NewDocument(rows...))...)
}
