package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report/table"
)

var phaseColumns = slices.Concat(machineColumns, []table.Column{{Title: "Phase", Key: "phase"},
	{Title: "Device", For: table.People}, {Title: "n", Key: "occurrences", Priority: 1, Right: true},
	{Title: "MiB at begin", Key: "allocated_begin_bytes", Right: true},
	{Title: "MiB at end", Key: "allocated_end_bytes", Right: true},
	{Title: "Peak MiB", Key: "peak_bytes", Priority: 5, Right: true},
	{Title: "% of peak", Key: "peak_percent", Priority: 4, Right: true},
	{Title: "Lowest peak MiB", Key: "lowest_peak_bytes", Right: true, Begins: true},
	{Title: "At step", Key: "peak_step", Right: true},
	{Title: "GPU ms", Key: "gpu_ms", Priority: 3, Right: true, Begins: true},
	{Title: "Wall ms", Key: "wall_ms", Right: true},
	{Title: "% of step", Key: "step_percent", Priority: 2, Right: true}})

// PhasesTables returns one table for each run. Each table carries the whole document.
func PhasesTables(doc analyze.PhasesDocument) []table.Table {
	doc.Runs = tellPhases(doc.Runs)
	tables := []table.Table{}
	for i := range doc.Runs {
		t := phasesTable(&doc.Runs[i])
		t.Document = doc
		tables = append(tables, t)
	}
	if len(tables) == 0 {
		tables = append(tables, table.Table{Title: "Phases", Columns: phaseColumns, Document: doc})
	}
	return tables
}

func phasesTable(r *analyze.PhasesRun) table.Table {
	t := table.Table{Title: "Phases of " + identified(&r.Identity), Columns: phaseColumns}
	median := func(v *timing.Interval) table.Cell {
		if v == nil {
			return table.Absent()
		}
		return table.Milliseconds(v.Median)
	}
	for i := range r.Phases {
		p := &r.Phases[i]
		t.Rows = append(t.Rows, append(machineCells(&r.Identity, table.Text(p.Device), table.Count(int64(p.Rank))),
			table.Text(p.Phase), table.Text(p.Device+rank(p.Rank)), table.Count(p.Occurrences),
			table.Optional(p.AllocatedBeginBytes, table.Bytes), table.Optional(p.AllocatedEndBytes, table.Bytes),
			table.Optional(p.PeakBytes, table.Bytes), table.Optional(p.PeakPercent, share),
			table.Optional(p.LowestPeakBytes, table.Bytes), table.Optional(p.PeakStep, table.Count), median(p.GPUMS),
			median(p.WallMS), table.Optional(p.StepPercent, share)))
	}
	switch {
	case len(r.Phases) > 0:
		t.Notes = append(t.Notes, "begin and end are of the occurrence with the highest peak; % of peak: of the "+
			"device's peak over the whole run; times: medians of bare steps")
	case len(r.Remarks) == 0: // otherwise the remarks give the reason
		t.Notes = append(t.Notes, "the run has no phases")
	}
	t.Notes = append(t.Notes, RunWords(r.Remarks)...)
	t.Notes = append(t.Notes, runSources(&r.Identity)...)
	return t
}

// phasePeakTable has a row for each phase and a column for each cell. A value is the highest allocated during the phase
// on the run's main device.
func phasePeakTable(s *compare.Study, from, to int) table.Table {
	t := table.Table{Notes: ofStudy(s).notes(), Title: "Highest allocated by phase (MiB)",
		Columns: cellColumns(s, table.Column{Title: "Phase", Key: "phase"}, from, to)}
	var order []string
	peaks := make([]map[string]int64, to-from)
	for i := range peaks {
		peaks[i] = s.Cells[from+i].PhasePeaks()
		for _, r := range s.Cells[from+i].Phases.Phases {
			if _, ok := peaks[i][r.Phase]; ok && !slices.Contains(order, r.Phase) {
				order = append(order, r.Phase)
			}
		}
	}
	for _, phase := range order {
		row := []table.Cell{table.Text(phase)}
		for i := range peaks {
			if b, ok := peaks[i][phase]; ok {
				row = append(row, table.Bytes(b))
			} else {
				row = append(row, table.Absent())
			}
		}
		t.Rows = append(t.Rows, row)
	}
	if len(order) == 0 {
		t.Notes = append(t.Notes, "no run has phases with bytes")
	}
	return withSources(t, s)
}

// phasePeakDeltaTable lists the phases whose highest allocated is known. A run's cell has that figure and, in brackets,
// the difference to the baseline in the same phase. If methods divide a phase differently, the highest of its parts
// follows below them.
func phasePeakDeltaTable(s *compare.Study, from, to int) table.Table {
	t := table.Table{Notes: ofStudy(s).notes(), Title: "Peak by phase, difference to " + overWhat(s) + " (MiB, %)",
		Columns: cellColumns(s, table.Column{Title: "Phase", Key: "phase"}, from, to)}
	t.Columns = append(t.Columns, percentColumns(s, from, to, "delta_bytes", "delta_percent")...)
	families, members, divided := phaseFamilies(s, from, to, func(p *compare.PhaseDelta) bool {
		return p.PeakBytes != nil
	})
	line := func(name string, of func(*compare.Cell) (peak, delta *int64, percent *float64)) {
		shown, programs := []table.Cell{table.Text(name)}, []table.Cell{}
		for i := from; i < to; i++ {
			c := &s.Cells[i]
			peak, delta, percent := of(c)
			cell, difference := table.Optional(peak, table.Bytes), table.Optional(delta, table.DeltaBytes)
			if delta != nil && !c.IsBaseline() {
				cell.Text += beside(difference, percent)
			}
			shown, programs = append(shown, cell), append(programs, difference, table.Optional(percent, deltaPercent))
		}
		t.Rows = append(t.Rows, append(shown, programs...))
	}
	for _, f := range families {
		for _, phase := range members[f] {
			line(phase, func(c *compare.Cell) (peak, delta *int64, percent *float64) {
				p := c.Overhead.Phase(phase)
				switch {
				case p == nil:
					return nil, nil, nil
				case divided[f]:
					return p.PeakBytes, nil, nil
				}
				return p.PeakBytes, p.PeakDeltaBytes, p.PeakDeltaPercent
			})
		}
		if divided[f] {
			line("all "+f, func(c *compare.Cell) (peak, delta *int64, percent *float64) { return c.FamilyPeak(f) })
			t.Notes = append(t.Notes, fmt.Sprintf("all %s: the highest of %s, which runs divide differently", f,
				strings.Join(members[f], ", ")))
		}
	}
	if len(t.Rows) > 0 {
		t.Notes = append(t.Notes, "%: of the baseline's peak in the same phase; a phase that the baseline lacks has "+
			"no %")
	}
	return withSources(t, s)
}

// phaseFamilies returns the phases of some cells for which has is true, grouped by family. Families and phases are in
// order of appearance. A family counts as divided if one run or its baseline has it as one phase, and another run has
// only parts of it. Parts of set-up do not count.
func phaseFamilies(s *compare.Study, from, to int, has func(*compare.PhaseDelta) bool) (families []string,
	members map[string][]string, divided map[string]bool) {
	members, divided = map[string][]string{}, map[string]bool{}
	whole, parts := map[string]bool{}, map[string]bool{}
	for i := from; i < to; i++ {
		for k := range s.Cells[i].Overhead.Phases {
			p := &s.Cells[i].Overhead.Phases[k]
			f := memory.PhaseFamily(p.Phase)
			whole[f], parts[f] = whole[f] || f == p.Phase, parts[f] || f != p.Phase
			if !has(p) || slices.Contains(members[f], p.Phase) {
				continue
			}
			if members[f] == nil {
				families = append(families, f)
			}
			members[f] = append(members[f], p.Phase)
		}
	}
	for f := range members {
		divided[f] = whole[f] && parts[f]
	}
	return families, members, divided
}

// share formats a part in per cent.
func share(p float64) table.Cell { return table.Number(p, 1) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
