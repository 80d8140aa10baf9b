package report

import (
	"fmt"
	"io"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// resultsTable is results.csv: a row a run, every figure a column, in bytes and milliseconds.
func resultsTable(s *analyze.Study) table.Table {
	var t table.Table
	column := func(key string) { t.Columns = append(t.Columns, table.Column{Key: key}) }
	for _, k := range []string{"run_id", "name", "status", "source", "profile", "bare", "suite", "gpu", "peak_bytes", "peak_reserved_bytes", "peak_device_bytes",
		"step_ms", "step_ms_low", "step_ms_high", "step_n", "step_clock", "samples_per_s", "tokens_per_s", "joules_per_sample",
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
		t.Rows = append(t.Rows, resultsRow(s, i))
	}
	return t
}

func resultsRow(s *analyze.Study, i int) []table.Cell {
	r := &s.Runs[i]
	var row []table.Cell
	add := func(cells ...table.Cell) { row = append(row, cells...) }
	word := func(v string) table.Cell {
		if v == "" {
			return table.Absent()
		}
		return table.Text(v)
	}
	add(word(r.RunID), word(r.Name), word(r.Status), word(r.Source), table.Optional(r.Profile, word), table.Cell{Value: r.Bare()}, word(r.Suite), word(r.GPU),
		table.Optional(r.PeakBytes, table.Bytes), table.Optional(r.PeakReservedBytes, table.Bytes), table.Optional(r.PeakDeviceBytes, table.Bytes))
	if v := r.StepMS; v != nil {
		add(table.Milliseconds(v.Median), table.Milliseconds(v.Low), table.Milliseconds(v.High), table.Count(int64(v.N)), word(v.Clock))
	} else {
		add(table.Absent(), table.Absent(), table.Absent(), table.Absent(), table.Absent())
	}
	add(table.Optional(r.SamplesPerS, rate), table.Optional(r.TokensPerS, rate), table.Optional(r.JoulesPerSample, rate))
	if s.Overhead != nil {
		o := &s.Overhead.Runs[i]
		add(word(s.Overhead.Baseline), table.Optional(o.PeakDeltaBytes, table.Bytes), table.Optional(o.PeakRatio, table.Ratio),
			table.Optional(o.StepDeltaMS, table.Milliseconds), table.Optional(o.StepRatio, table.Ratio))
	} else {
		add(table.Absent(), table.Absent(), table.Absent(), table.Absent(), table.Absent())
	}
	d := r.Main()
	if d == nil {
		for len(row) < 26+2*len(schemas.Categories) {
			add(table.Absent())
		}
		return row
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

// writeSummary is summary.txt: every table as text.
func (m *Model) writeSummary(w io.Writer) error {
	title := m.Title
	if title == "" {
		title = "dpsight report"
	}
	if _, err := fmt.Fprintf(w, "%s\n\n", title); err != nil {
		return err
	}
	for i := range m.Study.Runs {
		if _, err := fmt.Fprintf(w, "#%-2d %s\n", i+1, marked(m.Study.Labels[i], &m.Study.Runs[i].Identity)); err != nil {
			return err
		}
	}
	if m.Study.Baseline != nil {
		if _, err := fmt.Fprintf(w, "baseline: %s\n", m.Study.BaselineLabel); err != nil {
			return err
		}
	}
	for _, n := range m.Notes {
		if _, err := fmt.Fprintf(w, "note: %s\n", n); err != nil {
			return err
		}
	}
	for _, set := range m.tableSets() {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := table.Write(w, "table", set.tables...); err != nil {
			return err
		}
	}
	return nil
}
