package main

import (
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// outlines reduces the other runs in the stores of the selected ones. One that cannot be read is none to compare with.
func outlines(sel *store.Selection, want store.Want, wanted func(*schemas.Manifest) bool) []analyze.Summary {
	var out []analyze.Summary
	for _, r := range sel.Others(wanted) {
		if t, err := store.LoadOrManifest(r, want); err == nil {
			out = append(out, analyze.Outline(analyze.Input(*t)))
		}
	}
	return out
}

// repeatsOf are the other runs of the same names in the stores of the selected ones. Repeats have the same name, so the tables of
// no other run need be read.
func repeatsOf(sel *store.Selection, runs ...*analyze.Summary) []analyze.Summary {
	names := map[string]bool{}
	for _, r := range runs {
		names[r.Name] = true
	}
	return outlines(sel, store.WantTimes, func(m *schemas.Manifest) bool { return names[m.Name] })
}

// lendEnergy gives selected runs without energy that of a bare run in their stores: what a figure says must not depend on
// whether the bare run was named too.
func lendEnergy(sel *store.Selection, runs []analyze.Summary) {
	if slices.ContainsFunc(runs, func(r analyze.Summary) bool { return r.NoEnergy != "" && !r.Bare() }) {
		bare := func(m *schemas.Manifest) bool { return m.Bare && m.Source == schemas.Measured }
		analyze.LendEnergy(runs, outlines(sel, store.WantTimes|store.WantSamples, bare))
	}
}

// A baseline is the run that --baseline names; its summary is nil where none is named.
type baseline struct {
	*analyze.Summary
	elsewhere *store.Run // nil where it is one of the selected runs
}

// namedBaseline finds the run of a name among the selected runs, or loads it.
func namedBaseline(s *streams, dir string, sel *store.Selection, runs []analyze.Summary, name string) (b baseline, err error) {
	if name == "" {
		return b, nil
	}
	one, err := s.selected(store.Open(dir).ResolveOne(name, sel))
	if err != nil {
		return b, err
	}
	run := one.Runs[0]
	for i := range runs {
		if runs[i].RunID == run.ID {
			return baseline{&runs[i], nil}, nil
		}
	}
	in, err := load(run, store.WantAll)
	if err != nil {
		return b, err
	}
	sum := analyze.Summarize(in)
	return baseline{&sum, &run}, nil
}

// noteRepeats says of the runs and of the baseline that their stores have more repeats of them.
func (b baseline) noteRepeats(sel *store.Selection, runs []analyze.Summary) {
	taken := *sel
	var noted []*analyze.Summary
	for i := range runs {
		noted = append(noted, &runs[i])
	}
	if b.elsewhere != nil {
		taken.Runs, noted = append(slices.Clip(sel.Runs), *b.elsewhere), append(noted, b.Summary)
	}
	analyze.NoteRepeats(noted, repeatsOf(&taken, noted...))
}

// study compares the runs with the baseline. Without one it is that of their suite, or the default.
func (b baseline) study(sel *store.Selection, runs []analyze.Summary) analyze.Study {
	switch {
	case b.Summary != nil:
		return analyze.NewStudy(runs, b.Summary)
	case sel.Suite == nil:
		return analyze.NewMatchedStudy(runs, nil, "")
	}
	return analyze.NewMatchedStudy(runs, sel.Suite.Baseline, sel.Suite.ID)
}
