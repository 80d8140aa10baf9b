package gate

import (
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// An acknowledgement lets a metric exceed its threshold, up to the value that the acknowledgement states and until the
// end of its last day.
func TestAcknowledgements(t *testing.T) {
	thresholds, err := ParseThresholds([]string{"peak=1.05", "samples=1.05"})
	if err != nil {
		t.Fatal(err)
	}
	as := func(metric string, upTo float64, until string) []schemas.Acknowledgement {
		return []schemas.Acknowledgement{{Metric: metric, UpTo: upTo, Until: until, By: "me", Why: "x"}}
	}
	for _, c := range []struct {
		what    string
		ack     []schemas.Acknowledgement
		peak    int64
		samples float64
		fails   bool
		idle    Idle
	}{
		{"nothing", nil, 110, 10, true, ""},
		{"the last day", as("peak", 110, "2026-11-29"), 110, 10, false, ""},
		{"the day after", as("peak", 110, "2026-11-28"), 110, 10, true, IdleExpired},
		{"more than that", as("peak", 109, "2026-12-31"), 110, 10, true, IdleExceeded},
		{"within the threshold", as("peak", 110, "2026-12-31"), 105, 10, false, IdleUnneeded},
		{"another metric", as("reserved", 110, "2026-12-31"), 110, 10, true, IdleUnneeded},
		{"less is worse", as("samples", 8, "2026-12-31"), 100, 8, false, ""},
		{"less than that", as("samples", 8, "2026-12-31"), 100, 7, true, IdleExceeded},
		{"two exceed, and one is acknowledged", as("peak", 110, "2026-12-31"), 110, 5, true, ""},
	} {
		measured := func(peak int64, samples float64) schemas.BaselineExperiment {
			return schemas.BaselineExperiment{Name: "ghost", Source: schemas.Measured, Status: schemas.StatusOK, Runs: 1,
				PeakBytes: &peak, SamplesPerS: &samples}
		}
		base, now := measured(100, 10), measured(c.peak, c.samples)
		o := Options{Thresholds: thresholds}
		x := checkPair(&base, &now, &o, "ghost", "ghost")
		idle := x.acknowledge(c.ack, "2026-11-29")
		x.settle(&base, &now)
		if x.Fails != c.fails || c.idle == "" != (len(idle) == 0) || len(idle) > 0 && idle[0].Idle != c.idle {
			t.Errorf("%s: fails %t, state %s, idle %+v", c.what, x.Fails, x.State, idle)
		}
		if want := x.Fails || len(c.ack) > 0 && c.idle == ""; want != (x.State == StateRegressed) {
			t.Errorf("%s: %s", c.what, x.State)
		}
	}
}

// Acknowledge writes the value that the check found, once for each metric. Acknowledge refuses an entry that no metric
// needs, or that gives no reason.
func TestAcknowledge(t *testing.T) {
	const today = "2026-11-29"
	result := Result{Experiments: []Experiment{
		{Name: "ghost", Label: "ghost (batch_size=8)", Comparisons: []Comparison{
			{Metric: "peak", Verdict: VerdictExceeded, Current: new(110.0), CurrentHigh: new(112.0)},
			{Metric: "time", Verdict: VerdictOK, Current: new(1.0)}}},
		{Name: "vanilla", Label: "vanilla", Comparisons: []Comparison{
			{Metric: "peak", Verdict: VerdictExceeded, Current: new(50.0)}}}}}
	good := schemas.Acknowledgement{Until: "2026-12-31", By: "me", Why: "x"}
	b := schemas.Baseline{Experiments: make([]schemas.BaselineExperiment, 2)}
	for range 2 {
		if err := Acknowledge(&b, &result, []string{"peak@ghost*"}, good, today); err != nil {
			t.Fatal(err)
		}
	}
	want := good
	want.Metric, want.UpTo = "peak", 112
	if got := b.Experiments[0].Acknowledged; len(got) != 1 || got[0] != want || b.Experiments[1].Acknowledged != nil {
		t.Errorf("%+v, want %+v", b.Experiments, want)
	}
	for what, c := range map[string]struct {
		name string
		as   schemas.Acknowledgement
	}{
		"a metric that is ok":    {"time@ghost", good},
		"no such metric":         {"paek", good},
		"no such experiment":     {"peak@other", good},
		"no date":                {"peak", schemas.Acknowledgement{Until: "31.12.2026", By: "me", Why: "x"}},
		"a day that is over":     {"peak", schemas.Acknowledgement{Until: "2026-11-28", By: "me", Why: "x"}},
		"nobody acknowledges":    {"peak", schemas.Acknowledgement{Until: "2026-12-31", Why: "x"}},
		"nothing is said of why": {"peak", schemas.Acknowledgement{Until: "2026-12-31", By: "me", Why: " "}},
	} {
		if err := Acknowledge(&b, &result, []string{c.name}, c.as, today); err == nil {
			t.Errorf("%s is no error", what)
		}
	}
}
