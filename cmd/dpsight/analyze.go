package main

import (
	"errors"
	"fmt"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/store"
)

type analyzeCmd struct {
	Breakdown breakdownCmd `cmd:"" help:"What the allocated bytes are for, at the peak or at any moment."`
	Timeline  timelineCmd  `cmd:"" help:"What was allocated by category after every event, and each category's own maximum."`
	Phases    phasesCmd    `cmd:"" help:"Memory and time of each phase."`
	Overhead  overheadCmd  `cmd:"" help:"How much more memory and time runs take than a baseline, by category and phase."`
	Explain   explainCmd   `cmd:"" help:"Why one run's peak exceeds another's, and why its step is longer."`
	Cost      costCmd      `cmd:"" help:"What recording itself cost, and whether it lost or moved anything."`
	Findings  findingsCmd  `cmd:"" help:"What is worth changing, with its figures: what to change and what it would save."`
	Ladder    ladderCmd    `cmd:"" help:"What the GPU's memory is, from what NVML has in use down to the categories."`
}

// analysis is what every analysis has in common.
type analysis struct {
	storeFlag
	formatFlag
	Names []string `arg:"" optional:"" name:"run" help:"Run ids, unique prefixes, names, run folders or stores (default: the newest suite or run)."`
}

type breakdownCmd struct {
	analysis
	At    string `help:"Moment: peak, oom, oom=N (the N-th request that failed), event=N, step=N, phase=P or step=N,phase=P." default:"peak" placeholder:"MOMENT"`
	By    string `help:"Break down by one or two of category, module, class, role, phase, step, op, size, stack." placeholder:"D[,D]"`
	Depth int    `help:"With --by module: the first N names of a path, as in blocks.3; with --by stack: the N innermost frames (default 3)." placeholder:"N"`
	Fold  bool   `help:"With --by module: like layers are one row, as in blocks.*.attention.q."`
	Top   *int   `help:"With --by: rows beyond the N largest are one, \"12 others\" (default 20; 0 = all)." placeholder:"N"`
}

func (breakdownCmd) Help() string {
	return `Each byte that the caching allocator counts is under one category; the categories sum to the allocator's total.
With --by, each is in one row, and the rows sum to that total. A block belongs to the module of the owner that it is
counted under, else to the one that ran when it was allocated. The phase, step and stack are those of its birth; the op is
the one that keeps it for backward, by autograd's name, where a tag says.

Examples:
  dpsight analyze breakdown
  dpsight analyze breakdown ghost --at step=2,phase=backward.norm
  dpsight analyze breakdown ghost --by category,module --fold
  dpsight analyze breakdown ghost --by module,phase --depth 2 --top 0
  dpsight analyze breakdown --store examples/headline --format json`
}

func (c *breakdownCmd) Run(s *streams) error {
	at, err := analyze.ParseAt(c.At)
	if err != nil {
		return withHint{err, "as in --at peak, --at oom, --at event=1200 or --at step=2,phase=backward; steps count from 0; dpsight analyze phases lists the phases"}
	}
	by, err := c.dimensions()
	if err != nil {
		return err
	}
	sel, err := selectRuns(s.err, c.Store, c.Names)
	if err != nil {
		return err
	}
	if by != nil {
		return c.breakdownBy(s, sel, at, *by)
	}
	var rows []analyze.BreakdownRun
	many := len(sel.Runs) > 1
	err = each(s, sel, c.Names, store.WantMemory|store.WantTimes|store.WantEvents, many, func(in analyze.Input) error {
		row, err := analyze.Breakdown(in, at)
		rows = append(rows, row)
		return withoutEvents(err, many)
	})
	if err != nil {
		return err
	}
	return table.Write(s.out, c.Format, report.BreakdownTables(analyze.NewBreakdownDocument(rows...))...)
}

// withoutEvents is what becomes of a run that has no allocator events: the only one is an error, one of many is listed without devices.
func withoutEvents(err error, many bool) error {
	var none *analyze.NoEventsError
	switch {
	case !errors.As(err, &none):
		return err
	case many:
		return nil
	}
	return withHint{err, "dpsight analyze phases and dpsight analyze overhead need none"}
}

type phasesCmd struct{ analysis }

func (phasesCmd) Help() string {
	return `Times are of bare steps, which carry no instrument; bytes are of all steps.

Examples:
  dpsight analyze phases ghost
  dpsight analyze phases --store examples/headline --format markdown`
}

func (c *phasesCmd) Run(s *streams) error {
	sel, err := selectRuns(s.err, c.Store, c.Names)
	if err != nil {
		return err
	}
	var rows []analyze.PhasesRun
	err = each(s, sel, c.Names, store.WantTimes, len(sel.Runs) > 1, func(in analyze.Input) error {
		rows = append(rows, analyze.Phases(in))
		return nil
	})
	if err != nil {
		return err
	}
	return table.Write(s.out, c.Format, report.PhasesTables(analyze.NewPhasesDocument(rows...))...)
}

type overheadCmd struct {
	analysis
	Baseline string `help:"Run to compare with (default: the suite's baseline, else the first vanilla run, else the first)." placeholder:"RUN"`
}

func (overheadCmd) Help() string {
	return `Examples:
  dpsight analyze overhead
  dpsight analyze overhead ghost dpsgd --baseline vanilla
  dpsight analyze overhead --store examples/headline --format latex`
}

func (c *overheadCmd) Run(s *streams) error {
	study, _, err := buildStudy(s, c.Store, c.Names, c.Baseline)
	if err != nil {
		return err
	}
	if study.Baseline == nil {
		return withHint{errors.New("no run to compare with: none ended well"), "name one with --baseline"}
	}
	return table.Write(s.out, c.Format, report.OverheadTables(study)...)
}

type costCmd struct{ analysis }

func (costCmd) Help() string {
	return `Examples:
  dpsight analyze cost
  dpsight analyze cost examples/headline --format markdown`
}

func (c *costCmd) Run(s *streams) error {
	sel, err := selectRuns(s.err, c.Store, c.Names)
	if err != nil {
		return err
	}
	var rows []analyze.CostRun
	err = each(s, sel, c.Names, 0, true, func(in analyze.Input) error {
		rows = append(rows, analyze.Cost(in))
		return nil
	})
	if err != nil {
		return err
	}
	return table.Write(s.out, c.Format, report.CostTable(analyze.NewCostDocument(rows...)))
}

// buildStudy summarizes the runs that the arguments name, beside a baseline.
func buildStudy(s *streams, dir string, names []string, baseline string) (analyze.Study, *store.Selection, error) {
	sel, err := selectRuns(s.err, dir, names)
	if err != nil {
		return analyze.Study{}, nil, err
	}
	study, err := studyOf(s, dir, sel, names, baseline)
	return study, sel, err
}

// studyOf summarizes selected runs beside the baseline that is named, else the suite's, else the default.
func studyOf(s *streams, dir string, sel *store.Selection, names []string, baseline string) (analyze.Study, error) {
	runs, err := summarize(s, sel, names)
	if err != nil {
		return analyze.Study{}, err
	}
	return newStudy(s, dir, sel, runs, baseline)
}

// newStudy sets summarized runs beside their baseline.
func newStudy(s *streams, dir string, sel *store.Selection, runs []analyze.Summary, baseline string) (analyze.Study, error) {
	if baseline != "" {
		base, err := namedBaseline(s, dir, runs, baseline)
		if err != nil {
			return analyze.Study{}, err
		}
		return analyze.NewStudy(runs, base), nil
	}
	var match map[string]any
	if sel.Suite != nil {
		match = sel.Suite.Baseline
	}
	return analyze.NewMatchedStudy(runs, match), nil
}

func namedBaseline(s *streams, dir string, runs []analyze.Summary, name string) (*analyze.Summary, error) {
	one, err := selectRuns(s.err, dir, []string{name})
	if err != nil {
		return nil, err
	}
	if len(one.Runs) != 1 {
		return nil, withHint{fmt.Errorf("baseline %q names %d runs, not one", name, len(one.Runs)), "name a run by its id, or by its own name"}
	}
	for i := range runs {
		if runs[i].RunID == one.Runs[0].ID {
			return &runs[i], nil
		}
	}
	in, err := load(one.Runs[0], store.WantAll, false)
	if err != nil {
		return nil, err
	}
	sum := analyze.Summarize(in)
	return &sum, nil
}
