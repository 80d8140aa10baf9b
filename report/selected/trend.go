package selected

import (
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/trend"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// Trend follows each experiment over the revisions or the days of its runs. A name stands for all runs with that name,
// and no name for the whole store. Where a value changes from one revision to the next, Trend reads the tables of the
// runs before and after, to find the modules whose bytes changed. If these tables cannot be read, the modules are
// unknown.
func (s *Source) Trend(names []string, along string, value compare.Metric) (doc trend.Document, err error) {
	over, err := trend.ParseOver(along)
	if err != nil {
		return doc, schemas.WithHint(err, "as in --over revision")
	}
	r, err := s.SelectEach(names)
	if err != nil {
		return doc, err
	}
	r.Runs = store.Asked(r.Runs)
	r = leaveSuperseded(leaveTrials(r))
	if err := r.Ingested(); err != nil {
		return doc, err
	}
	r, runs, err := r.kept()
	if err != nil {
		return doc, err
	}
	if value.Timed() || ofPhase(value) {
		r.addPhases(runs)
	}
	if doc, err = trend.Of(runs, over, value); err != nil {
		return doc, schemas.WithHint(err, "dpsight runs --columns name,revision,date,peak,step lists what the runs have")
	}
	folders := map[string]store.Run{}
	for _, run := range r.Runs {
		folders[run.ID] = run
	}
	for i := range doc.Experiments {
		for k := range doc.Experiments[i].Steps {
			step := &doc.Experiments[i].Steps[k]
			category := step.Attributed(value)
			if category == "" {
				continue
			}
			was, err := Read(folders[step.Runs[0].RunID], trend.ModuleTables)
			if err != nil {
				continue
			}
			if is, err := Read(folders[step.Runs[1].RunID], trend.ModuleTables); err == nil {
				step.Attribute(category, &was, &is)
			}
		}
	}
	return doc, nil
}
