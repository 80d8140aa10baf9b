package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// tagsColumn is the column of tags, shown if any run has tags.
var tagsColumn = table.Column{Title: "Tags", Key: "tags", Priority: 2}

// RunsTable lists the runs of a store.
func RunsTable(doc analyze.RunsDocument) table.Table {
	t := table.Table{Columns: []table.Column{
		{Title: "Run id", Key: "run_id"},
		{Title: "Name", Key: "name", Priority: 2},
		{Title: "Suite", Key: "suite"},
		{Title: "Status", Key: "status", Priority: 4},
		{Title: "Source", Key: "source"},
		{Title: "Peak MiB", Key: "peak_bytes", Priority: 5, Right: true, Begins: true},
		{Title: "Reserved at the peak MiB", Key: "reserved_at_peak_bytes", Right: true},
		{Title: "Highest reserved MiB", Key: "peak_reserved_bytes", Right: true},
		{Title: "Step ms", Key: "step_ms", Priority: 1, Right: true},
		{Title: "Samples/s", Key: "samples_per_s", Right: true},
		{Title: "GPU", Key: "gpu"},
		{Title: "Started (UTC)", Key: "started"},
		{Title: "Superseded by", Key: "superseded_by", For: table.Programs},
	}}
	doc.Runs = tellRuns(doc.Runs)
	t.Document = doc
	superseded, trials, imported, together := false, false, false, []string{}
	if all := sameBadge(doc.Runs, func(r *analyze.RunsRow) string { return r.Badge() }); all != "" {
		t.ForPrograms("source")
		t.Notes = all.notes()
	}
	for i := range doc.Runs {
		r := &doc.Runs[i]
		source := r.Badge()
		switch source {
		case "":
			source = r.Source
		case schemas.Bounded:
			source = r.Source + ", " + source
		}
		if r.Bounded() {
			t.Notes = append(t.Notes, r.RunID+": "+boundedPeak(*r.PeakLowBytes, *r.PeakHighBytes))
		}
		for k := range r.Remarks {
			// A fatal failure of a hook is already the reason in the status.
			if m := &r.Remarks[k]; m.Kind == analyze.RemarkHookFailed && !m.Hook.Fatal {
				t.Notes = append(t.Notes, r.RunID+": "+r.Warnings[k])
			}
		}
		started := table.Absent()
		if !r.Started.IsZero() {
			started = table.Cell{Text: r.Started.UTC().Format("2006-01-02 15:04"),
				Value: r.Started.UTC().Format(time.RFC3339Nano)}
		}
		status := table.Text(r.Status)
		if r.Source == schemas.Imported && r.Status == schemas.StatusOK { // the end of an imported run was not recorded
			status, imported = table.Absent(), true
			if n := r.FailedRequests; n != nil && *n > 0 {
				t.Notes = append(t.Notes, fmt.Sprintf("%s: %s for memory failed; dpsight findings lists them",
					r.RunID, units.Plural(*n, "request", "requests")))
			}
		}
		if r.Source == schemas.Imported && r.NormsOnly() {
			t.Notes = append(t.Notes, r.RunID+": norm pass only, not private: it does not clip and adds no noise")
		}
		if r.SupersededBy != nil {
			status.Text += ", superseded"
			superseded = true
		}
		suite := table.Optional(r.Suite, table.Text)
		if r.ReservedTogether {
			together = append(together, r.Name)
		}
		if r.Trial {
			suite.Text += ", trial"
			trials = true
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(r.RunID), table.Text(r.Name), suite, status, table.Text(source),
			table.Optional(r.PeakBytes, table.Bytes), table.Optional(r.ReservedAtPeakBytes, table.Bytes),
			table.Optional(r.PeakReservedBytes, table.Bytes), table.Optional(r.StepMS, table.Milliseconds),
			table.Optional(r.SamplesPerS, rate), table.Optional(r.GPU, table.Text), started,
			table.Optional(r.SupersededBy, table.Text)})
		if r.Reason != "" && r.Status != schemas.StatusOK {
			t.Notes = append(t.Notes, fmt.Sprintf("%s: %s: %s", r.RunID, r.Status, r.Reason))
		}
	}
	if slices.ContainsFunc(doc.Runs, func(r analyze.RunsRow) bool { return len(r.Tags) > 0 }) {
		t.Columns = append(t.Columns, tagsColumn)
		for i := range doc.Runs {
			t.Rows[i] = append(t.Rows[i], table.Text(strings.Join(doc.Runs[i].Tags, " ")))
		}
	}
	if imported {
		t.Notes = append(t.Notes, "no status: an imported file does not say how its run ended")
	}
	if len(together) > 0 {
		t.Notes = append(t.Notes, "reserved: the sum of several processes on one device: "+strings.Join(together,
			", "))
	}
	if superseded {
		t.Notes = append(t.Notes, "superseded: a failed run whose experiment was run again")
	}
	if trials {
		t.Notes = append(t.Notes, "trial: a value that dpsight predict --vary tried; commands skip trials unless you name "+
			"them, or the store has nothing else")
	}
	t.Notes = append(t.Notes, digestNotes(len(doc.Runs), func(i int) *identity.Identity {
		return &doc.Runs[i].Identity
	})...)
	t.Notes = append(t.Notes, unlikeWords(doc.UnlikeArguments())...)
	t.Notes = append(t.Notes, rulesNotesOf(len(doc.Runs), func(i int) *identity.Identity {
		return &doc.Runs[i].Identity
	})...)
	if differing := doc.Differing(); slices.ContainsFunc(differing, func(text string) bool { return text != "" }) {
		after := 1 + slices.IndexFunc(t.Columns, func(c table.Column) bool { return c.Key == "name" })
		t.Columns = slices.Insert(t.Columns, after, table.Column{Title: "Differs in", For: table.People,
			Priority: 3})
		for i, text := range differing {
			t.Rows[i] = slices.Insert(t.Rows[i], after, table.Text(text))
		}
	}
	return t
}

// RecordedTables returns tables of the run that was just recorded: its ending and, if all, also its row in the list and
// its peak by category. If the run has no peak although it should have, for example because it trains on the CPU, and
// its collector gave no reason, warnings give one.
func RecordedTables(e Ending, m *schemas.Manifest, all bool) (tables []table.Table, warnings []string) {
	if all {
		tables = []table.Table{RunsTable(analyze.Runs([]analyze.Summary{*e.Run}))}
	}
	if b := e.Run.Breakdown; len(b.Devices) > 0 {
		if all {
			tables = append(tables, BreakdownTables(memory.NewBreakdownDocument(b))...)
		}
	} else if len(m.Warnings) == 0 && !m.Bare {
		warnings = RunWords(e.Run.Remarks)
	}
	return append(tables, EndingTable(e)), warnings
}
