package selected

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/paper"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// Paper returns the model of a paper about the runs that a command names or, if it names none, about the
// configuration's runs.
func (s *Source) Paper(names []string, baseline string, c *paper.Config) (m paper.Model, err error) {
	if len(names) == 0 {
		names = c.Runs
	}
	if baseline == "" {
		baseline = c.Baseline
	}
	r, err := s.Select(names)
	if err != nil {
		return m, err
	}
	r = leaveSuperseded(r)
	tried := trials(r)
	r = leaveTrials(r)
	if err := r.Ingested(); err != nil {
		return m, err
	}
	read, runs, views, err := r.viewed(c.Steps == paper.AllSteps)
	if err != nil {
		return m, err
	}
	var searched []analyze.Summary
	if len(trials(r).Runs) == 0 && len(tried.Runs) > 0 { // otherwise the paper is about the trials themselves
		if _, searched, err = tried.summarize(); err != nil {
			return m, err
		}
	}
	m.Largest, m.Trend = exhibits.LargestOf(slices.Concat(runs, searched)), exhibits.RevisionsOf(runs)
	m.Accuracy = accuracies(runs)
	if len(m.Accuracy) > 0 {
		runs = withoutPredicted(runs)
	}
	base, err := read.Baseline(baseline, runs)
	if err != nil {
		return m, err
	}
	read.lendEnergy(runs)
	m.Study, m.Config, m.Names, m.Notes = base.Study(read, runs), c, names, slices.Concat(read.Gaps(), read.leftOut)
	for _, run := range read.Runs {
		m.Manifests = append(m.Manifests, run.Manifest)
	}
	m.Views, m.Warnings = views, report.StudyWarnings(&m.Study)
	return m, nil
}

// trials returns the runs that are trials of a search.
func trials(r *Runs) *Runs {
	return &Runs{r.Only(slices.DeleteFunc(slices.Clone(r.Runs), func(run store.Run) bool {
		return run.Manifest.Suite == nil || !run.Manifest.Suite.Search
	})), r.from, nil}
}

// viewed does what summarize does, and also returns, by run id, the views that figures of single runs need.
func (r *Runs) viewed(whole bool) (read *Runs, sums []analyze.Summary, views map[string]*exhibits.View, err error) {
	views = map[string]*exhibits.View{}
	read, err = r.Each(analyze.SummaryTables|exhibits.ViewTables, true, func(in schemas.Tables) error {
		ledgers := memory.NewLedgers(&in) // the summary and the view share the ledgers
		s := analyze.SummarizeWith(&in, ledgers)
		sums = append(sums, s)
		if s.BrokenDown() {
			views[s.RunID] = exhibits.ViewOf(&in, &s, ledgers, whole)
		}
		return nil
	})
	return read, sums, views, err
}

// accuracies returns the predictions among runs whose experiments were also measured, the largest error first.
func accuracies(runs []analyze.Summary) []predict.AccuracyExperiment {
	predicted := slices.DeleteFunc(slices.Clone(runs), func(s analyze.Summary) bool {
		return s.Source != schemas.Predicted
	})
	if len(predicted) == 0 {
		return nil
	}
	rows := predict.Accuracy(gate.BaselineOf(predicted, ""), runs, "").Experiments
	rows = slices.DeleteFunc(rows, func(e predict.AccuracyExperiment) bool {
		return e.Allocated.Error == nil || e.Allocated.Measured == nil || e.Allocated.Predicted == nil
	})
	slices.SortStableFunc(rows, func(a, b predict.AccuracyExperiment) int {
		return cmp.Compare(math.Abs(*b.Allocated.Error), math.Abs(*a.Allocated.Error))
	})
	return rows
}

// withoutPredicted removes predictions of experiments that were also measured, since they would count as separate
// experiments.
func withoutPredicted(runs []analyze.Summary) []analyze.Summary {
	measured := map[string]bool{}
	key := func(s *analyze.Summary) string { return s.Script + " " + identity.ParamsText(s.Params) }
	for i := range runs {
		measured[key(&runs[i])] = measured[key(&runs[i])] || runs[i].Source == schemas.Measured
	}
	return slices.DeleteFunc(runs, func(s analyze.Summary) bool {
		return s.Source == schemas.Predicted && measured[key(&s)]
	})
}
