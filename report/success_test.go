package report

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report/table"
)

func TestSuccessTables(t *testing.T) {
	peak, step := int64(3<<20), 12.5
	doc := compare.SuccessDocument{Schema: compare.SuccessSchema, Runs: 3, OK: 2, Methods: []compare.SuccessRow{
		{Method: "vanilla", Runs: 1, OK: 1, SuccessRate: 1, MeanPeakBytes: &peak, MeanStepMS: &step},
		{Method: "ghost", Runs: 2, OK: 1, SuccessRate: 0.5, Failures: []compare.Failure{{RunID: "r", Name: "ghost",
			Status: "oom", Reason: "no memory", Log: "r/stderr.log", PeakBytes: &peak}}},
	}}
	print := func(format string, doc compare.SuccessDocument) string {
		var b strings.Builder
		if err := table.Write(&b, format, SuccessTables(doc)...); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const want = `Runs by method
Method   Runs  OK  Success  Mean peak MiB  Mean step ms
-------  ----  --  -------  -------------  ------------
vanilla     1   1    100 %           3.00          12.5
ghost       2   1     50 %              –             –
note: means are over the runs that ended well, for all other parameters

Failures
Run    Method  Status  Reason     Peak MiB until then  Log
-----  ------  ------  ---------  -------------------  ------------
ghost  ghost   oom     no memory                 3.00  r/stderr.log
`
	if got := print("table", doc); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	h200 := "h200"
	doc.Methods = append(doc.Methods[:1], compare.SuccessRow{Method: "vanilla", Source: "predicted", Profile: &h200,
		Runs: 1, OK: 1, SuccessRate: 1, MeanPeakBytes: &peak})
	if got := print("table", doc); !strings.Contains(got, "vanilla [predicted (phantom h200)] ") {
		t.Errorf("a prediction stands as one:\n%s", got)
	}
	if got := print("table", doc); strings.Contains(got, "bare") {
		t.Errorf("no run is bare:\n%s", got)
	}
	doc.Methods[0].Runs, doc.Methods[0].Bare = 3, 1
	if got := print("table", doc); !strings.Contains(got, "Of them bare") ||
		!strings.Contains(got, "counts runs, not experiments") {
		t.Errorf("a bare run counts as any other, and nobody says so:\n%s", got)
	}
	if got := print("table", doc); strings.Contains(got, "Failures") {
		t.Errorf("without a failure there is no table of them:\n%s", got)
	}
	if got := print("json", doc); !strings.Contains(got, `"schema": "dpsight.success/1"`) {
		t.Error(got)
	}
}
