package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/analyze/trend"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

// trendOf returns the trend of experiments. series has the bytes of activations of each experiment, one value for each
// revision.
func trendOf(t *testing.T, value string, series map[string][]int64) trend.Document {
	t.Helper()
	var runs []analyze.Summary
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, bytes := range series {
		for n, activations := range bytes {
			in := fixture.Sized(name, map[schemas.Category]int64{schemas.Parameters: 1 << 30, schemas.Activations: activations})
			at := began.AddDate(0, 0, n)
			in.Manifest.RunID, in.Manifest.Command = fmt.Sprintf("%s-%d", name, n), []string{"python", "train.py"}
			in.Manifest.Git = &schemas.Git{Revision: fmt.Sprintf("%012x%028d", n+1, 0), Committed: &at}
			in.Manifest.Start = at
			s := analyze.Summarize(in)
			s.StepMS = &timing.Interval{Median: float64(activations) / 1e6, Clock: timing.ClockGPU}
			runs = append(runs, s)
		}
	}
	m, err := compare.ParseMetric(value)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := trend.Of(runs, trend.Revision, m)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// trends returns trends whose pictures are hard to draw.
func trends(t *testing.T) map[string]trend.Document {
	many := map[string][]int64{}
	for i := range 20 {
		many[fmt.Sprintf("experiment-%02d", i)] = []int64{1 << 20, 2 << 20, 2 << 20}
	}
	var up, flat []int64
	for i := range int64(60) {
		up, flat = append(up, i<<24), append(flat, 1<<24)
	}
	return map[string]trend.Document{
		"every revision is a step": trendOf(t, "peak", map[string][]int64{"up": up, "flat": flat}),
		"many experiments":         trendOf(t, "peak", many),
		"one point":                trendOf(t, "peak", map[string][]int64{"one": {1 << 20}}),
		"names": trendOf(t, "peak", map[string][]int64{"按样本梯度裁剪 实验": {1 << 20, 2 << 20},
			strings.Repeat("W", 90): {1 << 20, 1 << 30}}),
		"times":   trendOf(t, "time", map[string][]int64{"up": append(up[:20:20], flat...)}),
		"nothing": trendOf(t, "category:activations", map[string][]int64{"none": {0, 0, 0}}),
	}
}

// The table of a trend has a row for each level of the value, and names the jump with which the level began. If there
// are too few values for a test, the table says so.
func TestTrendTable(t *testing.T) {
	rows := func(doc trend.Document) (lines []string) {
		for _, r := range report.TrendTables(doc, false)[0].Rows {
			var words []string
			for _, c := range r {
				words = append(words, c.Text)
			}
			lines = append(lines, strings.Join(words, "|"))
		}
		return lines
	}
	got := rows(trendOf(t, "peak", map[string][]int64{"train": {100 << 20, 100 << 20, 110 << 20, 110 << 20, 90 << 20}}))
	want := []string{
		"train|000000000001|000000000002|2|2|1,124.00|||",
		"|000000000003|000000000004|2|2|1,134.00|+10.00|+0.9|activations +10.00 MiB (+10.0 %)",
		"|000000000005|000000000005|1|1|1,114.00|−20.00|−1.8|activations −20.00 MiB (−18.2 %)"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	doc := trendOf(t, "peak", map[string][]int64{"train": {1 << 20, 2 << 20}})
	for i := range doc.Experiments[0].Points {
		doc.Experiments[0].Points[i].Committed = new(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	}
	if notes := strings.Join(report.TrendTables(doc, false)[0].Notes, "\n"); !strings.Contains(notes, "in one second") {
		t.Errorf("that two commits are of one second is not said: %s", notes)
	}
	if got := rows(trendOf(t, "time", map[string][]int64{"train": {1e6, 2e6, 9e6}})); len(got) != 1 ||
		!strings.HasSuffix(got[0], "|~|~||") {
		t.Errorf("three times: %q", got)
	}
	records := report.TrendTables(trendOf(t, "peak", map[string][]int64{"train": {1 << 20, 2 << 20}}), true)[0]
	if len(records.Rows) != 2 || records.Rows[1][12].Value != float64(1<<20) {
		t.Errorf("%+v", records.Rows)
	}
}
