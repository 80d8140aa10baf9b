package gate

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// If several thresholds are on the same metric, one of them takes precedence, whatever their order.
func TestWhichThresholdCounts(t *testing.T) {
	file := func(experiment, metric, ratio string) schemas.ConfigThreshold {
		return schemas.ConfigThreshold{Experiment: experiment, Metric: metric,
			Ratio: schemas.ConfigValue{Text: ratio, Place: "dpsight.yaml:3"}}
	}
	e := &schemas.BaselineExperiment{Name: "ghost", Rules: new(1), Categories: map[schemas.Category]int64{
		schemas.Gradients: 1, schemas.SummedGradients: 2, schemas.Noise: 3},
		PhasePeaks: map[string]int64{"backward.norm": 1, "backward.grad": 2, "forward": 3}}
	for _, c := range []struct {
		what string
		list []string
		file []schemas.ConfigThreshold
		want string
	}{
		{"the default ones", nil, nil, "peak=1.05 time=1.10"},
		{"the file's in their place", nil, []schemas.ConfigThreshold{file("", "peak", "1.01")}, "peak=1.01"},
		{"the command line's before the file's", []string{"peak=1.2"},
			[]schemas.ConfigThreshold{file("ghost", "peak", "1.01"), file("", "time", "1.3")}, "peak=1.2 time=1.3"},
		{"an experiment's before a glob's before that of all", []string{"peak@ghost=1.1", "peak@gh*=1.2", "peak=1.3"}, nil,
			"peak=1.1"},
		{"a glob's before that of all", []string{"peak@gh*=1.2", "peak=1.3", "peak@*=1.4"}, nil, "peak=1.2"},
		{"the label's too", []string{"peak@ghost (batch_size=?)=1.2", "peak=1.3"}, nil, "peak=1.2"},
		{"another experiment's", []string{"peak@vanilla=1.1"}, nil, ""},
		{"of equals the later one", []string{"peak@g*=1.1", "peak@gh*=1.2"}, nil, "peak=1.2"},
		{"a category's before a glob's before that of all",
			[]string{"category:gradients=1.1", "category:*gradients=1.2", "category:*=1.3"}, nil,
			"category:gradients=1.1 category:summed_gradients=1.2 category:noise=1.3"},
		{"the experiment before the category", []string{"category:gradients=1.1", "category:*@ghost=1.3"}, nil,
			"category:summed_gradients=1.3 category:noise=1.3 category:gradients=1.3"},
		{"phases", []string{"phase-peak:backward.*=1.1", "phase-peak:backward.grad=1.2"}, nil,
			"phase-peak:backward.norm=1.1 phase-peak:backward.grad=1.2"},
	} {
		thresholds, floor, err := Limits(c.list, "", &schemas.GateConfig{Thresholds: c.file})
		if err != nil || floor != DefaultFloor {
			t.Fatalf("%s: %v, a floor of %d", c.what, err, floor)
		}
		got := map[string]bool{}
		var n int
		for _, h := range expand(thresholds, e, e, "ghost", "ghost (batch_size=8)") {
			got[h.Metric.String()+"="+h.Text] = true
			n++
		}
		want := strings.Fields(c.want)
		for _, w := range want {
			if !got[w] {
				t.Errorf("%s: no %s in %v", c.what, w, got)
			}
		}
		if n != len(want) {
			t.Errorf("%s: %d in place of %d: %v", c.what, n, len(want), got)
		}
	}
}

// A category may grow by the slack of a few more blocks, even if its threshold allows less. The threshold of the peak
// has no such allowance.
func TestSmallGrowthOfACategoryPasses(t *testing.T) {
	list, err := ParseThresholds([]string{"category:*=5%", "peak=5%"})
	if err != nil {
		t.Fatal(err)
	}
	category, peak := &list[0], &list[1]
	for _, c := range []struct {
		t            *Threshold
		baseline, is float64
		floor        int64
		exceeded     bool
	}{
		{category, 192, 384, DefaultFloor, false},
		{category, 1000, 1000 + LeastGrowth, DefaultFloor, false},
		{category, 1000, 1001 + LeastGrowth, DefaultFloor, true},
		{category, 100 << 20, 100<<20*1.051 + LeastGrowth, DefaultFloor, true},
		{category, 192, 384, 0, true},
		{category, 1000, 3000, 1024, true},
		{peak, 1000, 1100, DefaultFloor, true},
	} {
		if got := c.t.exceeded(c.baseline, c.is, c.floor); got != c.exceeded {
			t.Errorf("%s: from %v to %v with a floor of %d: %t", c.t, c.baseline, c.is, c.floor, got)
		}
	}
}

func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		glob, name string
		want       bool
	}{{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"*", "a/b (c=1)", true}, {"a*c", "abbc", true},
		{"a*c", "abcd", false}, {"*b*", "abc", true}, {"a?c", "abc", true}, {"a?c", "ac", false}, {"a?", "aß", true},
		{"*aab", "aaab", true}, {"**", "x", true}, {"", "", true}, {"", "x", false}, {"[a]", "a", false}} {
		if got := matches(c.glob, c.name); got != c.want {
			t.Errorf("%q and %q: %t", c.glob, c.name, got)
		}
	}
}

// If a configuration file has a wrong threshold, the error begins with the file and the line.
func TestMistakesInAFilesThresholds(t *testing.T) {
	at := schemas.ConfigValue{Text: "0.5", Place: "dpsight.yaml:4"}
	for _, c := range []schemas.GateConfig{{Floor: schemas.ConfigValue{Text: "much", Place: at.Place}},
		{Thresholds: []schemas.ConfigThreshold{{Metric: "peak", Ratio: at}}},
		{Thresholds: []schemas.ConfigThreshold{{Metric: "paek", Ratio: at}}},
		{Thresholds: []schemas.ConfigThreshold{{Metric: "category:none*", Ratio: at}}}} {
		if _, _, err := Limits(nil, "", &c); err == nil || !strings.HasPrefix(err.Error(), at.Place+": ") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
