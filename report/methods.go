package report

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/table"
)

// ConfigurationTables say what the runs of a study have in common, and what tells them apart: a row a run.
func ConfigurationTables(s *analyze.Study) []table.Table {
	common := table.Table{Title: "Configuration of all runs", Columns: []table.Column{{Title: "Setting", Key: "setting"}, {Title: "Value", Key: "value"}}}
	for _, f := range s.Configuration.Common {
		common.Rows = append(common.Rows, []table.Cell{table.Text(f.What), table.Text(f.Value)})
	}
	if len(common.Rows) == 0 {
		common.Notes = append(common.Notes, "the runs have no setting in common")
	}
	tables := []table.Table{common}
	if len(s.Configuration.Varying) == 0 || len(s.Cells) == 0 {
		return tables
	}
	differ := table.Table{Title: "Settings that differ", Columns: []table.Column{{Title: "Run", Key: "run"}}}
	for _, what := range s.Configuration.Varying {
		differ.Columns = append(differ.Columns, table.Column{Title: what, Key: what})
	}
	for i := range s.Cells {
		c := &s.Cells[i]
		row := []table.Cell{table.Text(marked(c.Label, &c.Identity))}
		for _, what := range s.Configuration.Varying {
			if v := c.Fact(what); v != "" {
				row = append(row, table.Text(v))
			} else {
				row = append(row, table.Absent())
			}
		}
		differ.Rows = append(differ.Rows, row)
	}
	return append(tables, differ)
}

// caption is the configuration in a line, for figures.
func caption(s *analyze.Study) string {
	text := ""
	for _, f := range s.Configuration.Common {
		if !slices.Contains([]string{"model", "preset", "batch_size", "seq_len", "precision", "optimizer", "GPU", "torch", "Opacus"}, f.What) {
			continue
		}
		if text != "" {
			text += ", "
		}
		switch f.What {
		case "model", "precision", "optimizer", "GPU":
			text += f.Value
		default:
			text += fmt.Sprintf("%s %s", captionWords[f.What], f.Value)
		}
	}
	return text
}

var captionWords = map[string]string{"preset": "preset", "batch_size": "batch", "seq_len": "sequence", "torch": "torch", "Opacus": "Opacus"}

// methodsTable has a row an experiment: what it takes, absolutely.
func methodsTable(s *analyze.Study) table.Table {
	t := table.Table{Title: "Memory, time and energy", Columns: []table.Column{{Title: "Run", Key: "run"}, {Title: "Method", Key: "method"},
		{Title: "Repeats", Key: "repeats", Right: true}, {Title: "Peak allocated MiB", Key: "peak_bytes", Right: true},
		{Title: "Lowest", Key: "peak_low_bytes", Right: true}, {Title: "Highest", Key: "peak_high_bytes", Right: true},
		{Title: "Reserved MiB", Key: "peak_reserved_bytes", Right: true}, {Title: "Device MiB", Key: "peak_device_bytes", Right: true},
		{Title: "Step ms", Key: "step_ms", Right: true}, {Title: "Low", Key: "step_ms_low", Right: true}, {Title: "High", Key: "step_ms_high", Right: true},
		{Title: "n", Key: "step_n", Right: true}, {Title: "Confidence %", Key: "step_confidence", Right: true}, {Title: "Samples/s", Key: "samples_per_s", Right: true}, {Title: "Tokens/s", Key: "tokens_per_s", Right: true},
		{Title: "J/step", Key: "joules_per_step", Right: true}, {Title: "J/sample", Key: "joules_per_sample", Right: true}}}
	spread, repeated, equal := false, false, false
	for i := range s.Cells {
		c := &s.Cells[i]
		label := marked(c.Label, &c.Identity)
		method := table.Absent()
		if c.Method() != "" {
			method = table.Text(c.Method())
		}
		step, low, high, n, confidence := intervalCells(c.StepMS)
		t.Rows = append(t.Rows, []table.Cell{table.Text(label), method, table.Count(int64(len(c.RunIDs))), table.Optional(c.PeakBytes, table.Bytes),
			table.Optional(c.PeakLow, table.Bytes), table.Optional(c.PeakHigh, table.Bytes), table.Optional(c.PeakReservedBytes, table.Bytes),
			table.Optional(c.PeakDeviceBytes, table.Bytes), step, low, high, n, confidence,
			table.Optional(c.SamplesPerS, rate), table.Optional(c.TokensPerS, rate), table.Optional(c.JoulesPerStep, rate), table.Optional(c.JoulesPerSample, rate)})
		if c.PeakBytes == nil {
			t.Notes = append(t.Notes, label+": "+failure(&c.Summary))
		}
		for _, w := range c.Warnings {
			if note := label + ": " + w; !slices.Contains(t.Notes, note) {
				t.Notes = append(t.Notes, note)
			}
		}
		spread = spread || c.PeakLow != nil && *c.PeakLow != *c.PeakHigh
		repeated = repeated || len(c.RunIDs) > 1
		equal = equal || c.Good > 1
	}
	t.Notes = append(t.Notes, spreadNotes(s)...)
	if equal && !spread {
		t.Notes = append(t.Notes, "peak allocated is the same to the byte in all repeats of a run")
	}
	for c := range t.Columns {
		if key := t.Columns[c].Key; !spread && (key == "peak_low_bytes" || key == "peak_high_bytes") || !repeated && key == "repeats" {
			t.Columns[c].For = table.Programs
		}
	}
	hideEmpty(&t)
	return withSources(t, s)
}

// intervalCells are a median, what surrounds it, and how sure that is.
func intervalCells(v *analyze.Interval) (median, low, high, n, confidence table.Cell) {
	if v == nil {
		a := table.Absent()
		return a, a, a, a, a
	}
	return table.Milliseconds(v.Median), table.Milliseconds(v.Low), table.Milliseconds(v.High), table.Count(int64(v.N)),
		table.Cell{Text: table.Fixed(100*v.Confidence, 1), Value: v.Confidence}
}

// spreadNotes say what low and high are, for each kind of interval that the cells have.
func spreadNotes(s *analyze.Study) []string {
	kinds := map[string]bool{}
	for i := range s.Cells {
		if v := s.Cells[i].StepMS; v != nil {
			kinds[spreadNote(v)] = true
		}
	}
	return sortedKeys(kinds)
}

// spreadNote says what low and high are.
func spreadNote(v *analyze.Interval) string {
	clock := map[string]string{analyze.ClockGPU: "GPU time", analyze.ClockWall: "wall time"}[v.Clock]
	what, ends := "step ms: median of n steps ("+clock+")", "the fastest and the slowest step"
	if v.Over == analyze.OverRepeats {
		what, ends = "step ms: median of the medians of n repeats ("+clock+")", "the fastest and the slowest repeat"
	}
	if v.Of == analyze.OfMedian {
		return what + "; low and high enclose the true median with at least 95 % confidence (order statistics)"
	}
	return what + "; low and high are " + ends
}
