package report

import (
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// OverheadTables prints a study's overhead: a row a run; then categories and phases, a column a run. It needs a baseline.
func OverheadTables(s analyze.Study) []table.Table {
	doc := s.Overhead
	tables := []table.Table{overheadTable(&s)}
	for from := 0; from < len(doc.Runs); from += runsATable {
		to := min(from+runsATable, len(doc.Runs))
		for _, t := range []table.Table{categoryDeltaTable(&s, from, to), phaseDeltaTable(&s, from, to)} {
			if len(t.Rows) > 0 {
				tables = append(tables, t)
			}
		}
	}
	for i := range tables {
		tables[i].Document = *doc
	}
	return tables
}

func overheadTable(s *analyze.Study) table.Table {
	t := table.Table{Title: "Overhead over " + s.BaselineLabel, Columns: []table.Column{
		{Title: "Run", Key: "run"}, {Title: "Peak MiB", Key: "peak_bytes", Right: true}, {Title: "Δ MiB", Key: "peak_delta_bytes", Right: true}, {Title: "Ratio", Key: "peak_ratio", Right: true},
		{Title: "Step ms", Key: "step_ms", Right: true}, {Title: "Low", Key: "step_ms_low", Right: true}, {Title: "High", Key: "step_ms_high", Right: true},
		{Title: "n", Key: "step_n", Right: true}, {Title: "Δ ms", Key: "step_delta_ms", Right: true}, {Title: "Ratio", Key: "step_ratio", Right: true},
		{Title: "Samples/s", Key: "samples_per_s", Right: true}, {Title: "Tokens/s", Key: "tokens_per_s", Right: true}, {Title: "J/sample", Key: "joules_per_sample", Right: true}}}
	spread := map[string]bool{}
	for i := range s.Overhead.Runs {
		o := &s.Overhead.Runs[i]
		label := marked(s.Labels[i], &o.Identity)
		step, low, high, n := table.Absent(), table.Absent(), table.Absent(), table.Absent()
		if v := o.StepMS; v != nil {
			step, low, high, n = table.Milliseconds(v.Median), table.Milliseconds(v.Low), table.Milliseconds(v.High), table.Count(int64(v.N))
			spread[spreadNote(v)] = true
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(label), table.Optional(o.PeakBytes, table.Bytes), table.Optional(o.PeakDeltaBytes, table.DeltaBytes),
			table.Optional(o.PeakRatio, table.Ratio), step, low, high, n, table.Optional(o.StepDeltaMS, table.DeltaMilliseconds),
			table.Optional(o.StepRatio, table.Ratio), table.Optional(o.SamplesPerS, rate), table.Optional(o.TokensPerS, rate),
			table.Optional(o.JoulesPerSample, rate)})
		for _, w := range o.Warnings {
			t.Notes = append(t.Notes, label+": "+w)
		}
	}
	t.Notes = append(t.Notes, sortedKeys(spread)...)
	hideEmpty(&t)
	return withSources(t, s)
}

// hideEmpty leaves columns that no row fills to programs, which count on their keys.
func hideEmpty(t *table.Table) {
	for c := range t.Columns {
		if len(t.Rows) > 0 && !slices.ContainsFunc(t.Rows, func(row []table.Cell) bool { return row[c].Value != nil }) {
			t.Columns[c].For = table.Programs
		}
	}
}

// spreadNote says what low and high are.
func spreadNote(v *analyze.Interval) string {
	clock := map[string]string{analyze.ClockGPU: "GPU time", analyze.ClockWall: "wall time"}[v.Clock]
	if v.Of == analyze.OfMedian {
		return "step ms: median (" + clock + "); low and high enclose the true median with 95 % confidence (order statistics)"
	}
	return "step ms: median (" + clock + "); low and high are the fastest and the slowest step"
}

func rate(v float64) table.Cell { return table.Number(v, 2) }

func withSources(t table.Table, s *analyze.Study) table.Table {
	for i := range s.Runs {
		for _, n := range sourceNotes(&s.Runs[i].Identity) {
			if !slices.Contains(t.Notes, n) {
				t.Notes = append(t.Notes, n)
			}
		}
	}
	return t
}

// runColumns are a first column and one a run.
func runColumns(s *analyze.Study, first table.Column, from, to int) []table.Column {
	columns := []table.Column{first}
	for i := from; i < to; i++ {
		columns = append(columns, table.Column{Title: marked(s.Labels[i], &s.Runs[i].Identity), Key: s.Runs[i].RunID, Right: true})
	}
	return columns
}

func categoryDeltaTable(s *analyze.Study, from, to int) table.Table {
	t := table.Table{Title: "Difference of the peak to " + s.BaselineLabel + " by category (MiB)",
		Columns: runColumns(s, table.Column{Title: "Category", Key: "category"}, from, to)}
	runs := s.Overhead.Runs[from:to]
	for _, c := range schemas.Categories {
		cells, any := []table.Cell{table.Text(c)}, false
		for i := range runs {
			k := slices.IndexFunc(runs[i].Categories, func(d analyze.CategoryDelta) bool { return d.Category == c })
			switch {
			case k < 0 && len(runs[i].Categories) == 0: // not broken down
				cells = append(cells, table.Absent())
				continue
			case k < 0: // neither in the run nor in the baseline
				cells = append(cells, table.DeltaBytes(0))
				continue
			}
			any = any || runs[i].Categories[k].DeltaBytes != 0
			cells = append(cells, table.DeltaBytes(runs[i].Categories[k].DeltaBytes))
		}
		if any {
			t.Rows = append(t.Rows, cells)
		}
	}
	if len(t.Rows) > 0 {
		t.Notes = append(t.Notes, "categories that differ in no run are left out")
		cells := []table.Cell{table.Text("peak allocated")}
		for i := range runs {
			cells = append(cells, table.Optional(runs[i].PeakDeltaBytes, table.DeltaBytes))
		}
		t.Rows = append(t.Rows, cells)
	}
	return withSources(t, s)
}

// phaseDeltaTable lists the phases that have a time; a run's cell is its time and, in brackets, the difference.
func phaseDeltaTable(s *analyze.Study, from, to int) table.Table {
	t := table.Table{Title: "Time by phase (ms a step, difference to " + s.BaselineLabel + ")",
		Columns: runColumns(s, table.Column{Title: "Phase", Key: "phase"}, from, to)}
	runs := s.Overhead.Runs[from:to]
	var order []string
	for i := range runs {
		for _, p := range runs[i].Phases {
			if p.MS != nil && !slices.Contains(order, p.Phase) {
				order = append(order, p.Phase)
			}
		}
	}
	for _, phase := range order {
		cells := []table.Cell{table.Text(phase)}
		for i := range runs {
			cell := table.Absent()
			for _, p := range runs[i].Phases {
				if p.Phase != phase || p.MS == nil {
					continue
				}
				cell = table.Milliseconds(*p.MS)
				if p.DeltaMS != nil && runs[i].RunID != s.Overhead.Baseline {
					cell.Text += " (" + table.DeltaMilliseconds(*p.DeltaMS).Text + ")"
				}
			}
			cells = append(cells, cell)
		}
		t.Rows = append(t.Rows, cells)
	}
	return withSources(t, s)
}
