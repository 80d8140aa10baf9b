package report

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
)

func TestColumnsAndOrderOfRuns(t *testing.T) {
	row := func(name string, peak *int64, batch any) analyze.RunsRow {
		return analyze.RunsRow{Identity: identity.Identity{RunID: name, Name: name, Params: map[string]any{"batch": batch}},
			PeakBytes: peak}
	}
	doc := analyze.RunsDocument{Runs: []analyze.RunsRow{row("b", new(int64(3<<20)), float64(16)), row("none", nil, nil),
		row("a", new(int64(20<<20)), float64(8))}}
	for _, c := range []struct{ columns, sort, want string }{
		{"name,peak", "", "b 3.00|none –|a 20.00"},
		{"name", "peak", "b|a|none"},
		{"name", "-peak", "a|b|none"},
		{"batch,id", "batch", "8 a|16 b|– none"},
		{"name", "-name", "none|b|a"},
	} {
		table, err := RunsTableOf(doc, strings.Split(c.columns, ","), c.sort)
		var rows []string
		for _, r := range table.Rows {
			var cells []string
			for _, cell := range r {
				cells = append(cells, cell.Text)
			}
			rows = append(rows, strings.Join(cells, " "))
		}
		if got := strings.Join(rows, "|"); err != nil || got != c.want {
			t.Errorf("--columns %s --sort %s: %s, want %s (%v)", c.columns, c.sort, got, c.want, err)
		}
	}
	if table, err := RunsTableOf(doc, []string{"tags"}, ""); err != nil || table.Rows[0][0].Text != "–" {
		t.Errorf("tags, which no run has: %v", err)
	}
	_, err := RunsTableOf(doc, []string{"pek"}, "")
	if hint, ok := err.(interface{ Hint() string }); !ok || !strings.Contains(hint.Hint(), "peak, ") ||
		!strings.Contains(hint.Hint(), "step, ") || !strings.Contains(hint.Hint(), "batch") {
		t.Errorf("what columns there are is not said: %v", err)
	}
	for _, wrong := range [][2]string{{"pek", ""}, {"name", "pek"}} {
		if _, err := RunsTableOf(doc, []string{wrong[0]}, wrong[1]); err == nil || !strings.Contains(err.Error(), "pek") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if doc.Runs[0].Name != "b" {
		t.Error("sorting a table has sorted the document of others")
	}
}
