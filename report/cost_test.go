package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// If no run has a value for a column of costs, the table has neither the column nor its note. A run without tables
// shows no zeros.
func TestCostColumnsAndNotes(t *testing.T) {
	run := analyze.CostRun{Verdict: schemas.Exact, PeakBytes: new(int64(1 << 20)), TorchPeakBytes: new(int64(1 << 20)),
		Events: 7}
	timed := run
	timed.BareStepMS, timed.DrainShare = new(10.0), new(0.01)
	beside := timed
	beside.BesideBareRun = new(0.02)
	for _, c := range []struct {
		what  string
		run   analyze.CostRun
		shown []string
		notes []string // the beginning of each note
	}{
		{"not ingested", analyze.CostRun{Remarks: []analyze.Remark{{Kind: analyze.RemarkNotIngested}}}, []string{"name"},
			[]string{"not ingested yet: "}},
		{"predicted", run, []string{"name", "peak_bytes", "torch_peak_bytes", "events", "missing_events",
			"residue_bytes"}, nil},
		{"timed", timed, []string{"name", "peak_bytes", "torch_peak_bytes", "events", "missing_events", "residue_bytes",
			"bare_step_ms", "drain_share"},
			[]string{"steps are medians", "drains lie"}},
		{"beside a bare run", beside, []string{"name", "peak_bytes", "torch_peak_bytes", "events", "missing_events",
			"residue_bytes", "bare_step_ms", "beside_bare_run", "drain_share"},
			[]string{"beside bare run", "steps are medians", "drains lie"}},
	} {
		got := CostTable(analyze.NewCostDocument(c.run))
		var shown []string
		for _, col := range got.Columns {
			if col.For != table.Programs {
				shown = append(shown, col.Key)
			}
		}
		if !slices.Equal(shown, c.shown) {
			t.Errorf("%s: columns %v, want %v", c.what, shown, c.shown)
		}
		if !slices.EqualFunc(got.Notes, c.notes, strings.HasPrefix) {
			t.Errorf("%s: notes %q, want %q", c.what, got.Notes, c.notes)
		}
	}
}
