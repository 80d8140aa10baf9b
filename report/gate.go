package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// CheckTables returns the tables of a check: first the failures, then everything that was compared. As Markdown, they
// are a comment on a pull request.
func CheckTables(doc CheckDocument) []table.Table {
	var tables []table.Table
	failed := table.Table{Title: checkTitle(&doc), Columns: []table.Column{{Title: "What fails", Key: "failure"}}}
	for _, f := range doc.Failures {
		failed.Rows = append(failed.Rows, []table.Cell{table.Text(f)})
	}
	all := comparedTable(&doc)
	if doc.OK {
		all.Title = failed.Title
	} else {
		failed.Columns[0].For = table.People
		tables = append(tables, failed)
		all.Title = "Beside the baseline " + doc.Baseline
	}
	tables = append(tables, all)
	for i := range tables {
		tables[i].Document = doc
	}
	return tables
}

func checkTitle(doc *CheckDocument) string {
	if doc.OK {
		return "dpsight check: " + doc.Sentence() + " beside " + doc.Baseline
	}
	n := 0
	for i := range doc.Experiments {
		if doc.Experiments[i].Fails {
			n++
		}
	}
	if n == 0 {
		return "dpsight check failed"
	}
	return fmt.Sprintf("dpsight check failed: %d of %s", n,
		units.Plural(len(doc.Experiments), "experiment", "experiments"))
}

// comparedTable has a row for each comparison, and a row for each experiment without one.
func comparedTable(doc *CheckDocument) table.Table {
	t := table.Table{Columns: []table.Column{{Title: "Experiment", Key: "experiment"},
		{Key: "state", For: table.Programs}, {Title: "What", Key: "metric", Priority: 6}, {Key: "unit", For: table.Programs},
		{Title: "Baseline", Key: "baseline", Priority: 1, Right: true},
		{Title: "Now", Key: "current", Priority: 2, Right: true},
		{Title: "Δ", Key: "delta", Right: true},
		{Title: "Ratio", Key: "ratio", Priority: 3, Right: true}, {Title: "Limit", Key: "limit", Priority: 4, Right: true},
		{Title: "Verdict", Key: "verdict", Priority: 5}}}
	leftOut := false
	predicted := false
	badgeOf := func(x *CheckExperiment) string {
		var badges []string
		if x.Source != nil && *x.Source == schemas.Predicted {
			badges = append(badges, "predicted")
			if x.Confidence != "" {
				badges = append(badges, x.Confidence)
			}
		}
		if slices.ContainsFunc(x.Comparisons, func(c CheckComparison) bool {
			return c.CurrentHigh != nil || c.BaselineHigh != nil
		}) {
			badges = append(badges, schemas.Bounded)
		}
		return strings.Join(badges, ", ")
	}
	all := sameBadge(doc.Experiments, badgeOf)
	t.Notes = all.notes()
	for i := range doc.Experiments {
		x := &doc.Experiments[i]
		label := table.Text(x.Label)
		predicted = predicted || x.Source != nil && *x.Source == schemas.Predicted
		if badge := badgeOf(x); badge != "" {
			label = table.Text(x.Label + " [" + badge + "]")
		}
		if all != "" {
			label.Text = x.Label
		}
		if len(x.Comparisons) == 0 || x.newlyFails() {
			t.Rows = append(t.Rows, []table.Cell{label, table.Text(x.State), table.Absent(), table.Absent(),
				table.Absent(), table.Absent(), table.Absent(),
				table.Absent(), table.Absent(), table.Text(stateText(x))})
		}
		for k := range x.Comparisons {
			c := &x.Comparisons[k]
			// Rows for categories that did not change would hide those that did.
			if c.Verdict == gate.VerdictOK && strings.HasPrefix(c.Metric, compare.MetricCategory) && *c.Delta == 0 {
				leftOut = true
				continue
			}
			t.Rows = append(t.Rows, comparisonRow(label, x.State, c))
		}
	}
	if leftOut {
		t.Notes = append(t.Notes, "categories that did not change are left out")
	}
	t.Notes = append(t.Notes, doc.Warnings...)
	if predicted {
		t.Notes = append(t.Notes, predictedNote)
	}
	return t
}

// stateText returns an experiment's state with a short explanation.
func stateText(x *CheckExperiment) string {
	switch {
	case len(x.DiffersIn) > 0:
		return x.State + ": " + strings.Join(x.DiffersIn, "; ")
	case x.State == gate.StateRegressed && !x.Fails:
		return x.State + ": acknowledged"
	case x.State == gate.StateGone && !x.Fails:
		return x.State + ": left out of this check"
	case x.State == gate.StateImproved && x.BaselineStatus != nil && *x.BaselineStatus != schemas.StatusOK:
		return x.State + ": ended with " + *x.BaselineStatus + " in the baseline"
	case x.State == gate.StateNotComparable && x.BaselineStatus != nil && *x.BaselineStatus != schemas.StatusOK:
		return x.State + ": ended with " + *x.Status + ", in the baseline too"
	case x.State != gate.StateNewlyOOM && x.Status != nil && *x.Status != schemas.StatusOK:
		return x.State + ": " + *x.Status
	}
	return x.State
}

// newlyFails reports whether the experiment ended well in the baseline but not in the check.
func (x *CheckExperiment) newlyFails() bool {
	return x.State == gate.StateNewlyFailing || x.State == gate.StateNewlyOOM
}

func comparisonRow(label table.Cell, state string, c *CheckComparison) []table.Cell {
	value, delta := quantityCells(c.Unit)
	verdict := c.Verdict
	if c.Reason != "" {
		verdict += ": " + c.Reason
	}
	if c.Acknowledged != nil {
		verdict = acknowledgedWords(c.Acknowledged, c.Unit)
	}
	if c.CurrentHigh != nil {
		verdict += "; now bounded, at most " + quantity(*c.CurrentHigh, c.Unit)
	}
	if c.BaselineHigh != nil {
		verdict += "; the baseline's is bounded, at most " + quantity(*c.BaselineHigh, c.Unit)
	}
	return []table.Cell{label, table.Text(state), {Text: metricTitle(c.Metric, c.Unit), Value: c.Metric},
		table.Text(string(c.Unit)), table.Optional(c.Baseline, value),
		table.Optional(c.Current, value), table.Optional(c.Delta, delta), table.Optional(c.Ratio, table.Ratio),
		table.Text(c.Limit), {Text: verdict, Value: c.Verdict}}
}

// metricTitle returns a metric's title with the unit of its cells.
func metricTitle(metric string, unit compare.Unit) string {
	title := metricName(metric)
	switch unit {
	case compare.UnitPerSecond: // the title names the unit
		return title
	case compare.UnitBytes:
		return title + " (MiB)"
	}
	return fmt.Sprintf("%s (%s)", title, unit)
}

// quantityCells returns functions that make cells: one for values of a unit, and one for differences.
func quantityCells(u compare.Unit) (value, delta func(float64) table.Cell) {
	switch u {
	case compare.UnitBytes:
		return func(v float64) table.Cell { return table.Bytes(int64(v)) }, func(v float64) table.Cell {
			return table.DeltaBytes(int64(v))
		}
	case compare.UnitMS:
		return table.Milliseconds, table.DeltaMilliseconds
	}
	return rate, func(v float64) table.Cell {
		c := rate(v)
		if v > 0 {
			c.Text = "+" + c.Text
		}
		return c
	}
}
