package report

import (
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// resultsTable is the content of results.csv: a row for each run and a column for each figure, in bytes and
// milliseconds.
func resultsTable(s *compare.Study) table.Table {
	var t table.Table
	column := func(key string) { t.Columns = append(t.Columns, table.Column{Key: key}) }
	for _, k := range []string{"run_id", "name", "status", "source", "profile", "bare", "suite", "gpu", "peak_bytes",
		"peak_reserved_bytes", "peak_device_bytes",
		"step_ms", "step_ms_low", "step_ms_high", "step_n", "step_confidence", "step_clock", "samples_per_s",
		"tokens_per_s", "joules_per_step", "joules_per_sample",
		"baseline", "peak_delta_bytes", "peak_ratio", "step_delta_ms", "step_ratio", "conservation", "residue_bytes"} {
		column(k)
	}
	for _, c := range schemas.Categories {
		column(c + "_bytes")
	}
	for _, c := range schemas.Categories {
		column(c + "_shared_bytes")
	}
	for i := range s.Runs {
		t.Rows = append(t.Rows, resultsRow(s, i, len(t.Columns)))
	}
	return t
}

func resultsRow(s *compare.Study, i, columns int) []table.Cell {
	r := &s.Runs[i]
	var row []table.Cell
	add := func(cells ...table.Cell) { row = append(row, cells...) }
	word := func(v string) table.Cell {
		if v == "" {
			return table.Absent()
		}
		return table.Text(v)
	}
	add(word(r.RunID), word(r.Name), word(r.Status), word(r.Source), table.Optional(r.Profile, word),
		table.Cell{Value: r.Bare()}, word(r.Suite), word(r.GPU),
		table.Optional(r.PeakBytes, table.Bytes), table.Optional(r.PeakReservedBytes, table.Bytes),
		table.Optional(r.PeakDeviceBytes, table.Bytes))
	step, low, high, n, confidence := intervalCells(r.StepMS)
	clock := table.Absent()
	if r.StepMS != nil {
		clock = word(r.StepMS.Clock)
	}
	add(step, low, high, n, confidence, clock)
	add(table.Optional(r.SamplesPerS, rate), table.Optional(r.TokensPerS, rate), table.Optional(r.JoulesPerStep, rate),
		table.Optional(r.JoulesPerSample, rate))
	if s.Overhead != nil {
		o := &s.Overhead.Runs[i]
		add(word(o.Baseline), table.Optional(o.PeakDeltaBytes, table.Bytes), table.Optional(o.PeakRatio, table.Ratio),
			table.Optional(o.StepDeltaMS, table.Milliseconds), table.Optional(o.StepRatio, table.Ratio))
	} else {
		add(table.Absent(), table.Absent(), table.Absent(), table.Absent(), table.Absent())
	}
	d := r.Main()
	if d == nil {
		return append(row, make([]table.Cell, columns-len(row))...)
	}
	add(word(d.Conservation.Verdict), table.Bytes(d.Conservation.ResidueBytes))
	for _, c := range schemas.Categories {
		add(table.Bytes(d.Category(c).Bytes))
	}
	for _, c := range schemas.Categories {
		add(table.Bytes(d.Category(c).SharedBytes))
	}
	return row
}
