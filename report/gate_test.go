package report_test

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

func printed(t *testing.T, format string, tables []table.Table) string {
	t.Helper()
	var b strings.Builder
	if err := table.Write(&b, format, tables...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// grownGhost returns the headline runs, in which ghost needs 400 MiB more of one category.
func grownGhost() []madeUp {
	runs := headline()
	runs[2].blocks[10].mib += 400 // clip_temporaries
	return runs
}

func checked(t *testing.T, now []analyze.Summary, thresholds ...string) report.CheckDocument {
	t.Helper()
	list, err := gate.ParseThresholds(thresholds)
	if err != nil {
		t.Fatal(err)
	}
	return checkRuns(gate.BaselineOf(summaries(headline()...), "test"), now,
		gate.Options{Baseline: "main.json", Thresholds: list, Floor: 1 << 20})
}

func TestCheckTables(t *testing.T) {
	doc := checked(t, summaries(grownGhost()...), "peak=1.001", "category:*=1.05")
	text := printed(t, "markdown", report.CheckTables(doc))
	for _, want := range []string{
		"**dpsight check failed: 1 of 3 experiments**\n",
		"| What fails |\n|:---|\n| ghost: peak allocated grew by 400.00 MiB (",
		"the largest part of it is clip\\_temporaries (+400.00 MiB) |\n",
		"| ghost: clip\\_temporaries at the peak grew by 400.00 MiB (6.51 %), from 6,144.00 MiB to 6,544.00 MiB; " +
			"the threshold is 1.05 |\n",
		"**Beside the baseline main.json**\n",
		"| ghost | clip\\_temporaries at the peak (MiB) | 6,144.00 | 6,544.00 | +400.00 | 1.065× | 1.05 | exceeded |\n",
		"| vanilla | peak allocated (MiB) |",
		"- categories that did not change are left out\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "| ghost | parameters") {
		t.Errorf("a category that did not change is listed:\n%s", text)
	}
	doc = checked(t, summaries(headline()...), "peak=1.05", "time=1.1")
	text = printed(t, "table", report.CheckTables(doc))
	if !strings.HasPrefix(text, "dpsight check: no regression in 3 experiments beside main.json\n") ||
		strings.Contains(text, "fails") {
		t.Errorf("a check that passes:\n%s", text)
	}
	records, err := csv.NewReader(strings.NewReader(printed(t, "csv",
		report.CheckTables(checked(t, summaries(grownGhost()...), "peak=1"))))).ReadAll()
	if err != nil || len(records) != 4 || records[0][2] != "metric" || records[2][2] != "peak" ||
		records[2][6] != "419430400" || records[2][9] != "exceeded" {
		t.Errorf("%q, %v", records, err)
	}
}

// An experiment that is missing or that failed still has a row in the table of a check. The row of a prediction says
// that it is one.
func TestCheckTablesOfOtherEnds(t *testing.T) {
	runs := headline()[1:]
	runs[0].status, runs[0].reason = schemas.StatusOOM, "CUDA out of memory"
	runs[1].source = schemas.Predicted
	text := printed(t, "table", report.CheckTables(checked(t, summaries(runs...), "peak=1.05", "time=1.1")))
	for _, want := range []string{"dpsight check failed: 2 of 3 experiments\n", "vanilla is missing: ",
		"dpsgd fails (oom: CUDA out of memory)", "  newly OOM\n", "  gone\n",
		"ghost [predicted, indicative]  step time (ms)",
		"skipped: the run is predicted; only measured runs have it", "note: predicted: "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
