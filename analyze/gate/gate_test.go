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

func check(t *testing.T, before, after []schemas.Tables, thresholds ...string) Document {
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
	// Through the file's own form: what a baseline on disk loses, a check must not need.
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

func TestPlantedGrowthOfACategory(t *testing.T) {
	was := map[schemas.Category]int64{schemas.Parameters: 10 * base, schemas.ClipTemporaries: base,
		schemas.Activations: 3 * base}
	grown := func(c schemas.Category, bytes int64) schemas.Tables {
		now := map[schemas.Category]int64{}
		for k, v := range was {
			now[k] = v
		}
		now[c] = bytes
		return fixture.Sized("ghost", now)
	}
	for _, c := range []struct {
		category schemas.Category
		now      int64
		said     string // empty = it passes
	}{
		{schemas.ClipTemporaries, base, ""},
		{schemas.ClipTemporaries, base * 1049 / 1000, ""},
		{schemas.ClipTemporaries, base * 105 / 100, ""}, // exactly 5 %
		{schemas.ClipTemporaries, base*105/100 + 1, "ghost: clip_temporaries at the peak grew by 47.68 MiB " +
			"(5.0000001 %), from 953.67 MiB to 1,001.36 MiB, and the threshold is 1.05"},
		{schemas.ClipTemporaries, base * 1051 / 1000, "ghost: clip_temporaries at the peak grew by 48.64 MiB (5.10 " +
			"%), from 953.67 MiB to 1,002.31 MiB, and the threshold is 1.05"},
		{schemas.ClipTemporaries, base / 2, ""},
		{schemas.Noise, 1 << 20, ""}, // the floor itself
		{schemas.Noise, 1<<20 + 1, "ghost: noise at the peak grew from nothing to 1.00 MiB, more than the floor of " +
			"1.00 MiB"},
	} {
		doc := check(t, []schemas.Tables{fixture.Sized("ghost", was)}, []schemas.Tables{grown(c.category, c.now)},
			"category:*=1.05")
		if c.said == "" && !doc.OK || c.said != "" && (doc.OK || !slices.Equal(doc.Failures, []string{c.said}) ||
			doc.Sentence() != c.said) {
			t.Errorf("%s of %d bytes: ok %t, %q, want %q", c.category, c.now, doc.OK, doc.Failures, c.said)
		}
		if want := map[bool]string{true: StateSame, false: StateRegressed}[doc.OK]; doc.Experiments[0].State != want {
			t.Errorf("%s of %d bytes: state %q", c.category, c.now, doc.Experiments[0].State)
		}
	}
}

// At exactly the threshold a check passes and one byte beyond it fails, for any number of bytes and any ratio.
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
			limit := n / ratio.den * ratio.num // without overflow; n%den of the rest below
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

func TestThresholdsOfEachMetric(t *testing.T) {
	was := fixture.Slow(fixture.Sized("ghost", map[schemas.Category]int64{schemas.Parameters: base,
		schemas.Activations: base}), 100,
		100, 100)
	more := fixture.Slow(fixture.Sized("ghost", map[schemas.Category]int64{schemas.Parameters: base,
		schemas.Activations: base * 13 / 10}), 120, 120, 120)
	for _, c := range []struct{ threshold, said string }{
		{"peak=1.15", ""},
		{"peak=1.149", "peak allocated grew by 286.10 MiB (15.00 %)"},
		{"1.1", "the largest part of it is activations (+286.10 MiB)"},
		{"reserved=10%", "peak reserved grew by 572.20 MiB"},
		{"time=1.19", "step time grew by 20.000 ms (20.00 %), from 100.000 ms to 120.000 ms"},
		{"step=1.2", ""},
		{"samples=1.2", ""},
		{"samples=1.19", "samples a second fell by 13.33 a second (16.67 %), from 80.00 a second to 66.67 a second"},
		{"tokens=1.1", "tokens a second fell by"},
		{"category:activations=1.3", ""},
		{"category:activations=1.29", "activations at the peak grew by 286.10 MiB (30.00 %)"},
		{"category:parameters=1", ""},
	} {
		doc := check(t, []schemas.Tables{was}, []schemas.Tables{more}, c.threshold)
		if text := strings.Join(doc.Failures, "\n"); c.said == "" && text != "" || !strings.Contains(text, c.said) {
			t.Errorf("%s: %q, want %q", c.threshold, text, c.said)
		}
	}
	doc := check(t, []schemas.Tables{was}, []schemas.Tables{more}, "category:*=1.05", "category:activations=1.5")
	if !doc.OK {
		t.Errorf("a category's own threshold comes before that of all: %q", doc.Failures)
	}
	doc = check(t, []schemas.Tables{was}, []schemas.Tables{more}, "peak=1", "time=1")
	if !strings.HasSuffix(doc.Sentence(), "; and 1 more") || len(doc.Failures) != 2 {
		t.Errorf("two regressions: %q", doc.Sentence())
	}
}

func TestMissingFailingAndNewExperiments(t *testing.T) {
	run := func(name, status string) schemas.Tables {
		in := fixture.Sized(name, map[schemas.Category]int64{schemas.Parameters: base})
		if in.Manifest.Status = status; status != schemas.StatusOK {
			in.Manifest.Reason = "CUDA out of memory"
		}
		return in
	}
	ok, oom := schemas.StatusOK, schemas.StatusOOM
	for _, c := range []struct {
		what          string
		before, after []schemas.Tables
		state, said   string
	}{
		{"missing", []schemas.Tables{run("a", ok), run("b", ok)}, []schemas.Tables{run("a", ok)}, StateMissing,
			"b is missing: the baseline has it, and no run is of it"},
		{"failing", []schemas.Tables{run("a", ok), run("b", ok)}, []schemas.Tables{run("a", ok), run("b", oom)},
			StateFailing,
			"b fails now (oom: CUDA out of memory) and did not in the baseline"},
		{"one of two repeats fails", []schemas.Tables{run("a", ok), run("b", ok)},
			[]schemas.Tables{run("a", ok), run("b", ok),
				run("b", oom)}, StateFailing, "b fails now (oom: CUDA out of memory) and did not in the baseline"},
		{"new", []schemas.Tables{run("a", ok)}, []schemas.Tables{run("a", ok), run("b", ok)}, StateNew, ""},
		{"mended", []schemas.Tables{run("a", ok), run("b", oom)}, []schemas.Tables{run("a", ok), run("b", ok)},
			StateMended, ""},
		{"broken as before", []schemas.Tables{run("a", ok), run("b", oom)},
			[]schemas.Tables{run("a", ok), run("b", oom)}, StateBroken,
			""},
		{"nothing in common", []schemas.Tables{run("a", oom)}, []schemas.Tables{run("b", ok)}, StateMissing,
			"a is missing"},
	} {
		doc := check(t, c.before, c.after, "peak=1.05")
		found := slices.ContainsFunc(doc.Experiments, func(x Experiment) bool { return x.State == c.state })
		if text := strings.Join(doc.Failures, "\n"); !found || doc.OK != (c.said == "") ||
			!strings.Contains(text, c.said) {
			t.Errorf("%s: ok %t, %q, %+v", c.what, doc.OK, text, doc.Experiments)
		}
	}
	a, b := analyze.Summarize(run("a", ok)), analyze.Summarize(run("b", ok))
	list, _ := ParseThresholds([]string{"peak=1"})
	doc := Check(BaselineOf([]analyze.Summary{a, b}, ""), []analyze.Summary{a},
		Options{Thresholds: list, Partial: true})
	if !doc.OK || doc.Experiments[1].State != StateLeftOut {
		t.Errorf("a partial check: %+v", doc)
	}
	doc = Check(BaselineOf([]analyze.Summary{b}, ""), []analyze.Summary{a}, Options{Thresholds: list, Partial: true})
	if doc.OK || doc.Sentence() != "nothing was compared: no experiment is in both" {
		t.Errorf("a check of nothing passes: %q", doc.Sentence())
	}
	failing := []analyze.Summary{analyze.Summarize(run("a", oom))}
	if doc = Check(BaselineOf(failing, ""), failing, Options{Thresholds: list}); doc.OK ||
		doc.Sentence() != "nothing was compared: no experiment ended well in both" {
		t.Errorf("a check of what fails in both: %q", doc.Sentence())
	}
	if doc = Check(BaselineOf([]analyze.Summary{b}, ""), []analyze.Summary{a},
		Options{Thresholds: list, Pair: true}); !doc.OK ||
		len(doc.Experiments) != 1 ||
		!strings.Contains(strings.Join(doc.Warnings, "\n"), "compared though the parameters differ: method: a, "+
			"baseline b") {
		t.Errorf("two runs that were named: %+v", doc)
	}
}

// A missing experiment and a new one of its name say in what they differ.
func TestNamesakesSayWhatTellsThemApart(t *testing.T) {
	run := func(batch int) schemas.Tables {
		in := fixture.Sized("ghost", map[schemas.Category]int64{schemas.Parameters: base})
		in.Manifest.Params["batch_size"], in.Manifest.Params["clipping"] = batch, "flat"
		return in
	}
	doc := check(t, []schemas.Tables{run(16)}, []schemas.Tables{run(8)}, "peak=1")
	if want := "ghost is missing: the baseline has it, and the run of that name is another experiment, since it " +
		"differs in batch_size: 8, baseline 16"; doc.Sentence() != want {
		t.Errorf("%q, want %q", doc.Sentence(), want)
	}
	for _, x := range doc.Experiments {
		if !slices.Equal(x.DiffersIn, []string{"batch_size: 8, baseline 16"}) {
			t.Errorf("%s: %q", x.State, x.DiffersIn)
		}
	}
	// Of several the nearest speaks; one that was found is not named at all.
	far := run(8)
	far.Manifest.Params["clipping"] = "per_layer"
	doc = check(t, []schemas.Tables{run(16), run(32)}, []schemas.Tables{far, run(32), run(8)}, "peak=1")
	if x := doc.Experiments[0]; x.State != StateMissing || x.Label != "ghost (batch_size=16)" ||
		!slices.Equal(x.DiffersIn, []string{"batch_size: 8, baseline 16"}) || len(doc.Experiments[1].DiffersIn) > 0 {
		t.Errorf("%+v", doc.Experiments)
	}
}

// What a predicted run has is bytes: those are held to a measured baseline's, its times to nothing.
func TestPredictedBesideMeasured(t *testing.T) {
	versions := func(in schemas.Tables, torch string) schemas.Tables {
		in.Manifest.Environment = &schemas.Environment{Torch: torch}
		return in
	}
	was := versions(fixture.Slow(fixture.Sized("ghost", map[schemas.Category]int64{schemas.Parameters: base}), 100),
		"2.11.0")
	now := versions(fixture.Slow(fixture.Sized("ghost", map[schemas.Category]int64{schemas.Parameters: base}), 900),
		"2.11.0")
	now.Manifest.Source = schemas.Predicted
	doc := check(t, []schemas.Tables{was}, []schemas.Tables{now}, "peak=1", "time=1.1", "samples=1.1")
	verdicts := map[string]string{}
	for _, c := range doc.Experiments[0].Comparisons {
		verdicts[c.Metric] = c.Verdict
	}
	said := strings.Join(doc.Warnings, "\n")
	if !doc.OK || verdicts["peak"] != VerdictOK || verdicts["time"] != VerdictSkipped ||
		verdicts["samples"] != VerdictSkipped ||
		!strings.Contains(said,
			"ghost: step time is not compared: the run is predicted, and only measured runs have it") ||
		strings.Contains(said, "differs") {
		t.Errorf("%v, %v, %s", doc.OK, verdicts, said)
	}
	doc = check(t, []schemas.Tables{was}, []schemas.Tables{versions(now, "2.15.0")}, "peak=1")
	if said := strings.Join(doc.Warnings, "\n"); !doc.OK ||
		!strings.Contains(said, "ghost: torch differs: 2.15.0, baseline 2.11.0") ||
		!strings.Contains(said, "bytes that are predicted beside a baseline that is measured") {
		t.Errorf("other versions: %s", said)
	}
	if doc = check(t, []schemas.Tables{was}, []schemas.Tables{now}, "time=1.1"); doc.OK ||
		!strings.HasPrefix(doc.Sentence(), "nothing was compared: ") {
		t.Errorf("a check of times only: %q", doc.Sentence())
	}
	// A measured run that lost its breakdown must not pass for one that did not grow.
	bare := fixture.Sized("ghost", nil)
	bare.Report.Devices[0].TorchPeakAllocatedBytes = &bare.Report.Devices[0].PeakAllocatedBytes
	if doc = check(t, []schemas.Tables{was}, []schemas.Tables{bare}, "category:*=1.05"); doc.OK ||
		!strings.Contains(doc.Sentence(), "each category at the peak could not be checked: the run's peak is not "+
			"broken down") {
		t.Errorf("without a breakdown: %q", doc.Sentence())
	}
}

// Predictions for two devices are two experiments.
func TestBaselineOfTwoProfiles(t *testing.T) {
	a, b := summaries.Ran("1", "ghost", 1000), summaries.Ran("2", "ghost", 2000)
	a.Source, a.Profile, b.Source, b.Profile = schemas.Predicted, new("a100"), schemas.Predicted, new("h200")
	if doc := BaselineOf([]analyze.Summary{a, b}, ""); len(doc.Experiments) != 2 ||
		*doc.Experiments[0].PeakBytes+*doc.Experiments[1].PeakBytes != 3000 {
		t.Errorf("%+v", doc.Experiments)
	}
}

// What a machine was told to be tells the experiments of one suite's key apart.
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
			t.Errorf("%d GiB: left %q", memory>>30, left)
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
	for text, want := range map[string]int64{"1MiB": 1 << 20, "0.5 GiB": 1 << 29, "512": 512, "7B": 7, "0": 0,
		"1.5KiB": 1536, "2Gib": 2 << 30, "24 gib": 24 << 30, "1MIB": 1 << 20, "9b": 9} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "MiB", "1MB", "1mb", "-1", "5%", "99999999TiB", "1e3"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%s: %d", text, got)
		}
	}
}

// Neither times nor what is counted by them is held to another clock's.
func TestClocksAreNotCompared(t *testing.T) {
	before, after := fixture.Slow(fixture.Sized("a", map[schemas.Category]int64{schemas.Parameters: base}), 100),
		fixture.Slow(fixture.Sized("a", map[schemas.Category]int64{schemas.Parameters: base}), 900)
	after.Steps[0].GPUNS = 0
	doc := check(t, []schemas.Tables{before}, []schemas.Tables{after}, "peak=1", "time=1", "samples=1", "tokens=1")
	for i, c := range doc.Experiments[0].Comparisons {
		if want := []string{VerdictOK, VerdictSkipped, VerdictSkipped, VerdictSkipped}[i]; c.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", c.Metric, c.Verdict, c.Reason, want)
		}
	}
	if !doc.OK {
		t.Errorf("%q", doc.Failures)
	}
}

// A store that is kept holds the runs before and after a change: only the newest run of an experiment counts, with its
// repeats.
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
	if len(left) != 2 || !strings.HasPrefix(left[0], "a: 1 older run is left out") ||
		!strings.HasPrefix(left[1], "b: 1 older run is") {
		t.Errorf("left %q", left)
	}
}

// The time and the peak of an even number of repeats are those of the table: the mean of the middle two, and the lower
// one's bytes.
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
