package report

import (
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/units"
)

// CostTable prints the cost of recording for each run, and whether the recording is complete and left the peak
// unchanged.
func CostTable(doc analyze.CostDocument) table.Table {
	doc.Runs = tellCosts(doc.Runs)
	t := table.Table{Title: "What recording cost", Document: doc, Columns: []table.Column{
		{Title: "Run", Key: "name"},
		{Title: "Replayed peak B", Key: "peak_bytes", Right: true},
		{Title: "torch's peak B", Key: "torch_peak_bytes", Right: true},
		{Title: "Reserved B", Key: "peak_reserved_bytes", Right: true},
		{Title: "Events", Key: "events", Right: true},
		{Title: "Missing", Key: "missing_events", Priority: 5, Right: true},
		{Title: "Residue B", Key: "residue_bytes", Priority: 4, Right: true},
		{Title: "Bare step ms", Key: "bare_step_ms", Priority: 3, Right: true, Begins: true},
		{Title: "Beside bare run", Key: "beside_bare_run", Right: true},
		{Title: "Instrumented step ms", Key: "instrumented_step_ms", Priority: 2, Right: true},
		{Title: "Δ", Key: "instrument_ms", Right: true},
		{Title: "Δ %", Key: "instrument_share", Priority: 1, Right: true},
		{Title: "Bare steps", Key: "bare_steps", For: table.Programs},
		{Title: "Instrumented steps", Key: "instrumented_steps", For: table.Programs},
		{Title: "Recorded steps", Key: "recorded_steps", For: table.Programs},
		{Title: "Windows", Key: "windows", For: table.Programs},
		{Title: "Drains ms", Key: "drain_ms", Right: true, Begins: true},
		{Title: "Drains", Key: "drain_share", Right: true},
		{Title: "Lines", Key: "lines_share", Right: true},
		{Title: "Collector", Key: "collector_share", Right: true},
		{Title: "Collector set-up ms", Key: "collector_setup_ms", For: table.Programs},
		{Title: "Collector sealing ms", Key: "collector_seal_ms", For: table.Programs},
	}}
	share := func(x float64) table.Cell { return table.Cell{Text: units.Fixed(100*x, 2) + " %", Value: x} }
	signed := func(x float64) table.Cell {
		c := share(x)
		if x > 0 {
			c.Text = "+" + c.Text
		}
		return c
	}
	known := func(n int64) table.Cell { // older versions of ingest wrote 0 for an unknown number
		if n == 0 {
			return table.Absent()
		}
		return table.Count(n)
	}
	all := of(len(doc.Runs), func(i int) *identity.Identity { return &doc.Runs[i].Identity })
	t.Notes = all.notes()
	var notes runNotes
	for i := range doc.Runs {
		r := &doc.Runs[i]
		replayed := func(n int64) table.Cell { // a run without tables was not replayed
			if r.Verdict == "" {
				return table.Absent()
			}
			return table.Count(n)
		}
		t.Rows = append(t.Rows, []table.Cell{all.cell(r.Shown(), &r.Identity), table.Optional(r.PeakBytes, table.Count),
			table.Optional(r.TorchPeakBytes, table.Count), table.Optional(r.PeakReservedBytes, table.Count),
			replayed(r.Events), replayed(r.MissingEvents), replayed(r.ResidueBytes), table.Optional(r.BareStepMS,
				table.Milliseconds), table.Optional(r.BesideBareRun, signed),
			table.Optional(r.InstrumentedStepMS, table.Milliseconds), table.Optional(r.InstrumentMS,
				table.DeltaMilliseconds), table.Optional(r.InstrumentShare, share),
			table.Count(r.BareSteps), table.Count(r.InstrumentedSteps), known(r.RecordedSteps), known(r.Windows),
			table.Optional(r.DrainMS, table.Milliseconds),
			table.Optional(r.DrainShare, share), table.Optional(r.LinesShare, share), table.Optional(r.CollectorShare, share),
			table.Optional(r.CollectorSetupMS, table.Milliseconds), table.Optional(r.CollectorSealMS,
				table.Milliseconds)})
		for _, w := range r.Warnings {
			notes.add(all.badged(r.Shown(), &r.Identity), w)
		}
	}
	t.Notes = append(t.Notes, notes.all()...)
	t.Notes = append(t.Notes, costNotes(doc)...)
	hideEmpty(&t)
	return t
}

// costNotes explains the columns that at least one run fills.
func costNotes(doc analyze.CostDocument) (notes []string) {
	for _, n := range []struct {
		text string
		of   func(*analyze.CostRun) bool
	}{
		{"beside bare run: how much longer a bare step takes here than in the bare runs of the same experiment (their " +
			"median), which record no allocator events",
			func(r *analyze.CostRun) bool { return r.BesideBareRun != nil }},
		{"steps are medians of one run; Δ, what module hooks, tags and module times cost an instrumented step, is in " +
			"no published time",
			func(r *analyze.CostRun) bool { return r.BareStepMS != nil || r.InstrumentedStepMS != nil }},
		{"drains lie between steps: their share is of the recorded time; the collector's is of one core",
			func(r *analyze.CostRun) bool { return r.DrainShare != nil || r.CollectorShare != nil }},
		{"lines: what following the lines of the script took of the recorded time, by what one line takes",
			func(r *analyze.CostRun) bool { return r.LinesShare != nil }},
	} {
		if slices.ContainsFunc(doc.Runs, func(r analyze.CostRun) bool { return n.of(&r) }) {
			notes = append(notes, n.text)
		}
	}
	return notes
}
