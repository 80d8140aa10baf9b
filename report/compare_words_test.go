package report

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	madeup "github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

func TestComparisonWords(t *testing.T) {
	cap := timing.Throttle{Slowed: 1, Sampled: 2, Steps: 3, Reasons: schemas.ThrottlePowerCap}
	for _, c := range []struct {
		remark compare.Remark
		want   string
	}{
		{compare.Remark{Kind: compare.RemarkThrottled, Throttled: [2]timing.Throttle{cap, {Steps: 3, Sampled: 3}}},
			"the GPU was slowed down in 1 of 2 timed steps that were sampled (power cap)"},
		{compare.Remark{Kind: compare.RemarkThrottled, Throttled: [2]timing.Throttle{{}, cap}},
			"the baseline's GPU was slowed down in 1 of 2 timed steps that were sampled (power cap)"},
		{compare.Remark{Kind: compare.RemarkEnergyLent}, "energy comes from the bare run of the same experiment"},
		{compare.Remark{Kind: compare.RemarkPeaksDiffer, N: 3, Low: 1 << 20, High: 3 << 20}, "the peaks of 3 " +
			"repeats differ: 1.00 MiB to 3.00 MiB; the breakdown is of the median one"},
		{compare.Remark{Kind: compare.RemarkClocks, N: 2, Of: 3, What: timing.ClockGPU}, "times and rates are of 2 " +
			"of 3 repeats: the others were timed by another clock (gpu)"},
		{compare.Remark{Kind: compare.RemarkKept, OfBaseline: true, High: 1 << 20}, "the baseline keeps .grad " +
			"between steps and the run frees it: up to 1.00 MiB of the difference comes from zero_grad, not from " +
			"the method"},
		{compare.Remark{Kind: compare.RemarkKept, Freed: new(int64(0)), Kept: new(int64(1 << 20))}, "the run keeps " +
			".grad between steps and the baseline frees it: if both freed it, the peaks would differ by 0.00 MiB and " +
			"not by +1.00 MiB"},
		{compare.Remark{Kind: compare.RemarkBare, OfBaseline: true}, "the baseline is bare, the run is not: only " +
			"peak and time can be compared"},
		{compare.Remark{Kind: compare.RemarkNormOnly, OfBaseline: true}, "the baseline (norm_only) computes only " +
			"norms: it is not a DP-SGD step"},
	} {
		if got := comparisonWord(&c.remark); got != c.want {
			t.Errorf("%s: %q, want %q", c.remark.Kind, got, c.want)
		}
	}
}

// No two metrics have the same name.
func TestMetricNames(t *testing.T) {
	seen := map[string]bool{}
	for _, text := range compare.MetricNames() {
		text = strings.Replace(text, "NAME", schemas.Gradients, 1)
		name := metricName(text)
		if name == text || name == "" || strings.TrimSpace(name) != name || seen[name] {
			t.Errorf("%s is %q", text, name)
		}
		seen[name] = true
	}
	if got := metricName("category:*"); got != "each category at the peak" {
		t.Error(got)
	}
}

// If experiments differ in arguments that no parameter names, a note of the study says so. If the study compares
// nothing, a note says that nothing is compared.
func TestStudyNotes(t *testing.T) {
	m := map[string]any{"method": "dp"}
	s := compare.NewStudy([]analyze.Summary{madeup.Scripted("d", 1000, m, "python", "train.py", "--bs", "8"),
		madeup.Scripted("f", 2000, m, "python", "train.py", "--bs", "16")}, nil)
	if got := studyNotes(&s); len(got) != 1 || !strings.Contains(got[0], "--param") {
		t.Errorf("%q", got)
	}
	s = compare.Study{Twins: []string{"a-bare"}, Uncompared: &compare.OtherWork{What: "models", Param: "hidden_dim",
		Now: "64", Baseline: "128"}}
	if got := strings.Join(studyNotes(&s), "; "); got != "bare runs appear only in the table of costs: a-bare; no "+
		"overhead: the runs are of different models (hidden_dim 64 and 128); name a baseline with --baseline" {
		t.Error(got)
	}
}
