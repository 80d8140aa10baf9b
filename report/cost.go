package report

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/table"
)

// CostTable prints what the instrument cost each run, beside the proof that it lost and moved nothing.
func CostTable(doc analyze.CostDocument) table.Table {
	t := table.Table{Title: "What recording cost", Document: doc, Columns: []table.Column{{Title: "Run", Key: "name"}, {Title: "Replayed peak B", Key: "peak_bytes", Right: true},
		{Title: "torch's peak B", Key: "torch_peak_bytes", Right: true}, {Title: "Reserved B", Key: "peak_reserved_bytes", Right: true}, {Title: "Events", Key: "events", Right: true}, {Title: "Missing", Key: "missing_events", Right: true},
		{Title: "Residue B", Key: "residue_bytes", Right: true}, {Title: "Bare step ms", Key: "bare_step_ms", Right: true},
		{Title: "Instrumented step ms", Key: "instrumented_step_ms", Right: true}, {Title: "Drains ms", Key: "drain_ms", Right: true},
		{Title: "Drains", Key: "drain_share", Right: true}, {Title: "Collector", Key: "collector_share", Right: true}}}
	share := func(x float64) table.Cell { return table.Cell{Text: table.Fixed(100*x, 2) + " %", Value: x} }
	for i := range doc.Runs {
		r := &doc.Runs[i]
		t.Rows = append(t.Rows, []table.Cell{table.Text(identified(&r.Identity)), table.Optional(r.PeakBytes, table.Count), table.Optional(r.TorchPeakBytes, table.Count), table.Optional(r.PeakReservedBytes, table.Count),
			table.Count(r.Events), table.Count(r.MissingEvents), table.Count(r.ResidueBytes), table.Optional(r.BareStepMS, table.Milliseconds),
			table.Optional(r.InstrumentedStepMS, table.Milliseconds), table.Optional(r.DrainMS, table.Milliseconds),
			table.Optional(r.DrainShare, share), table.Optional(r.CollectorShare, share)})
		for _, w := range r.Warnings {
			t.Notes = append(t.Notes, identified(&r.Identity)+": "+w)
		}
	}
	t.Notes = append(t.Notes, "drains lie between steps: their share is of the recorded time; the collector's is of one core")
	return t
}
