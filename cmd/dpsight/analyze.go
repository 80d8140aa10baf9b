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
	Time      timeCmd      `cmd:"" help:"GPU time of each module, forward and backward."`
	Cost      costCmd      `cmd:"" help:"What recording itself cost, and whether it lost or moved anything."`
	Findings  findingsCmd  `cmd:"" help:"What is worth changing, with its figures: what to change and what it would save."`
	Accuracy  accuracyCmd  `cmd:"" help:"How far predictions are from what was measured."`
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
	By    string `xor:"known" help:"Break down by one or two of category, module, class, role, phase, step, op, dtype, size, stack, name." placeholder:"D[,D]"`
	Depth int    `help:"With --by module: the first N names of a path, as in blocks.3; with --by stack: the N innermost frames (default 3)." placeholder:"N"`
	Fold  bool   `help:"With --by module or name: like layers are one row, as in blocks.*.attention.q."`
	Top   *int   `help:"With --by: rows beyond the N largest are one, \"12 others\" (default 20; 0 = all)." placeholder:"N"`
	Known bool   `help:"Instead of the categories, a row a run: how much is tagged, known by lifetime, known by phase only, and of no owner." xor:"known"`
}

func (breakdownCmd) Help() string {
	return `Each byte that the caching allocator counts is under one category; the categories sum to the allocator's total.
With --by, each is in one row, and the rows sum to that total; with --known the evidence for them is, a row a run. A block belongs to the module of the owner that it is
counted under, else to the one that ran when it was allocated; workspaces that libraries keep are shared by all. The phase, step and stack
are those of its birth; the op is the one that keeps an activation for backward, by autograd's name, and the dtype that of the tensors in it, where a tag says. The name is the tensor's: that of the parameter which it is, or is the gradient
or the optimizer's state of; of what autograd holds, the module's and that of the node.
--at phase=backward is the highest moment of backward, backward.norm and backward.grad, whichever the run has. Of several runs,
those without the moment are listed with the reason.

Examples:
  dpsight analyze breakdown
  dpsight analyze breakdown ghost --at step=2,phase=backward.norm
  dpsight analyze breakdown ghost --by category,module --fold
  dpsight analyze breakdown ghost --by module,phase --depth 2 --top 0
  dpsight analyze breakdown ghost --by category,name --top 0
  dpsight analyze breakdown examples/headline --known
  dpsight analyze breakdown --store examples/headline --format json`
}

func (c *breakdownCmd) Run(s *streams) error {
	at, err := analyze.ParseAt(c.At)
	if err != nil {
		return withHint{err, "as in --at peak, --at oom, --at event=1200 or --at step=2,phase=backward; steps count " +
			"from 0; dpsight analyze phases lists the phases"}
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
	if c.Known { // a row a run that has a peak: without any there would be none, and no note of why
		if err := nothingIngested(sel); err != nil {
			return err
		}
	}
	var rows []analyze.BreakdownRun
	many := len(sel.Runs) > 1
	var lacking lacks
	err = each(s, sel, c.Names, store.WantMemory|store.WantTimes|store.WantEvents, many, func(in analyze.Input) error {
		row, err := analyze.Breakdown(in, at)
		rows = append(rows, row)
		return lacking.note(err, many)
	})
	if err != nil {
		return err
	}
	if err := lacking.all(); err != nil {
		return err
	}
	doc := analyze.NewBreakdownDocument(rows...)
	if c.Known {
		return table.Write(s.out, c.Format, report.KnownTable(doc))
	}
	return table.Write(s.out, c.Format, report.BreakdownTables(doc)...)
}

// withoutEvents is what becomes of a run that has no allocator events: the only one is an error, one of many is listed
// without devices.
func withoutEvents(err error, many bool) error {
	var none *analyze.NoEventsError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &none):
		return withHint{err, "dpsight analyze phases lists a run's phases and their steps, dpsight analyze timeline " +
			"its devices and events"}
	case many:
		return nil
	}
	return withHint{err, "dpsight analyze phases and dpsight analyze overhead need none"}
}

// lacks are the runs that lack the moment asked for. They are listed beside those that have it; where none has it, the
// first says why.
type lacks struct {
	first *analyze.NoMomentError
	any   bool // some run has it
}

// note is what becomes of one run's error.
func (l *lacks) note(err error, many bool) error {
	var missing *analyze.NoMomentError
	switch {
	case errors.As(err, &missing):
		if l.first == nil {
			l.first = missing
		}
		return nil
	case err == nil:
		l.any = true
	}
	return withoutEvents(err, many)
}

// all is the error of runs that all lack the moment.
func (l *lacks) all() error {
	switch {
	case l.first == nil || l.any:
		return nil
	case l.first.At.OOM != nil: // no phase would help
		return withHint{l.first, "dpsight analyze findings names the requests that failed; without any, --at peak is " +
			"the highest moment"}
	}
	return withHint{l.first, "dpsight analyze phases lists a run's phases and their steps, dpsight analyze timeline " +
		"its devices and events"}
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
	err = each(s, sel, c.Names, store.WantTimes|store.WantModuleTimes, len(sel.Runs) > 1, func(in analyze.Input) error {
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
	return `Without --baseline each run of a store is compared with the nearest baseline of its own work: of its suite, else of the same model, its
size and script; where batch, precision or the like differ, a note says so. A run of whose work there is no other is compared with nothing,
nor is one of several variants of a method where no vanilla run is of their work.

Examples:
  dpsight analyze overhead
  dpsight analyze overhead ghost dpsgd --baseline vanilla
  dpsight analyze overhead --store examples/headline --format latex`
}

func (c *overheadCmd) Run(s *streams) error {
	sel, runs, err := summarized(s, c.Store, c.Names)
	if err != nil {
		return err
	}
	base, elsewhere, err := namedBaseline(s, c.Store, runs, c.Baseline)
	if err != nil {
		return err
	}
	noteRepeatsBeside(sel, runs, base, elsewhere)
	lendEnergy(sel, runs)
	study := studyBeside(sel, runs, base)
	if study.Uncompared != "" {
		return withHint{errors.New(study.Uncompared + ": an overhead of one over the other says nothing"),
			"name the run to compare with by --baseline"}
	}
	if study.Baseline == nil {
		return withHint{errors.New("no run to compare with: none ended well"), "name one with --baseline"}
	}
	if len(study.Runs) == 1 && study.Baseline.RunID == study.Runs[0].RunID {
		return withHint{errors.New("one run has nothing to be compared with"), "name a second run, or what to " +
			"compare with by --baseline; dpsight runs lists the runs"}
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
	if err := nothingIngested(sel); err != nil {
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

// studyOf summarizes selected runs beside the suite's baseline, else the default.
func studyOf(s *streams, sel *store.Selection, names []string) (analyze.Study, error) {
	runs, err := summarize(s, sel, names)
	if err != nil {
		return analyze.Study{}, err
	}
	return studyBeside(sel, runs, nil), nil
}

// studyBeside sets summarized runs beside a baseline, where there is none beside the suite's, else the default.
func studyBeside(sel *store.Selection, runs []analyze.Summary, base *analyze.Summary) analyze.Study {
	if base != nil {
		return analyze.NewStudy(runs, base)
	}
	if sel.Suite == nil {
		return analyze.NewMatchedStudy(runs, nil, "")
	}
	return analyze.NewMatchedStudy(runs, sel.Suite.Baseline, sel.Suite.ID)
}

// namedBaseline is the run of a name, and where it lies if it is none of runs; nil without a name. Runs that came as
// folders are of no store that the name could be looked up in: what the store does not have is looked for among them.
func namedBaseline(s *streams, dir string, runs []analyze.Summary, name string) (base *analyze.Summary,
	elsewhere *store.Run, err error) {
	if name == "" {
		return nil, nil, nil
	}
	one, err := selectRuns(s.err, dir, []string{name})
	if missing := new(store.NotFoundError); errors.As(err, &missing) {
		if base = calledSo(runs, name); base != nil {
			return base, nil, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if len(one.Runs) != 1 {
		return nil, nil, withHint{fmt.Errorf("baseline %q names %d runs, not one", name, len(one.Runs)),
			"name a run by its id, or by its own name"}
	}
	for i := range runs {
		if runs[i].RunID == one.Runs[0].ID {
			return &runs[i], nil, nil
		}
	}
	in, err := load(one.Runs[0], store.WantAll, false)
	if err != nil {
		return nil, nil, err
	}
	sum := analyze.Summarize(in)
	return &sum, &one.Runs[0], nil
}

// calledSo is the last of the runs with that id or name; nil where there is none.
func calledSo(runs []analyze.Summary, name string) (found *analyze.Summary) {
	for i := range runs {
		if runs[i].RunID == name {
			return &runs[i]
		}
		if runs[i].Name == name {
			found = &runs[i]
		}
	}
	return found
}
