package report_test

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
)

// If runs have the same name, the table of runs has a column that shows how they differ. If all names differ, the table
// has no such column. The rows for programs never have it.
func TestRunsOfOneName(t *testing.T) {
	runs := headline()
	runs[2].name, runs[2].params = runs[1].name, map[string]any{"method": "dpsgd", "batch_size": 16}
	listed := report.RunsTable(analyze.Runs(summaries(runs...)))
	text, plain := printed(t, "markdown", []table.Table{listed}), report.RunsTable(analyze.Runs(summaries(runs[:2]...)))
	if !strings.Contains(text, "| Name | Differs in | Suite |") ||
		!strings.Contains(text, " | dpsgd | batch\\_size=16 | ") || strings.Count(text, "batch\\_size") != 2 {
		t.Errorf("runs that share a name:\n%s", text)
	}
	if text := printed(t, "markdown", []table.Table{plain}); strings.Contains(text, "Differs") {
		t.Errorf("runs that share none:\n%s", text)
	}
	header := func(one table.Table) string {
		first, _, _ := strings.Cut(printed(t, "csv", []table.Table{one}), "\n")
		return first
	}
	if header(listed) != header(plain) {
		t.Errorf("to programs: %q, %q", header(listed), header(plain))
	}
}
