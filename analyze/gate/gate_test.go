package gate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

func check(t *testing.T, before, after []schemas.Tables, thresholds ...string) Result {
	t.Helper()
	list, err := ParseThresholds(thresholds)
	if err != nil {
		t.Fatal(err)
	}
	reduce := func(ins []schemas.Tables) (out []analyze.Summary) {
		for _, in := range ins {
			out = append(out, analyze.Summarize(in))
		}
		return out
	}
	// The baseline is encoded and decoded again, so the check has no fields that a baseline's file lacks.
	var baseline schemas.Baseline
	doc := BaselineOf(reduce(before), "test")
	text, err := json.Marshal(&doc)
	if err == nil {
		err = json.Unmarshal(text, &baseline)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Check(baseline, reduce(after), Options{Baseline: "baseline.json", Thresholds: list, Floor: 1 << 20})
}

const base = 1_000_000_000

// A value at exactly the threshold passes a check, and a value of one byte more fails. The boundary is exact for any
// number of bytes and any ratio.
func TestBoundariesAreExact(t *testing.T) {
	for _, ratio := range []struct {
		text     string
		num, den int64
	}{{"1.05", 21, 20}, {"5%", 21, 20}, {"1.1", 11, 10}, {"1.001", 1001, 1000}, {"0%", 1, 1}, {"1", 1, 1},
		{"1.333", 1333, 1000}} {
		list, err := ParseThresholds([]string{"peak=" + ratio.text})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{1, 7, 20, 1000, 999_999, 68353197568, 150754820096, 1<<52 - 1} {
			limit := n / ratio.den * ratio.num // n/den*num does not overflow; the next line adds the rest, n%den
			limit += n % ratio.den * ratio.num / ratio.den
			if list[0].exceeded(float64(n), float64(limit), 0) {
				t.Errorf("%s of %d: %d is too much", ratio.text, n, limit)
			}
			if !list[0].exceeded(float64(n), float64(limit+1), 0) {
				t.Errorf("%s of %d: %d passes", ratio.text, n, limit+1)
			}
		}
	}
}

// Predictions for two different devices belong to two experiments of the baseline.
func TestBaselineOfTwoProfiles(t *testing.T) {
	a, b := summaries.Ran("1", "ghost", 1000), summaries.Ran("2", "ghost", 2000)
	a.Source, a.Profile, b.Source, b.Profile = schemas.Predicted, new("a100"), schemas.Predicted, new("h200")
	if doc := BaselineOf([]analyze.Summary{a, b}, ""); len(doc.Experiments) != 2 ||
		*doc.Experiments[0].PeakBytes+*doc.Experiments[1].PeakBytes != 3000 {
		t.Errorf("%+v", doc.Experiments)
	}
}

// If runs have the same suite key but different settings of the machine, such as the GPU's memory, they belong to
// different experiments.
func TestBaselineOfTwoMemories(t *testing.T) {
	all := summaries.Ran("1", "ghost", 1000)
	for i, memory := range []int64{24 << 30, 48 << 30} {
		s := summaries.Ran(fmt.Sprint(i+2), "ghost", 1000)
		s.Params = map[string]any{"gpu_memory": memory}
		s.Key, all.Key = "k", "k"
		doc := BaselineOf([]analyze.Summary{all, s}, "")
		if len(doc.Experiments) != 2 {
			t.Errorf("%d GiB: %+v", memory>>30, doc.Experiments)
		}
		if kept, left := Newest([]analyze.Summary{all, s}); len(kept) != 2 || len(left) != 0 {
			t.Errorf("%d GiB: left %v", memory>>30, left)
		}
		if pairs := MatchExperiments(doc.Experiments, []schemas.BaselineExperiment{doc.Experiments[1],
			doc.Experiments[0]}, false); pairs[0] != 1 || pairs[1] != 0 {
			t.Errorf("%d GiB: %v", memory>>30, pairs)
		}
	}
}

func TestExperimentsAreMatchedByContent(t *testing.T) {
	type x struct {
		key, name, source, profile string
		params                     map[string]any
	}
	list := func(xs ...x) (out []schemas.BaselineExperiment) {
		for _, e := range xs {
			switch {
			case e.profile != "":
				e.source = schemas.Predicted
			case e.source == "":
				e.source = schemas.Measured
			}
			out = append(out, schemas.BaselineExperiment{Key: identity.OrNull(e.key), Name: e.name, Source: e.source,
				Profile: identity.OrNull(e.profile), Params: e.params})
		}
		return out
	}
	p := func(kv ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i].(string)] = kv[i+1]
		}
		return m
	}
	for _, c := range []struct {
		what      string
		base, now []schemas.BaselineExperiment
		want      string
	}{
		{"by key, whatever the name and the place", list(x{key: "1", name: "a"}, x{key: "2", name: "b"}),
			list(x{key: "2", name: "c"}, x{key: "1", name: "d"}), "map[0:1 1:0]"},
		{"by name and parameters, numbers of any type", list(x{name: "a", params: p("b", 8)}),
			list(x{name: "a", params: p("b", 8.0)}), "map[0:0]"},
		{"a command's text is the number", list(x{name: "a", params: p("b", "8")}),
			list(x{name: "a", params: p("b", 8)}), "map[0:0]"},
		{"by parameters under another name", list(x{name: "a", params: p("b", 8)}),
			list(x{name: "z", params: p("b", 8)}), "map[0:0]"},
		{"a later dpsight records more", list(x{key: "1", name: "a", params: p("b", 8)}),
			list(x{key: "9", name: "a", params: p("b", 8, "poisson", false)}), "map[0:0]"},
		{"other parameters", list(x{name: "a", params: p("b", 8)}), list(x{name: "a", params: p("b", 16)}), "map[]"},
		{"no guess between two", list(x{name: "a"}), list(x{name: "a", params: p("b", 8)},
			x{name: "a", params: p("b", 16)}), "map[]"},
		{"no guess of two", list(x{name: "a", params: p("b", 8)}, x{name: "b", params: p("b", 8)}),
			list(x{name: "z", params: p("b", 8)}), "map[]"},
		{"the same source first", list(x{name: "a"}, x{name: "a", source: schemas.Predicted}),
			list(x{name: "a", source: schemas.Predicted}, x{name: "a"}), "map[0:1 1:0]"},
		{"the same device first", list(x{name: "a", profile: "h200"}, x{name: "a", profile: "a100"}),
			list(x{name: "a", profile: "a100"}, x{name: "a", profile: "h200"}), "map[0:1 1:0]"},
		{"another source where there is no same", list(x{name: "a"}), list(x{name: "a", source: schemas.Predicted}),
			"map[0:0]"},
	} {
		if got := fmt.Sprint(MatchExperiments(c.base, c.now, false)); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	if got := MatchExperiments(list(x{name: "a"}), list(x{name: "b"}), true); len(got) != 1 {
		t.Errorf("the only two: %v", got)
	}
}

func TestThresholdsThatAreNone(t *testing.T) {
	for text, said := range map[string]string{
		"peak=0.9": "below 1", "peak": "is not NAME=RATIO", "peak=": `"" is not a ratio`, "peak=x": "is not a ratio",
		"peak=-1": "is not a ratio", "peak=1/2": "is not a ratio",
		"peak=1e3": "is not a ratio", "nope=1.1": "is not one of", "category=1.1": "needs a name",
		"category:nope=1.1": "no category", "peak:x=1.1": "takes no name",
		"phase:forward=1.1": "phase-peak:forward", "peak=5": "for a growth of 5 % write 5%, for the ratio itself 400%",
		"peak=999999999999999999999": "is not a ratio",
	} {
		if _, err := ParseThresholds([]string{text}); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%s: %v, want %q", text, err, said)
		}
	}
	if _, err := ParseThresholds([]string{"step=1.1", "time=1.2"}); err == nil {
		t.Error("one metric by two names")
	}
}

// If two runs have step times of different clocks, a check does not compare these times, nor values that are computed
// from them.
func TestClocksAreNotCompared(t *testing.T) {
	before, after := fixture.Slow(fixture.Sized("a", map[schemas.Category]int64{schemas.Parameters: base}), 100),
		fixture.Slow(fixture.Sized("a", map[schemas.Category]int64{schemas.Parameters: base}), 900)
	after.Steps[0].GPUNS = 0
	doc := check(t, []schemas.Tables{before}, []schemas.Tables{after}, "peak=1", "time=1", "samples=1", "tokens=1")
	for i, c := range doc.Experiments[0].Comparisons {
		if want := []string{VerdictOK, VerdictSkipped, VerdictSkipped, VerdictSkipped}[i]; c.Verdict != want {
			t.Errorf("%s: %s (%v), want %s", c.Metric, c.Verdict, c.Reason, want)
		}
	}
	if !doc.OK {
		t.Errorf("%+v", doc.Experiments)
	}
}

// A store may have runs from before and after a change of the code. The newest run of each experiment counts, together
// with its repeats.
func TestNewest(t *testing.T) {
	at := func(name, suite string, minute int, peak int64) analyze.Summary {
		s := analyze.Summary{Started: time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC), SuiteID: suite,
			PeakBytes: &peak}
		s.Name, s.RunID, s.Status, s.Source = name, fmt.Sprint(name, minute), schemas.StatusOK, schemas.Measured
		if suite != "" {
			s.Key = name
		}
		return s
	}
	runs := []analyze.Summary{at("a", "old", 0, 100), at("a", "new", 10, 150), at("b", "", 1, 7), at("b", "", 2, 9),
		at("a", "new", 11, 151)}
	kept, left := Newest(runs)
	var ids []string
	for i := range kept {
		ids = append(ids, kept[i].RunID)
	}
	if want := []string{"a10", "b2", "a11"}; !slices.Equal(ids, want) {
		t.Errorf("kept %v, want %v", ids, want)
	}
	if want := []LeftOut{{"a", 1}, {"b", 1}}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
}

// For an even number of repeats, the gate has the same time and peak as a table. The time is the mean of the middle two
// times, and the peak is the lower of the middle two peaks.
func TestBaselineOfAnEvenNumber(t *testing.T) {
	v := map[string]any{"method": "vanilla"}
	runs := []analyze.Summary{summaries.SuiteRun("a", "v", v, 0, 100), summaries.SuiteRun("b", "v", v, 512, 120),
		summaries.SuiteRun("c", "v", v, 1024, 200),
		summaries.SuiteRun("d", "v", v, 2048, 300)}
	want := (runs[1].StepMS.Median + runs[2].StepMS.Median) / 2
	if e := BaselineOf(runs, "").Experiments[0]; e.StepMS.Median != want || *e.PeakBytes != *runs[1].PeakBytes {
		t.Errorf("a gate: %v ms, %d bytes", e.StepMS.Median, *e.PeakBytes)
	}
}

// If the agent stopped recording before the run ended, the peak covers only the recorded part. A check of this run does
// not pass, and no baseline includes the run.
func TestSilencedRunIsNotChecked(t *testing.T) {
	silenced := func(fatal bool) schemas.Tables {
		in := fixture.Sized("ghost", map[schemas.Category]int64{schemas.Parameters: base / 2})
		in.Report.Ranks = []schemas.RankVerdict{{}, {Rank: 1, FailedHooks: []schemas.FailedHook{
			{Hook: "a drain", Error: "E"}, {Hook: "draining", Error: "E", Step: 4, Fatal: fatal}}}}
		return in
	}
	whole := fixture.Sized("ghost", map[schemas.Category]int64{schemas.Parameters: base})
	for _, fatal := range []bool{false, true} {
		x := check(t, []schemas.Tables{whole}, []schemas.Tables{silenced(fatal)}, "peak=1.05").Experiments[0]
		if fatal != (x.State == StateNewlyFailing) || fatal != (len(x.Comparisons) == 0) ||
			fatal != (x.Reason == "draining failed at step 4 (E): the agent stopped recording") {
			t.Errorf("fatal %v: %+v", fatal, x)
		}
		doc := BaselineOf([]analyze.Summary{analyze.Summarize(silenced(fatal))}, "test")
		if e := doc.Experiments[0]; fatal != (e.PeakBytes == nil) || fatal != (len(Gaps(&doc)) == 1) {
			t.Errorf("fatal %v: the baseline has %+v", fatal, e)
		}
	}
}
