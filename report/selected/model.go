package selected

import (
	"io"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/schemas"
)

// Report returns the model of a report on the runs that a command names.
func (s *Source) Report(names []string, baseline string) (m report.Model, err error) {
	r, err := s.Select(names)
	if err != nil {
		return m, err
	}
	r = leaveSuperseded(leaveTrials(r))
	if err := r.Ingested(); err != nil {
		return m, err
	}
	return r.Model(baseline)
}

// Model returns the model of a report on the runs. The model compares the runs with the named baseline, if any, and has
// the ladder of each GPU that NVML sampled.
func (r *Runs) Model(baseline string) (report.Model, error) {
	var runs []analyze.Summary
	ladders := map[string]ladder.Run{}
	add := func(run analyze.Summary) {
		if len(runs) >= mostTimelines {
			run.Timeline = nil
		}
		runs = append(runs, run)
	}
	read, err := r.Each(analyze.SummaryTables|ladder.Tables, true, func(in schemas.Tables) error {
		if len(in.Samples) == 0 {
			add(analyze.Summarize(in))
			return nil
		}
		run, ladder, err := analyze.SummarizeWithLadder(in)
		add(run)
		ladders[in.Manifest.RunID] = ladder
		return withoutEvents(err, true)
	})
	if err != nil {
		return report.Model{}, err
	}
	base, err := read.Baseline(baseline, runs)
	if err != nil {
		return report.Model{}, err
	}
	read.lendEnergy(runs)
	m := report.NewModel(read.Selection, read.leftOut)
	m.Study, m.Ladders = base.Study(read, runs), ladders
	if err := read.addTimelines(&m); err != nil {
		return report.Model{}, err
	}
	m.Page = func(w io.Writer) error {
		b, err := read.page(m.Title, m.Study)
		if err != nil {
			return err
		}
		return b.Write(w, page.MostBytes)
	}
	return m, nil
}

// mostTimelines is the most runs whose timelines are kept in memory while a report reads all runs. A run's timeline
// takes about a megabyte.
const mostTimelines = 32

// addTimelines reads the timelines that the report draws and that were not kept.
func (r *Runs) addTimelines(m *report.Model) error {
	lacking := map[string]*compare.Cell{}
	for _, i := range m.Timed() {
		if c := &m.Study.Cells[i]; c.Timeline == nil {
			lacking[c.RunID] = c
		}
	}
	for _, run := range r.Runs {
		c := lacking[run.ID]
		if c == nil {
			continue
		}
		t, err := Read(run, analyze.SummaryTables)
		if err != nil {
			return err
		}
		c.Timeline = analyze.Summarize(t).Timeline
	}
	return nil
}
