package main

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// outlines are the other runs of the stores that the selected ones lie in: all, or those that are wanted. One that
// cannot be read is none to compare with.
func outlines(sel *store.Selection, tables store.Want, wanted func(*schemas.Manifest) bool) []analyze.Summary {
	seen, dirs := map[string]bool{}, map[string]bool{}
	for _, r := range sel.Runs {
		seen[r.Dir], dirs[filepath.Dir(r.Dir)] = true, true
	}
	var out []analyze.Summary
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		all, err := store.Open(dir).All()
		if err != nil {
			continue
		}
		for _, r := range all.Runs {
			if seen[r.Dir] || wanted != nil && !wanted(r.Manifest) {
				continue
			}
			if in, err := load(r, tables, true); err == nil {
				out = append(out, analyze.Outline(in))
			}
		}
	}
	return out
}

// manifests are those of all runs in the stores that the selected ones lie in.
func manifests(sel *store.Selection) []*schemas.Manifest {
	dirs := map[string]bool{}
	for _, r := range sel.Runs {
		dirs[filepath.Dir(r.Dir)] = true
	}
	var out []*schemas.Manifest
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if runs, _, err := store.Open(dir).Runs(); err == nil {
			for _, r := range runs {
				out = append(out, r.Manifest)
			}
		}
	}
	return out
}

// noteRepeats says of selected runs that their stores have more repeats of them. Those have the same name, so that the
// tables of no other run need be read.
func noteRepeats(sel *store.Selection, runs []*analyze.Summary) {
	analyze.NoteRepeats(runs, repeatsOf(sel, runs...))
}

// repeatsOf are the other runs of those names in the stores that the selected ones lie in.
func repeatsOf(sel *store.Selection, runs ...*analyze.Summary) []analyze.Summary {
	names := map[string]bool{}
	for _, r := range runs {
		names[r.Name] = true
	}
	return outlines(sel, store.WantTimes, func(m *schemas.Manifest) bool { return names[m.Name] })
}

// lendEnergy gives selected runs without energy that of a bare run in their stores: what a figure says must not depend
// on whether the bare run was named too.
func lendEnergy(sel *store.Selection, runs []analyze.Summary) {
	if slices.ContainsFunc(runs, func(r analyze.Summary) bool { return r.NoEnergy != "" && !r.Bare() }) {
		bare := func(m *schemas.Manifest) bool { return m.Bare && m.Source == schemas.Measured }
		analyze.LendEnergy(runs, outlines(sel, store.WantTimes|store.WantSamples, bare))
	}
}

// noteRepeatsBeside is noteRepeats of runs and of the baseline that they are set beside, if that lies elsewhere.
func noteRepeatsBeside(sel *store.Selection, runs []analyze.Summary, base *analyze.Summary, elsewhere *store.Run) {
	taken := *sel
	var noted []*analyze.Summary
	for i := range runs {
		noted = append(noted, &runs[i])
	}
	if elsewhere != nil {
		taken.Runs, noted = append(slices.Clip(sel.Runs), *elsewhere), append(noted, base)
	}
	noteRepeats(&taken, noted)
}
