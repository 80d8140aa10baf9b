package main

import (
	"errors"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas/store"
)

type ladderCmd struct{ analysis }

func (ladderCmd) Help() string {
	return `What nvidia-smi shows, explained: device used = other processes + CUDA context, modules and non-torch + reserved by torch;
reserved = allocated + pending free + cached; allocated = the categories. Each rung is the sum of those in it, to the byte.
It is printed for the highest device used and for the highest allocated; where the former lies in a step without allocator events, for
the highest device used among those with them too. What a category is, down to the tensor, says
dpsight analyze breakdown --by category,name, at the event that the ladder is of (--at event=N).

Examples:
  dpsight analyze ladder
  dpsight analyze ladder ghost --format markdown
  dpsight analyze ladder --store examples/headline --format json`
}

func (c *ladderCmd) Run(s *streams) error {
	sel, err := selectRuns(s, c.Store, c.Names)
	if err != nil {
		return err
	}
	many := len(sel.Runs) > 1
	want := store.WantMemory | store.WantTimes | store.WantEvents | store.WantSamples | store.WantClock
	runs, err := rows(s, sel, want, func(in analyze.Input) (analyze.LadderRun, error) {
		run, err := analyze.Ladder(in)
		if none := (*analyze.NoEventsError)(nil); errors.As(err, &none) && many { // it is listed without GPUs
			err = nil
		}
		return run, err
	})
	if err != nil {
		return err
	}
	return c.write(s, report.LadderTables(analyze.NewLadderDocument(runs...))...)
}
