package report

import (
	"fmt"
	"math"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/units"
)

// moduleStepWaterfall has a row for each module whose time differs, and below it rows for its phases. Only the top
// largest differences have their own rows, and small ones and the rest share one row. top 0 means that all have a row.
func moduleStepWaterfall(doc *explain.Explanation, top int) table.Table {
	from, to := sides(doc)
	t := table.Table{Title: "In which modules the step of " + to + " differs from that of " + from + " (ms a step)",
		Columns: []table.Column{{Key: "row", For: table.Programs},
			{Title: "Module", Key: "module"}, {Title: "Modules", Key: "modules", For: table.Programs},
			{Title: "Phase", Key: "phase"},
			{Title: from, Key: "from_ms", Right: true}, {Title: to, Key: "to_ms", Right: true},
			{Title: "Δ", Key: "delta_ms", Right: true}, {Title: "% of Δ", Key: "percent", Right: true}}}
	largest := largestModuleDelta(doc)
	row := func(kind string, module, modules, phase table.Cell, a, b *float64, delta float64) {
		share := table.Absent() // the total is negligible beside its parts
		if largest <= 10*math.Abs(*doc.StepDeltaMS) && *doc.StepDeltaMS != 0 {
			share = table.Number(100*delta / *doc.StepDeltaMS, 1)
		}
		difference := table.DeltaMilliseconds(delta)
		if nanoseconds(delta) == 0 { // rounding errors of summed floats must not show as a signed zero
			difference.Text = table.Milliseconds(0).Text
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(kind), module, modules, phase,
			table.Optional(a, table.Milliseconds), table.Optional(b, table.Milliseconds),
			difference, share})
	}
	whole := table.Cell{} // a module's own row has no phase
	least := largest / 1000
	phases := func(kind string, module table.Cell, list []explain.PhasePart) {
		shown, rest, left := topPhases(list, top, least)
		for _, p := range shown {
			row(kind, module, table.Absent(), table.Text(p.Phase), p.FromMS, p.ToMS, *p.DeltaMS)
		}
		if left > 0 {
			row(kind, module, table.Absent(), table.Cell{Text: others(left)}, rest.FromMS, rest.ToMS, rest.DeltaMS)
		}
	}
	shown, rest, left := topModuleTimes(doc.ModuleTimes, top, least)
	for _, m := range shown {
		name := table.Cell{Text: m.Title()}
		if m.Module != nil {
			name.Value = *m.Module
		}
		row("module", name, table.Count(int64(m.Modules)), whole, m.FromMS, m.ToMS, m.DeltaMS)
		phases("phase", table.Cell{Value: name.Value}, m.Phases) // people see the module in the row above
	}
	if left > 0 {
		row("others", table.Cell{Text: others(left)}, table.Count(int64(rest.Modules)), whole, rest.FromMS, rest.ToMS,
			rest.DeltaMS)
	}
	outside := doc.OutsideModules
	row("outside", table.Text("in no module"), table.Absent(), whole, outside.FromMS, outside.ToMS, outside.DeltaMS)
	phases("outside phase", table.Cell{Value: "in no module"}, outside.Phases)
	row("residue", table.Text("residue"), table.Absent(), whole, nil, nil, *doc.ModuleResidueMS)
	row("total", table.Text("step"), table.Absent(), whole, &doc.Runs[0].StepMS.Median, &doc.Runs[1].StepMS.Median,
		*doc.StepDeltaMS)
	t.Notes = append(append(t.Notes, moduleTimeSentences(doc)...), ownTimeNote)
	for i := range doc.Runs {
		t.Notes = append(t.Notes, timingNotes(&doc.Runs[i])...)
	}
	t.Notes = append(t.Notes, "residue: "+moduleResidueNote)
	return t
}

const moduleResidueNote = "what the medians of phases leave of the median of steps, and phases that no instrumented " +
	"step had"

// timingNotes say how the times of a run's modules were measured.
func timingNotes(r *explain.Run) []string {
	m := r.ModuleTiming
	var notes []string
	if m.BareSteps > 0 { // otherwise a warning says that times come from instrumented steps
		notes = append(notes, r.Label+": "+sharesNote(m.InstrumentedSteps, m.InstrumentedStepMS, scaledTo(m),
			r.StepMS.Median))
	}
	if m.Ranks > 1 {
		notes = append(notes, fmt.Sprintf("%s: modules of rank %d, the slowest of %d", r.Label, m.Rank,
			m.Ranks))
	}
	return notes
}

// scaledTo names the step time that times of modules are scaled to.
func scaledTo(m *explain.ModuleTiming) string {
	if m.Repeats > 0 {
		return fmt.Sprintf("over %d repeats", m.Repeats)
	}
	return bareSteps(m.BareSteps)
}

func others(n int) string { return units.Plural(n, "other", "others") }

// largestModuleDelta returns the largest absolute difference, of the steps or of a module.
func largestModuleDelta(doc *explain.Explanation) float64 {
	largest := max(math.Abs(*doc.StepDeltaMS), math.Abs(doc.OutsideModules.DeltaMS))
	for i := range doc.ModuleTimes {
		largest = max(largest, math.Abs(doc.ModuleTimes[i].DeltaMS))
	}
	return largest
}

// topModuleTimes returns the first top modules that differ by at least least, and the sum of the other modules. top 0
// means all modules.
func topModuleTimes(list []explain.ModuleTimePart, top int, least float64) (shown []explain.ModuleTimePart,
	rest explain.ModuleTimePart, left int) {
	shown, others := heaviest(list, top, func(m explain.ModuleTimePart) bool {
		return math.Abs(m.DeltaMS) >= least
	})
	for i := range others {
		rest.Modules += others[i].Modules
		rest.Add(others[i].FromMS, others[i].ToMS, others[i].DeltaMS)
	}
	return shown, rest, len(others)
}

// topPhases returns the phases that differ by at least least, and the sum of the other phases that differ. If all
// modules are shown, topPhases returns all phases.
func topPhases(list []explain.PhasePart, top int, least float64) (shown []*explain.PhasePart,
	rest explain.TimePart, left int) {
	var small []*explain.PhasePart
	for i := range list {
		switch p := &list[i]; {
		case top == 0 || math.Abs(*p.DeltaMS) >= least && nanoseconds(*p.DeltaMS) != 0:
			shown = append(shown, p)
		case nanoseconds(*p.DeltaMS) != 0:
			small = append(small, p)
		}
	}
	if len(shown) == 0 {
		return nil, rest, 0
	}
	if len(small) == 1 {
		return append(shown, small...), rest, 0
	}
	for _, p := range small {
		rest.Add(p.FromMS, p.ToMS, *p.DeltaMS)
	}
	return shown, rest, len(small)
}
