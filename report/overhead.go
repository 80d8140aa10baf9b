package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// OverheadTables returns a study's overhead: a row for each experiment, then tables of categories and phases with a
// column for each experiment. The study must have a baseline.
func OverheadTables(s compare.Study) []table.Table {
	tables := []table.Table{overheadTable(&s)}
	for _, set := range []tableSet{across("", &s, categoryDeltaTable, nil), across("", &s, phasePeakDeltaTable, nil),
		across("", &s, phaseDeltaTable, nil)} {
		for _, t := range set.tables {
			if len(t.Rows) > 0 {
				tables = append(tables, t)
			}
		}
	}
	for i := range tables {
		tables[i].Document = tellOverhead(*s.Overhead)
	}
	return tables
}

// Gist returns the single most important table of a study: the overhead or, without a baseline, how the runs ended.
func Gist(s compare.Study) table.Table {
	if s.Overhead != nil {
		return overheadTable(&s)
	}
	return SuccessTables(compare.Success(s.Runs))[0]
}

func overheadTable(s *compare.Study) table.Table {
	t := table.Table{Title: "Overhead over " + overWhat(s), Columns: []table.Column{
		{Title: "Run", Key: "run"},
		{Title: "Baseline", Key: "baseline"},
		{Title: "Peak MiB", Key: "peak_bytes", Priority: 7, Right: true},
		{Title: "Δ MiB", Key: "peak_delta_bytes", Priority: 6, Right: true},
		{Title: "Ratio", Key: "peak_ratio", Priority: 5, Right: true},
		{Title: "Kept .grad MiB", Key: "kept_gradient_bytes", Right: true},
		{Title: "Δ MiB if freed", Key: "freed_delta_bytes", Right: true},
		{Title: "Step ms", Key: "step_ms", Priority: 4, Right: true, Begins: true},
		{Title: "Low", Key: "step_ms_low", Right: true},
		{Title: "High", Key: "step_ms_high", Right: true},
		{Title: "n", Key: "step_n", Right: true},
		{Title: "Δ ms", Key: "step_delta_ms", Priority: 3, Right: true},
		{Title: "Ratio", Key: "step_ratio", Priority: 2, Right: true},
		{Title: "Samples/s", Key: "samples_per_s", Priority: 1, Right: true, Begins: true},
		{Title: "Tokens/s", Key: "tokens_per_s", Right: true},
		{Title: "J/sample", Key: "joules_per_sample", Right: true},
	}}
	metered := hasEnergy(s)
	all := ofStudy(s)
	t.Notes = all.notes()
	var notes runNotes
	for i := range s.Cells {
		c := &s.Cells[i]
		o, label := c.Overhead, all.badged(c.Label, &c.Identity)
		step, low, high, n, _ := intervalCells(o.StepMS)
		t.Rows = append(t.Rows, []table.Cell{all.cell(c.Label, &c.Identity), table.Text(c.Baseline.Label),
			table.Optional(o.PeakBytes, table.Bytes), table.Optional(o.PeakDeltaBytes, table.DeltaBytes),
			table.Optional(o.PeakRatio, table.Ratio), table.Optional(o.KeptGradientBytes, table.Bytes),
			table.Optional(o.FreedDeltaBytes, table.DeltaBytes), step, low, high, n, table.Optional(o.StepDeltaMS,
				table.DeltaMilliseconds),
			table.Optional(o.StepRatio, table.Ratio), table.Optional(o.SamplesPerS, rate), table.Optional(o.TokensPerS,
				rate),
			table.Optional(o.JoulesPerSample, rate)})
		if c.NoEnergy != "" && metered {
			notes.add(label, noEnergyWords(c.NoEnergy))
		}
		for _, w := range comparisonWords(o.Remarks) {
			notes.add(label, w)
		}
	}
	for _, w := range comparisonWords(s.Overhead.BaselineRemarks) {
		notes.add("baseline "+overWhat(s), w)
	}
	t.Notes = append(t.Notes, notes.all()...)
	if !s.SeveralBaselines {
		t.ForPrograms("baseline")
	}
	for i := range s.Cells {
		if s.Cells[i].Overhead.KeptGradientBytes != nil {
			t.Notes = append(t.Notes, "kept .grad: at the peak, gradients that zero_grad kept and nothing has written "+
				"since; Δ if freed: the difference of the peaks if every loop freed them")
			break
		}
	}
	t.Notes = append(t.Notes, spreadNotes(s)...)
	hideEmpty(&t)
	t.Notes = append(t.Notes, digestsOf(s)...)
	return withSources(t, s)
}

// digestsOf returns the note on runs of a study whose files have no digests.
func digestsOf(s *compare.Study) []string {
	return digestNotes(len(s.Runs), func(i int) *identity.Identity { return &s.Runs[i].Identity })
}

// hideEmpty hides empty columns from people. Programs get all columns, since they expect each key.
func hideEmpty(t *table.Table) {
	for c := range t.Columns {
		if len(t.Rows) > 0 && !slices.ContainsFunc(t.Rows, func(row []table.Cell) bool { return row[c].Value != nil }) {
			t.Columns[c].For = table.Programs
		}
	}
}

// rate formats small values with four digits, since the rate of long samples is far below one.
func rate(v float64) table.Cell {
	if v < 10 && v > -10 {
		return table.Number(v, 4)
	}
	return table.Number(v, 2)
}

func withSources(t table.Table, s *compare.Study) table.Table {
	for i := range s.Cells {
		for _, n := range sourceNotes(&s.Cells[i].Identity) {
			if !slices.Contains(t.Notes, n) {
				t.Notes = append(t.Notes, n)
			}
		}
	}
	return t
}

// cellColumns returns a first column, then one column for each cell from one place to another.
func cellColumns(s *compare.Study, first table.Column, from, to int) []table.Column {
	columns, all := []table.Column{first}, ofStudy(s)
	for i := from; i < to; i++ {
		columns = append(columns, table.Column{Title: all.badged(s.Cells[i].Label, &s.Cells[i].Identity),
			Key: s.Cells[i].RunID, Right: true})
	}
	return columns
}

func categoryDeltaTable(s *compare.Study, from, to int) table.Table {
	t := table.Table{Notes: ofStudy(s).notes(), Title: "Difference of the peak to " + overWhat(s) +
		" by category (MiB, % of its peak)",
		Columns: cellColumns(s, table.Column{Title: "Category", Key: "category"}, from, to)}
	t.Columns = append(t.Columns, percentColumns(s, from, to, "percent")...)
	runs := s.Overhead.Cells[from:to]
	for _, c := range schemas.Categories {
		cells, percents, any := []table.Cell{table.Text(c)}, []table.Cell{}, false
		for i := range runs {
			k := slices.IndexFunc(runs[i].Categories, func(d compare.CategoryDelta) bool { return d.Category == c })
			switch {
			case k < 0 && len(runs[i].Categories) == 0: // not broken down
				cells, percents = append(cells, table.Absent()), append(percents, table.Absent())
				continue
			case k < 0: // missing in the run and in the baseline
				cells, percents = append(cells, table.DeltaBytes(0)), append(percents, deltaPercent(0))
				continue
			}
			d := &runs[i].Categories[k]
			any = any || d.DeltaBytes != 0
			cells, percents = append(cells, withPercent(table.DeltaBytes(d.DeltaBytes), d.DeltaPercent)),
				append(percents, table.Optional(d.DeltaPercent, deltaPercent))
		}
		if any {
			t.Rows = append(t.Rows, append(cells, percents...))
		}
	}
	if len(t.Rows) > 0 {
		t.Notes = append(t.Notes, "left out categories that differ in no run")
		cells, percents := []table.Cell{table.Text("peak allocated")}, []table.Cell{}
		for i := range runs {
			var percent *float64
			if r := runs[i].PeakRatio; r != nil {
				percent = new(100 * (*r - 1))
			}
			cells = append(cells, withPercent(table.Optional(runs[i].PeakDeltaBytes, table.DeltaBytes), percent))
			percents = append(percents, table.Optional(percent, deltaPercent))
		}
		t.Rows = append(t.Rows, append(cells, percents...))
	}
	return withSources(t, s)
}

// deltaPercent shows a difference in per cent with its sign. A value other than 0 never looks like 0.
func deltaPercent(p float64) table.Cell {
	c := table.Number(p, 1)
	switch {
	case p > 0 && p < 0.05:
		c.Text = "<0.1"
	case p < 0 && p > -0.05:
		c.Text = ">−0.1"
	case p > 0:
		c.Text = "+" + c.Text
	}
	return c
}

// withPercent appends a difference in per cent to a cell's figure, if there is one.
func withPercent(c table.Cell, percent *float64) table.Cell {
	if percent != nil && *percent != 0 {
		c.Text += " (" + deltaPercent(*percent).Text + " %)"
	}
	return c
}

// beside returns the text in brackets after a figure: its difference to the baseline's figure, absolute and in per
// cent.
func beside(difference table.Cell, percent *float64) string {
	if percent == nil || *percent == 0 {
		return " (" + difference.Text + ")"
	}
	return " (" + difference.Text + ", " + deltaPercent(*percent).Text + " %)"
}

// percentColumns returns the columns of percentages. People read a percentage behind each figure, while programs get
// columns of their own.
func percentColumns(s *compare.Study, from, to int, keys ...string) (columns []table.Column) {
	for i := from; i < to; i++ {
		for _, k := range keys {
			columns = append(columns, table.Column{Key: s.Cells[i].RunID + "_" + k, For: table.Programs})
		}
	}
	return columns
}

// phaseDeltaTable has a row for each phase with a time. A run's cell has the run's time and, in brackets, the
// difference to the baseline. If methods divide a phase differently, its parts are not compared. The sum of the phase's
// parts follows below the parts and is compared.
func phaseDeltaTable(s *compare.Study, from, to int) table.Table {
	t := table.Table{Notes: ofStudy(s).notes(), Title: "Time by phase (ms a step, difference to " + overWhat(s) +
		", % of its step)",
		Columns: cellColumns(s, table.Column{Title: "Phase", Key: "phase"}, from, to)}
	t.Columns = append(t.Columns, percentColumns(s, from, to, "delta_ms", "delta_step_percent")...)
	families, members, divided := phaseFamilies(s, from, to, func(p *compare.PhaseDelta) bool { return p.MS != nil })
	line := func(name string, of func(*compare.OverheadRun) (ms, delta, percent *float64)) {
		shown, programs := []table.Cell{table.Text(name)}, []table.Cell{}
		for i := from; i < to; i++ {
			o := s.Cells[i].Overhead
			ms, delta, percent := of(o)
			cell := table.Optional(ms, table.Milliseconds)
			if ms != nil && delta != nil && o.RunID != o.Baseline {
				cell.Text += beside(table.DeltaMilliseconds(*delta), percent)
			}
			shown, programs = append(shown, cell), append(programs, table.Optional(delta, table.DeltaMilliseconds),
				table.Optional(percent, deltaPercent))
		}
		t.Rows = append(t.Rows, append(shown, programs...))
	}
	for _, f := range families {
		for _, phase := range members[f] {
			line(phase, func(o *compare.OverheadRun) (ms, delta, percent *float64) {
				p := o.Phase(phase)
				switch {
				case p == nil:
					return nil, nil, nil
				case divided[f]:
					return p.MS, nil, nil
				}
				return p.MS, p.DeltaMS, p.DeltaStepPercent
			})
		}
		if divided[f] {
			line("all "+f, func(o *compare.OverheadRun) (ms, delta, percent *float64) { return o.FamilyTime(f) })
			t.Notes = append(t.Notes, fmt.Sprintf("all %s: the sum of %s, which runs divide differently", f,
				strings.Join(members[f], ", ")))
		}
	}
	if len(t.Rows) > 0 {
		t.Notes = append(t.Notes, "%: of the baseline's whole step; medians of phases need not sum to the median of the "+
			"step")
	}
	return withSources(t, s)
}
