package main

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/store"
)

type findingsCmd struct{ analysis }

func (findingsCmd) Help() string {
	return `Observations with the figures that they stand on: what to change, and what it would save. docs/findings.md has each with
its threshold. Repeats and other methods are looked for in the runs' whole store, whichever runs are named.

Examples:
  dpsight analyze findings ghost
  dpsight analyze findings --store examples/headline --format markdown
  dpsight analyze findings ghost --format json`
}

func (c *findingsCmd) Run(s *streams) error {
	sel, err := selectRuns(s.err, c.Store, c.Names)
	if err != nil {
		return err
	}
	var inspected []analyze.Inspection
	err = each(s, sel, c.Names, store.WantAll|store.WantDetail, len(sel.Runs) > 1, func(in analyze.Input) error {
		inspected = append(inspected, analyze.Inspect(in))
		return nil
	})
	if err != nil {
		return err
	}
	return table.Write(s.out, c.Format, report.FindingsTables(analyze.Findings(inspected, outlines(sel)))...)
}

// outlines are the other runs of the stores that the selected ones lie in. One that cannot be read is none to compare with.
func outlines(sel *store.Selection) []analyze.Summary {
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
			if seen[r.Dir] {
				continue
			}
			if in, err := load(r, store.WantTimes, true); err == nil {
				out = append(out, analyze.Outline(in))
			}
		}
	}
	return out
}
