package report

import (
	"maps"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/table"
)

var phaseColumns = slices.Concat(machineColumns, []table.Column{{Title: "Phase", Key: "phase"}, {Title: "Device", For: table.People}, {Title: "n", Key: "occurrences", Right: true},
	{Title: "MiB at begin", Key: "allocated_begin_bytes", Right: true}, {Title: "MiB at end", Key: "allocated_end_bytes", Right: true},
	{Title: "Peak MiB", Key: "peak_bytes", Right: true}, {Title: "Lowest peak MiB", Key: "lowest_peak_bytes", Right: true},
	{Title: "At step", Key: "peak_step", Right: true}, {Title: "GPU ms", Key: "gpu_ms", Right: true}, {Title: "Wall ms", Key: "wall_ms", Right: true}})

// PhasesTables prints a table a run. All of them carry the whole document.
func PhasesTables(doc analyze.PhasesDocument) []table.Table {
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
	median := func(v *analyze.Interval) table.Cell {
		if v == nil {
			return table.Absent()
		}
		return table.Milliseconds(v.Median)
	}
	for i := range r.Phases {
		p := &r.Phases[i]
		t.Rows = append(t.Rows, append(machineCells(&r.Identity, table.Text(p.Device), table.Count(int64(p.Rank))), table.Text(p.Phase), table.Text(p.Device+rank(p.Rank)), table.Count(p.Occurrences),
			table.Optional(p.AllocatedBeginBytes, table.Bytes), table.Optional(p.AllocatedEndBytes, table.Bytes), table.Optional(p.PeakBytes, table.Bytes),
			table.Optional(p.LowestPeakBytes, table.Bytes), table.Optional(p.PeakStep, table.Count), median(p.GPUMS), median(p.WallMS)))
	}
	switch {
	case len(r.Phases) > 0:
		t.Notes = append(t.Notes, "begin and end are of the occurrence with the highest peak; times are medians a step, of bare steps")
	case len(r.Warnings) == 0: // else they say why
		t.Notes = append(t.Notes, "the run has no phases")
	}
	t.Notes = append(t.Notes, r.Warnings...)
	t.Notes = append(t.Notes, sourceNotes(&r.Identity)...)
	return t
}

// phasePeakTable has a row a phase and a column a cell: the highest allocated in it, on the run's main device.
func phasePeakTable(s *analyze.Study, from, to int) table.Table {
	t := table.Table{Title: "Highest allocated by phase (MiB)", Columns: cellColumns(s, table.Column{Title: "Phase", Key: "phase"}, from, to)}
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

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
