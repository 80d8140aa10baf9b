package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report/table"
)

// maxTimeColumns is the number of phases that have a column. Shorter phases share one column.
const maxTimeColumns = 6

// ModuleTimeTables returns a table for each run and rank. Each table carries the whole document.
func ModuleTimeTables(doc timing.ModuleTimeDocument) []table.Table {
	doc = tellModuleTimes(doc)
	var tables []table.Table
	for i := range doc.Runs {
		r := &doc.Runs[i]
		for k := range r.Ranks {
			tables = append(tables, moduleTimeTable(&doc, r, &r.Ranks[k]))
		}
		switch {
		case len(r.Ranks) > 0:
		// If times are missing, the reason replaces empty columns, and notes on the figures would be irrelevant.
		case len(r.Warnings) > 0:
			tables = append(tables, table.Table{Title: timeTitle(&doc, r, ""), Notes: slices.Clone(r.Warnings)})
		default:
			tables = append(tables, table.Table{Title: timeTitle(&doc, r, ""), Columns: timeColumns(&doc, nil, false),
				Notes: sourceNotes(&r.Identity)})
		}
	}
	if len(tables) == 0 {
		tables = append(tables, table.Table{Title: "GPU time by " + string(doc.By), Columns: timeColumns(&doc, nil,
			false)})
	}
	for i := range tables {
		tables[i].Document = doc
	}
	return tables
}

// ModuleTimeRecords returns the module times for programs: one row for each run, rank, module or family of modules, and
// phase.
func ModuleTimeRecords(doc timing.ModuleTimeDocument) table.Table {
	doc = tellModuleTimes(doc)
	t := table.Table{Columns: append(slices.Clone(machineColumns), table.Column{Key: "row"},
		table.Column{Key: string(doc.By)}, table.Column{Key: "modules"},
		table.Column{Key: "phase"}, table.Column{Key: "ms"}), Document: doc}
	for i := range doc.Runs {
		r := &doc.Runs[i]
		for k := range r.Ranks {
			d := &r.Ranks[k]
			add := func(kind string, key, modules, phase table.Cell, ms float64) {
				t.Rows = append(t.Rows, append(machineCells(&r.Identity, table.Absent(), table.Count(int64(d.Rank))),
					table.Text(kind), key, modules, phase, table.Milliseconds(ms)))
			}
			for n := range d.Rows {
				w := &d.Rows[n]
				for _, p := range d.Phases {
					if ms, ok := w.Phases[p.Phase]; ok {
						add("module", timeKey(w, false), table.Count(int64(w.Modules)), table.Text(p.Phase), ms)
					}
				}
			}
			for _, p := range d.Phases {
				add("outside", table.Absent(), table.Absent(), table.Text(p.Phase), p.OutsideMS)
			}
			if d.ResidueMS != nil {
				add("residue", table.Absent(), table.Absent(), table.Absent(), *d.ResidueMS)
			}
		}
	}
	return t
}

func timeKey(r *timing.ModuleTimeRow, counted bool) table.Cell {
	return keyCell(&grouping.ByRow{Key: r.Key, Others: r.Others, Modules: r.Modules}, counted)
}

func timeTitle(doc *timing.ModuleTimeDocument, r *timing.ModuleTimeRun, rank string) string {
	return fmt.Sprintf("GPU time of %s%s by %s (ms a step)", identified(&r.Identity), rank, doc.By)
}

func timeColumns(doc *timing.ModuleTimeDocument, phases []string, hooks bool) []table.Column {
	by := string(doc.By)
	columns := []table.Column{{Title: strings.ToUpper(by[:1]) + by[1:], Key: by}, {Title: "ms", Key: "ms", Right: true},
		{Title: "%", Key: "percent", Right: true}}
	for _, p := range phases {
		columns = append(columns, table.Column{Title: p, Key: p, Right: true})
	}
	if hooks {
		columns = append(columns, table.Column{Title: "In DP hooks", Key: "hook_ms", Right: true})
	}
	return columns
}

func moduleTimeTable(doc *timing.ModuleTimeDocument, r *timing.ModuleTimeRun, d *timing.RankModuleTime) table.Table {
	columns, merged := timePhases(d)
	titles := slices.Clone(columns)
	if len(merged) > 0 {
		titles = append(titles, "other phases")
	}
	hooks := slices.ContainsFunc(d.Rows, func(r timing.ModuleTimeRow) bool { return r.HookMS > 0 })
	t := table.Table{Title: timeTitle(doc, r, rank(d.Rank)), Columns: timeColumns(doc, titles, hooks)}
	row := func(name table.Cell, ms float64, phase func(string) (float64, bool), hook *float64) {
		cells := []table.Cell{name, table.Milliseconds(ms), table.Absent()}
		if d.StepMS != nil && *d.StepMS > 0 {
			cells[2] = table.Number(100*ms / *d.StepMS, 1)
		}
		part := func(names []string) table.Cell {
			sum, any := 0.0, false
			for _, p := range names {
				v, ok := phase(p)
				sum, any = sum+v, any || ok
			}
			if !any {
				return table.Absent()
			}
			return table.Milliseconds(sum)
		}
		for _, p := range columns {
			cells = append(cells, part([]string{p}))
		}
		if len(merged) > 0 {
			cells = append(cells, part(merged))
		}
		if hooks {
			cells = append(cells, table.Optional(hook, table.Milliseconds))
		}
		t.Rows = append(t.Rows, cells)
	}
	for i := range d.Rows {
		w := &d.Rows[i]
		hook := &w.HookMS
		if *hook == 0 {
			hook = nil
		}
		row(timeKey(w, true), w.MS, func(p string) (float64, bool) { ms, ok := w.Phases[p]; return ms, ok }, hook)
	}
	outside, bare := map[string]float64{}, map[string]*float64{}
	for _, p := range d.Phases {
		outside[p.Phase], bare[p.Phase] = p.OutsideMS, p.BareMS
	}
	row(table.Text("in no module"), d.OutsideMS, func(p string) (float64, bool) {
		return outside[p], outside[p] > 0
	}, nil)
	none := func(string) (float64, bool) { return 0, false }
	if d.ResidueMS != nil {
		row(table.Text("residue"), *d.ResidueMS, none, nil)
	}
	if d.StepMS != nil {
		row(table.Text("step"), *d.StepMS, func(p string) (float64, bool) {
			if bare[p] == nil {
				return 0, false
			}
			return *bare[p], true
		}, nil)
	}
	t.Notes = append(t.Notes, timeNotes(d)...)
	t.Notes = append(t.Notes, r.Warnings...)
	t.Notes = append(t.Notes, runSources(&r.Identity)...)
	return t
}

// timePhases returns the phases with a column of their own, and the shorter phases that share one.
func timePhases(d *timing.RankModuleTime) (columns, merged []string) {
	scaled := func(p timing.ModuleTimePhase) float64 { return p.InstrumentedMS * p.Scale }
	longest := slices.Clone(d.Phases)
	slices.SortStableFunc(longest, func(a, b timing.ModuleTimePhase) int { return cmp.Compare(scaled(b), scaled(a)) })
	own := map[string]bool{}
	for i, p := range longest {
		own[p.Phase] = i < maxTimeColumns || len(longest) == maxTimeColumns+1
	}
	for _, p := range d.Phases {
		if own[p.Phase] {
			columns = append(columns, p.Phase)
		} else {
			merged = append(merged, p.Phase)
		}
	}
	return columns, merged
}

// ownTimeNote says which part of a call is a module's own time.
const ownTimeNote = "a module's time is its own work, without the modules that it calls; backward counts for the " +
	"module whose backward runs"

func timeNotes(d *timing.RankModuleTime) []string {
	notes := []string{ownTimeNote}
	if d.InstrumentedStepMS != nil && d.StepMS != nil && d.BareSteps > 0 {
		notes = append(notes, sharesNote(d.InstrumentedSteps, *d.InstrumentedStepMS, bareSteps(d.BareSteps), *d.StepMS))
	}
	if d.ResidueMS != nil {
		notes = append(notes, "residue: the median of the steps minus the sum of the phases' medians")
	}
	return notes
}

// sharesNote says from which steps the times of modules come, and to which step time they are scaled.
func sharesNote(instrumented int, instrumentedMS float64, in string, bareMS float64) string {
	return fmt.Sprintf("shares come from %d instrumented steps of %s ms; each phase is scaled to its median %s, of "+
		"%s ms",
		instrumented, table.Milliseconds(instrumentedMS).Text, in, table.Milliseconds(bareMS).Text)
}

func bareSteps(n int) string { return fmt.Sprintf("in %d bare steps", n) }
