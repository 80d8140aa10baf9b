package report

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// ExplainTables returns tables that explain how the peaks and steps of two runs differ, with sentences as notes. Under
// each category the tables list the top modules with the largest differences; the other modules share one row, and
// small ones are left out. If top is 0, all modules are listed. The difference of the peaks is also split by the phase
// in which blocks were allocated and, if both runs have stacks, by stack. If modules of both runs were timed, the
// difference of the steps is split by module.
func ExplainTables(doc explain.Explanation, top int) []table.Table {
	var tables []table.Table
	if doc.PeakDeltaBytes != nil {
		tables = append(tables, peakWaterfall(&doc, top))
		if len(doc.MemoryPhases) > 0 {
			tables = append(tables, birthWaterfall(&doc))
		}
		if len(doc.Stacks) > 0 {
			tables = append(tables, stackWaterfall(&doc, top))
		}
	}
	if doc.StepDeltaMS != nil {
		tables = append(tables, stepWaterfall(&doc))
		if doc.ModuleResidueMS != nil {
			tables = append(tables, moduleStepWaterfall(&doc, top))
		}
	}
	last := &tables[len(tables)-1]
	for i := range doc.Runs {
		r := &doc.Runs[i]
		if c := r.Conservation; c != nil && c.Verdict != schemas.Exact {
			last.Notes = append(last.Notes, r.Label+": "+conservation(&memory.DeviceBreakdown{Conservation: *c}))
		}
	}
	last.Notes = append(last.Notes, explainWarnings(&doc)...)
	all := ofExplained(&doc).notes()
	words := NewExplainDocument(doc)
	for i := range tables {
		tables[i].Notes = append(slices.Clone(all), tables[i].Notes...)
		tables[i].Document = words
	}
	return tables
}

// ofExplained returns the badge that both runs share.
func ofExplained(doc *explain.Explanation) common {
	return of(len(doc.Runs), func(i int) *identity.Identity { return &doc.Runs[i].Identity })
}

// sides returns the titles of the two runs' columns.
func sides(doc *explain.Explanation) (from, to string) {
	a, b, all := &doc.Runs[0], &doc.Runs[1], ofExplained(doc)
	return all.badged(a.Label, &a.Identity), all.badged(b.Label, &b.Identity)
}

func peakWaterfall(doc *explain.Explanation, top int) table.Table {
	from, to := sides(doc)
	t := table.Table{Title: "Why the peak of " + to + " differs from that of " + from + " (MiB)",
		Columns: []table.Column{
			{Key: "row", For: table.Programs},
			{Title: "Category", Key: "category"},
			{Title: "Module", Key: "module"},
			{Title: "Modules", Key: "modules", For: table.Programs},
			{Title: from, Key: "from_bytes", Right: true},
			{Title: to, Key: "to_bytes", Right: true},
			{Title: "Δ", Key: "delta_bytes", Right: true},
			{Title: "% of Δ", Key: "percent", Right: true},
		}}
	largest := largestDelta(doc)
	row := func(kind string, category, module, modules table.Cell, a, b, delta int64) {
		t.Rows = append(t.Rows, []table.Cell{table.Text(kind), category, module, modules, table.Bytes(a),
			table.Bytes(b), table.DeltaBytes(delta),
			shareOfPeak(doc, delta, largest)})
	}
	whole := table.Cell{} // a category's own row has no module
	same, small := false, false
	least := (largest + 999) / 1000 // the difference from which on a module has its own row
	for i := range doc.Categories {
		c := &doc.Categories[i]
		changed := changedModules(c)
		if c.DeltaBytes == 0 && len(changed) == 0 {
			same = true
			continue
		}
		row("category", table.Text(c.Category), whole, table.Absent(), c.FromBytes, c.ToBytes, c.DeltaBytes)
		if top > 0 && len(changed) > 0 && magnitude(changed[0].DeltaBytes) < least {
			small = true
			continue
		}
		if top > 0 && len(c.Modules) == 1 && c.Modules[0].Module == nil {
			continue // a row for unknown modules alone would repeat the total
		}
		under := table.Cell{Value: c.Category} // people see the category in the row above
		shown, rest, left := topModules(changed, top, least)
		for _, m := range shown {
			name := table.Cell{Text: m.Title()}
			if m.Module != nil {
				name.Value = *m.Module
			}
			row("module", under, name, table.Count(int64(m.Modules)), m.FromBytes, m.ToBytes, m.DeltaBytes)
		}
		if left > 0 {
			row("others", under, table.Cell{Text: others(left)}, table.Count(int64(rest.Modules)), rest.FromBytes,
				rest.ToBytes, rest.DeltaBytes)
		}
	}
	row("total", table.Text("peak allocated"), whole, table.Absent(), *doc.Runs[0].PeakBytes, *doc.Runs[1].PeakBytes,
		*doc.PeakDeltaBytes)
	tellBounded(&t, &doc.Runs[0].Identity, &doc.Runs[1].Identity, "from", "to")
	t.Notes = append(t.Notes, peakSentences(doc)...)
	if same {
		t.Notes = append(t.Notes, "left out categories that are equal in both")
	}
	if small {
		t.Notes = append(t.Notes, "left out modules of categories with only small differences")
	}
	return t
}

// shareOfPeak returns a part's share of the difference of the peaks. The share is absent if the difference of the peaks
// is negligible beside the largest part.
func shareOfPeak(doc *explain.Explanation, delta, largest int64) table.Cell {
	if largest > 10*magnitude(*doc.PeakDeltaBytes) {
		return table.Absent()
	}
	return percent(delta, *doc.PeakDeltaBytes)
}

// birthWaterfall has a row for each phase in which blocks of one of the two peaks were allocated.
func birthWaterfall(doc *explain.Explanation) table.Table {
	from, to := sides(doc)
	t := table.Table{Title: "By the phase that the blocks were born in (MiB)",
		Columns: []table.Column{{Key: "row", For: table.Programs}, {Title: "Phase", Key: "phase"},
			{Title: from, Key: "from_bytes", Right: true}, {Title: to, Key: "to_bytes", Right: true},
			{Title: "Δ", Key: "delta_bytes", Right: true}, {Title: "% of Δ", Key: "percent", Right: true}}}
	largest := magnitude(*doc.PeakDeltaBytes)
	for i := range doc.MemoryPhases {
		largest = max(largest, magnitude(doc.MemoryPhases[i].DeltaBytes))
	}
	row := func(kind string, phase table.Cell, a, b, delta int64) {
		t.Rows = append(t.Rows, []table.Cell{table.Text(kind), phase, table.Bytes(a), table.Bytes(b),
			table.DeltaBytes(delta), shareOfPeak(doc, delta, largest)})
	}
	for i := range doc.MemoryPhases {
		p := &doc.MemoryPhases[i]
		phase := table.Absent()
		if p.Phase != nil {
			phase = table.Text(*p.Phase)
		}
		row("phase", phase, p.FromBytes, p.ToBytes, p.DeltaBytes)
	}
	row("total", table.Text("peak allocated"), *doc.Runs[0].PeakBytes, *doc.Runs[1].PeakBytes, *doc.PeakDeltaBytes)
	tellBounded(&t, &doc.Runs[0].Identity, &doc.Runs[1].Identity, "from", "to")
	t.Notes = append(t.Notes, "phases: where the blocks alive at the peak were allocated, in any step; "+
		"–: unknown")
	return t
}

// largestDelta returns the largest absolute difference, of the peaks or of a category.
func largestDelta(doc *explain.Explanation) int64 {
	largest := magnitude(*doc.PeakDeltaBytes)
	for i := range doc.Categories {
		largest = max(largest, magnitude(doc.Categories[i].DeltaBytes))
	}
	return largest
}

func magnitude(n int64) int64 { return max(n, -n) }

// changedModules returns a category's modules whose bytes differ, the largest difference first.
func changedModules(c *explain.CategoryPart) []*explain.ModulePart {
	var out []*explain.ModulePart
	for i := range c.Modules {
		if c.Modules[i].DeltaBytes != 0 {
			out = append(out, &c.Modules[i])
		}
	}
	return out
}

// topModules returns the first top modules of a category that differ by at least least bytes, and the sum of the other
// modules. top 0 means all modules.
func topModules(changed []*explain.ModulePart, top int, least int64) (shown []*explain.ModulePart,
	rest explain.ModulePart, left int) {
	shown, others := heaviest(changed, top, func(m *explain.ModulePart) bool {
		return magnitude(m.DeltaBytes) >= least
	})
	for _, m := range others {
		rest.FromBytes, rest.ToBytes, rest.DeltaBytes = rest.FromBytes+m.FromBytes, rest.ToBytes+m.ToBytes,
			rest.DeltaBytes+m.DeltaBytes
		rest.Modules += m.Modules
	}
	return shown, rest, len(others)
}

const residueNote = "residue of medians: the median of steps less the medians of their phases, whose sum it need not be"

func stepWaterfall(doc *explain.Explanation) table.Table {
	from, to := sides(doc)
	t := table.Table{Title: "Why the step of " + to + " differs from that of " + from + " (ms a step)",
		Columns: []table.Column{
			{Key: "row", For: table.Programs},
			{Title: "Phase", Key: "phase"},
			{Title: from, Key: "from_ms", Right: true},
			{Title: to, Key: "to_ms", Right: true},
			{Title: "Δ", Key: "delta_ms", Right: true},
			{Title: "% of Δ", Key: "percent", Right: true},
		}}
	row := func(kind, phase string, a, b, delta *float64) {
		share := table.Absent()
		if delta != nil && *doc.StepDeltaMS != 0 {
			share = table.Number(100**delta / *doc.StepDeltaMS, 1)
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(kind), table.Text(phase), table.Optional(a, table.Milliseconds),
			table.Optional(b, table.Milliseconds),
			table.Optional(delta, table.DeltaMilliseconds), share})
	}
	for i := range doc.Phases {
		p := &doc.Phases[i]
		row("phase", p.Phase, p.FromMS, p.ToMS, p.DeltaMS)
	}
	if doc.PhaseResidueMS != nil {
		row("residue", "residue of medians", nil, nil, doc.PhaseResidueMS)
	}
	row("total", "step", &doc.Runs[0].StepMS.Median, &doc.Runs[1].StepMS.Median, doc.StepDeltaMS)
	t.Notes = append(t.Notes, stepSentences(doc)...)
	if doc.PhaseResidueMS != nil {
		t.Notes = append(t.Notes, residueNote)
	}
	return t
}
