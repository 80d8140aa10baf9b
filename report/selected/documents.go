package selected

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/hostmemory"
	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/ranks"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// The analyses of selected runs. Each reads only the tables that it needs.

// List returns the table of runs, which also lists runs that have no tables.
func (r *Runs) List() (analyze.RunsDocument, error) {
	doc := analyze.RunsDocument{Schema: analyze.RunsSchema, Runs: []analyze.RunsRow{}}
	read, rows, err := r.listed()
	if err != nil {
		return doc, err
	}
	doc.Runs = append(doc.Runs, rows...)
	for i := range doc.Runs {
		doc.Runs[i].Tags = read.Runs[i].Tags
	}
	doc.Supersede(read.Manifests())
	return doc, nil
}

// Breakdown returns, for a moment of each run, what its allocated bytes are for.
func (r *Runs) Breakdown(at memory.At) (memory.BreakdownDocument, error) {
	rows, err := moments(r, memory.BreakdownTables,
		func(in schemas.Tables) (memory.BreakdownRun, error) { return memory.Breakdown(in, at) })
	return memory.NewBreakdownDocument(rows...), err
}

// Known returns a breakdown for [report.KnownTable], which has a row for each device of a run with a peak. If no run
// has a peak, the breakdown is empty, without a note on the reason.
func (r *Runs) Known(at memory.At) (doc memory.BreakdownDocument, err error) {
	if err := r.Ingested(); err != nil {
		return doc, err
	}
	return r.Breakdown(at)
}

// BreakdownBy returns the allocated bytes of a moment of each run by module, line and so on.
func (r *Runs) BreakdownBy(at memory.At, by grouping.By) (grouping.BreakdownByDocument, error) {
	rows, err := moments(r, grouping.Tables,
		func(in schemas.Tables) (grouping.BreakdownByRun, error) { return grouping.BreakdownBy(in, at, by) })
	return grouping.NewBreakdownByDocument(by, rows...), err
}

// Timeline returns the allocated bytes by category over a range of events.
func (r *Runs) Timeline(within timeline.EventRange, points int) (timeline.CategoryTimelineDocument, error) {
	many := len(r.Runs) > 1
	one := func(in schemas.Tables) (timeline.CategoryTimelineRun, error) {
		run, err := timeline.CategoryTimeline(in, within, points)
		return run, withoutEvents(err, many)
	}
	rows, err := rows(r, timeline.CategoryTables, one)
	return timeline.NewCategoryTimelineDocument(points, rows...), err
}

// Marks returns the moments that the scripts marked, and the bytes allocated then.
func (r *Runs) Marks() (timeline.MarksDocument, error) {
	many := len(r.Runs) > 1
	rows, err := rows(r, timeline.MarksTables, func(in schemas.Tables) (timeline.MarksRun, error) {
		run, err := timeline.Marks(in)
		return run, withoutEvents(err, many)
	})
	return timeline.NewMarksDocument(rows...), err
}

// Ranks returns the peaks of each run's devices, and what the outlier among them holds more of.
func (r *Runs) Ranks() (ranks.Document, error) {
	rows, err := rows(r, ranks.Tables, ranks.Of)
	return ranks.NewDocument(rows...), err
}

// Host returns the host memory of each run.
func (r *Runs) Host() (hostmemory.Document, error) {
	rows, err := rows(r, hostmemory.Tables, hostmemory.Of)
	return hostmemory.NewDocument(rows...), err
}

// Phases returns the memory and time of each phase.
func (r *Runs) Phases() (analyze.PhasesDocument, error) {
	rows, err := rows(r, analyze.PhasesTables, always(analyze.Phases))
	return analyze.NewPhasesDocument(rows...), err
}

// ModuleTimes returns the GPU time of each module.
func (r *Runs) ModuleTimes(by timing.ModuleTimeBy) (timing.ModuleTimeDocument, error) {
	rows, err := rows(r, timing.ModuleTimeTables, always(func(in schemas.Tables) timing.ModuleTimeRun {
		return timing.ModuleTimes(in, by)
	}))
	return timing.NewModuleTimeDocument(by, rows...), err
}

// Cost returns what recording itself cost.
func (r *Runs) Cost() (doc analyze.CostDocument, err error) {
	if err := r.Ingested(); err != nil {
		return doc, err
	}
	var rows []analyze.CostRun
	_, err = r.Each(analyze.CostTables, true, func(in schemas.Tables) error {
		rows = append(rows, analyze.Cost(in))
		return nil
	})
	return analyze.NewCostDocument(rows...), err
}

// Ladder returns each GPU's memory from NVML's value down to the categories. If there are several runs, those without
// allocator events are listed without GPUs.
func (r *Runs) Ladder() (ladder.Document, error) {
	many := len(r.Runs) > 1
	rows, err := rows(r, ladder.Tables, func(in schemas.Tables) (ladder.Run, error) {
		run, err := ladder.Of(in)
		if none := (*memory.NoEventsError)(nil); errors.As(err, &none) && many {
			err = nil
		}
		return run, err
	})
	return ladder.NewDocument(rows...), err
}

// Findings returns what is worth changing in each run.
func (r *Runs) Findings() (found findings.Found, err error) {
	r = leaveSuperseded(leaveTrials(r))
	rows, err := rows(r, findings.Tables, always(findings.CheckRun))
	if err != nil {
		return found, err
	}
	return findings.Find(rows, r.outlines(analyze.ComparisonTables, nil)), nil
}

// Overhead compares runs with the named baseline. Without a name it takes the baseline of the runs' suite, or else the
// default one.
func (s *Source) Overhead(names []string, baseline string) (study compare.Study, err error) {
	r, runs, err := s.Summaries(names, leaveTrials)
	if err != nil {
		return study, err
	}
	base, err := r.Baseline(baseline, runs)
	if err != nil {
		return study, err
	}
	base.noteRepeats(r, runs)
	r.lendEnergy(runs)
	study = base.Study(r, runs)
	switch {
	case study.Uncompared != nil:
		err = schemas.WithHint(fmt.Errorf("%s: an overhead of one over the other says nothing",
			report.OtherWork(study.Uncompared)),
			"name the run to compare with by --baseline")
	case study.Baseline == nil:
		err = schemas.WithHint(errors.New("no run to compare with: none ended well"), "name one with --baseline")
	case len(study.Runs) == 1 && study.Baseline.RunID == study.Runs[0].RunID:
		err = schemas.WithHint(errors.New("one run has nothing to be compared with"),
			"name a second run, or what to compare with by --baseline; dpsight runs lists the runs")
	}
	return study, err
}

// ofPhase reports whether a metric belongs to a phase.
func ofPhase(m compare.Metric) bool {
	return m.Name == compare.MetricPhase || m.Name == compare.MetricPhasePeak
}

// maybePair reports whether a comparison may be between two runs, so that all their values are needed. A bare run
// beside a fully recorded run does not count.
func (r *Runs) maybePair() bool {
	full, bare := 0, 0
	for _, run := range r.Runs {
		if run.Manifest.Bare {
			bare++
		} else {
			full++
		}
	}
	return full <= 2 || full+bare < store.LeastIndexed
}

// Compare returns a pivot over runs. baseline names what the cells are compared with: a run, or a row or column as
// NAME=VALUE.
func (s *Source) Compare(names []string, o compare.Options,
	baseline string) (doc compare.Document, err error) {
	r, runs, err := s.Kept(names, leaveTrials)
	if err != nil {
		return doc, err
	}
	if ofPhase(o.Value) || r.maybePair() {
		r.addPhases(runs)
	}
	if r.Suite != nil {
		o.Prefer = r.Suite.Baseline
	}
	var base Baseline
	if key, v, ok := strings.Cut(baseline, "="); ok {
		o.Match = map[string]string{key: v}
	} else if base, err = r.Baseline(baseline, runs); err != nil {
		return doc, err
	}
	o.Run = base.Summary
	o.Each = len(names) > 2 && !slices.ContainsFunc(r.Runs, func(run store.Run) bool { return !r.IsNamed(run) })
	sides := len(runs)
	if base.elsewhere != nil {
		sides++
	}
	if u := o.Value.Unit(); sides == 2 || u == compare.UnitMS || u == compare.UnitPerSecond { // else no time is shown
		base.noteRepeats(r, runs)
	}
	if doc, err = compare.Compare(runs, o); err != nil {
		return doc, schemas.WithHint(err, "dpsight runs lists the runs; dpsight compare --help has examples")
	}
	return doc, nil
}
