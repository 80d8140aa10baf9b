package report

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/units"
)

// SuccessTables returns a table of each method's runs that ended well, with their figures, and a table of the other
// runs, with why they failed and where their logs are.
func SuccessTables(doc compare.SuccessDocument) []table.Table {
	t := table.Table{Title: "Runs by method", Document: doc, Columns: []table.Column{
		{Title: "Method", Key: "method"},
		{Key: "source", For: table.Programs},
		{Key: "profile", For: table.Programs},
		{Title: "Runs", Key: "runs", Right: true},
		{Title: "Of them bare", Key: "bare", Right: true},
		{Title: "OK", Key: "ok", Right: true},
		{Title: "Success", Key: "success_rate", Right: true},
		{Title: "Mean peak MiB", Key: "mean_peak_bytes", Right: true},
		{Title: "Mean step ms", Key: "mean_step_ms", Right: true},
	},
		Notes: []string{"means are over the runs that ended well, for all other parameters"}}
	failures := table.Table{Title: "Failures", Columns: []table.Column{{Title: "Run", Key: "name"},
		{Title: "Method", Key: "method"}, {Title: "Status", Key: "status"},
		{Title: "Reason", Key: "reason"}, {Title: "Peak MiB until then", Key: "peak_bytes", Right: true},
		{Title: "Log", Key: "log"}}}
	bare, bounded, all := 0, 0, sameBadge(doc.Methods, (*compare.SuccessRow).Badge)
	t.Notes = append(t.Notes, all.notes()...)
	for i := range doc.Methods {
		r := &doc.Methods[i]
		bare, bounded = bare+r.Bare, bounded+r.Bounded
		method := table.Text(r.Method)
		if badge := r.Badge(); badge != "" && all == "" {
			method.Text += " [" + badge + "]"
		}
		t.Rows = append(t.Rows, []table.Cell{method, table.Text(r.Source), table.Optional(r.Profile, table.Text),
			table.Count(int64(r.Runs)), table.Count(int64(r.Bare)), table.Count(int64(r.OK)),
			{Text: fmt.Sprintf("%.0f %%", 100*r.SuccessRate), Value: r.SuccessRate},
			table.Optional(r.MeanPeakBytes, table.Bytes), table.Optional(r.MeanStepMS, table.Milliseconds)})
		for _, f := range r.Failures {
			failures.Rows = append(failures.Rows, []table.Cell{table.Text(f.Name), table.Text(r.Method),
				table.Text(f.Status), table.Text(f.Reason),
				table.Optional(f.PeakBytes, table.Bytes), table.Text(f.Log)})
		}
	}
	if bounded > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%s bounded: the means may be higher",
			units.Plural(bounded, "peak is", "peaks are")))
	}
	if bare > 0 {
		t.Notes = append(t.Notes, "counts runs, not experiments: repeats and bare runs (counters and timers only) are "+
			"included")
	} else {
		t.Columns[slices.IndexFunc(t.Columns, func(c table.Column) bool { return c.Key == "bare" })].For =
			table.Programs
	}
	if len(failures.Rows) == 0 {
		return []table.Table{t}
	}
	return []table.Table{t, failures}
}
