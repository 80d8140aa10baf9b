package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/report/table"
)

// What makes a run's figures doubtful stands below its findings, and what a saving costs beside it.
func TestFindingsNotes(t *testing.T) {
	doc := findings.Document{Runs: []findings.Run{{Identity: identity.Identity{RunID: "r", Name: "r"},
		Warnings: []string{"the run ended early (oom)"}, NotLooked: []string{"times: none"},
		Findings: []findings.Finding{
			{ID: findings.ClipTemporaries, Of: findings.OfHighestRecorded, Sentence: "There are some.",
				Change: "have none", SavesBytes: new(int64(2 << 20)), CostsMS: new(12.5), Assumption: "measured"},
			{ID: findings.Cached, Of: findings.OfRecordedReserved, Sentence: "Some are free.", Change: "use them",
				SavesBytes: new(int64(3 << 20)), Assumption: "at most"},
		}}}}
	notes := FindingsTables(doc)[0].Notes
	for _, want := range []string{
		"clip-temporaries: There are some. What to change: have none. It saves 2.00 MiB of the peak allocated and " +
			"costs 12.5 ms of a step (measured).",
		"cached: Some are free. What to change: use them. It saves 3.00 MiB of the peak reserved (at most).",
		"the run ended early (oom)",
	} {
		if !slices.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(notes, "\n"))
		}
	}
	of := slices.IndexFunc(findingColumns, func(c table.Column) bool { return c.Key == "of" })
	if got := FindingsTables(doc)[0].Rows[0][of].Text; got != "highest recorded" {
		t.Errorf("of %q", got)
	}
}
