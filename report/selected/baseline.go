package selected

import (
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// outlines reduces those runs to summaries that are not selected, but lie in the stores of the selected runs and of
// also. A run that cannot be read is left out.
func (r *Runs) outlines(want schemas.Want, wanted func(*schemas.Manifest) bool, also ...store.Run) []analyze.Summary {
	var out []analyze.Summary
	for _, other := range r.Others(wanted, also...) {
		if t, err := store.LoadOrManifest(other, want); err == nil {
			out = append(out, analyze.SummarizeForComparison(withConfidence(t)))
		}
	}
	return out
}

// repeats returns the unselected runs with the same names as runs, from the stores of the selected runs and of also.
// Repeats have the same name, so the tables of runs with other names need not be read.
func (r *Runs) repeats(runs []*analyze.Summary, also ...store.Run) []analyze.Summary {
	names := map[string]bool{}
	for _, s := range runs {
		names[s.Name] = true
	}
	return r.outlines(analyze.ComparisonTables, func(m *schemas.Manifest) bool { return names[m.Name] },
		also...)
}

// lendEnergy gives selected runs without energy the energy of a bare run of the same experiment in their stores. A
// figure must not depend on whether the user selected the bare run too.
func (r *Runs) lendEnergy(runs []analyze.Summary) {
	if slices.ContainsFunc(runs, func(s analyze.Summary) bool { return s.NoEnergy != "" && !s.Bare() }) {
		bare := func(m *schemas.Manifest) bool { return m.Bare && m.Source == schemas.Measured }
		compare.LendEnergy(runs, r.outlines(analyze.EnergyTables, bare))
	}
}

// A Baseline is the run that --baseline names. The summary is nil if no run is named.
type Baseline struct {
	*analyze.Summary
	elsewhere *store.Run // nil if the baseline is one of the selected runs
}

// Baseline returns the run with a name from the runs, or loads it from the store.
func (r *Runs) Baseline(name string, runs []analyze.Summary) (b Baseline, err error) {
	if name == "" {
		return b, nil
	}
	from := *r.from
	from.Where = ""
	one, err := from.announce(store.OpenIndexed(r.from.Store).ResolveOne(name, r.Selection))
	if err != nil {
		return b, err
	}
	run := one.Runs[0]
	for i := range runs {
		if runs[i].RunID == run.ID {
			return Baseline{&runs[i], nil}, nil
		}
	}
	in, err := Read(run, analyze.SummaryTables)
	if err != nil {
		return b, err
	}
	sum := analyze.Summarize(in)
	return Baseline{&sum, &run}, nil
}

// noteRepeats notes that the stores have more repeats of the runs, or of the baseline, than were selected.
func (b Baseline) noteRepeats(r *Runs, runs []analyze.Summary) {
	var noted []*analyze.Summary
	var also []store.Run
	for i := range runs {
		noted = append(noted, &runs[i])
	}
	if b.elsewhere != nil {
		noted, also = append(noted, b.Summary), append(also, *b.elsewhere)
	}
	explain.NoteRepeats(explain.OtherRepeats(noted, r.repeats(noted, also...)))
}

// Study compares the runs with the baseline. If no baseline was named, it takes the baseline of the runs' suite, or
// else the default one.
func (b Baseline) Study(r *Runs, runs []analyze.Summary) compare.Study {
	switch {
	case b.Summary != nil:
		return compare.NewStudy(runs, b.Summary)
	case r.Suite == nil:
		return compare.NewMatchedStudy(runs, nil, "")
	}
	return compare.NewMatchedStudy(runs, r.Suite.Baseline, r.Suite.ID)
}
