package report_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture"
	madeup "github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

// check compares tables with a baseline made from other tables, and returns the check's document with its sentences.
func check(t *testing.T, before, after []schemas.Tables, thresholds ...string) report.CheckDocument {
	t.Helper()
	list, err := gate.ParseThresholds(thresholds)
	if err != nil {
		t.Fatal(err)
	}
	return checkRuns(baselineOf(before...), reduced(after...), gate.Options{Baseline: "baseline.json", Thresholds: list,
		Floor: 1 << 20})
}

func reduced(ins ...schemas.Tables) (out []analyze.Summary) {
	for _, in := range ins {
		out = append(out, analyze.Summarize(in))
	}
	return out
}

// baselineOf encodes and decodes the baseline, so the check has no fields that a baseline's file lacks.
func baselineOf(ins ...schemas.Tables) (baseline schemas.Baseline) {
	doc := gate.BaselineOf(reduced(ins...), "test")
	text, err := json.Marshal(&doc)
	if err == nil {
		err = json.Unmarshal(text, &baseline)
	}
	if err != nil {
		panic(err)
	}
	return baseline
}

func checkRuns(b schemas.Baseline, runs []analyze.Summary, o gate.Options) report.CheckDocument {
	return report.NewCheckDocument(gate.Check(b, runs, o))
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
		said     string // empty if the check passes
	}{
		{schemas.ClipTemporaries, base, ""},
		{schemas.ClipTemporaries, base * 1049 / 1000, ""},
		{schemas.ClipTemporaries, base * 105 / 100, ""}, // grown by exactly 5 %
		{schemas.ClipTemporaries, base*105/100 + 1, "ghost: clip_temporaries at the peak grew by 47.68 MiB " +
			"(5.0000001 %), from 953.67 MiB to 1,001.36 MiB; the threshold is 1.05"},
		{schemas.ClipTemporaries, base * 1051 / 1000, "ghost: clip_temporaries at the peak grew by 48.64 MiB (5.10 " +
			"%), from 953.67 MiB to 1,002.31 MiB; the threshold is 1.05"},
		{schemas.ClipTemporaries, base / 2, ""},
		{schemas.Noise, 1 << 20, ""}, // exactly at the floor
		{schemas.Noise, 1<<20 + 1, "ghost: noise at the peak grew from nothing to 1.00 MiB, more than the floor of " +
			"1.00 MiB"},
	} {
		doc := check(t, []schemas.Tables{fixture.Sized("ghost", was)}, []schemas.Tables{grown(c.category, c.now)},
			"category:*=1.05")
		if c.said == "" && !doc.OK || c.said != "" && (doc.OK || !slices.Equal(doc.Failures, []string{c.said}) ||
			doc.Sentence() != c.said) {
			t.Errorf("%s of %d bytes: ok %t, %q, want %q", c.category, c.now, doc.OK, doc.Failures, c.said)
		}
		want := map[bool]string{true: gate.StateOK, false: gate.StateRegressed}[doc.OK]
		if c.category == schemas.ClipTemporaries && c.now < base {
			want = gate.StateImproved
		}
		if doc.Experiments[0].State != want {
			t.Errorf("%s of %d bytes: state %q", c.category, c.now, doc.Experiments[0].State)
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
		{"gone", []schemas.Tables{run("a", ok), run("b", ok)}, []schemas.Tables{run("a", ok)}, gate.StateGone,
			"b is missing: the baseline has it, but no run does"},
		{"failing", []schemas.Tables{run("a", ok), run("b", ok)}, []schemas.Tables{run("a", ok), run("b", oom)},
			gate.StateNewlyOOM,
			"b fails (oom: CUDA out of memory), and did not in the baseline"},
		{"one of two repeats fails", []schemas.Tables{run("a", ok), run("b", ok)},
			[]schemas.Tables{run("a", ok), run("b", ok),
				run("b", oom)}, gate.StateNewlyOOM, "b fails (oom: CUDA out of memory), and did not in the baseline"},
		{"new", []schemas.Tables{run("a", ok)}, []schemas.Tables{run("a", ok), run("b", ok)}, gate.StateNew, ""},
		{"mended", []schemas.Tables{run("a", ok), run("b", oom)}, []schemas.Tables{run("a", ok), run("b", ok)},
			gate.StateImproved, ""},
		{"broken as before", []schemas.Tables{run("a", ok), run("b", oom)},
			[]schemas.Tables{run("a", ok), run("b", oom)}, gate.StateNotComparable,
			""},
		{"nothing in common", []schemas.Tables{run("a", oom)}, []schemas.Tables{run("b", ok)}, gate.StateGone,
			"a is missing"},
	} {
		doc := check(t, c.before, c.after, "peak=1.05")
		found := slices.ContainsFunc(doc.Experiments, func(x report.CheckExperiment) bool { return x.State == c.state })
		if text := strings.Join(doc.Failures, "\n"); !found || doc.OK != (c.said == "") ||
			!strings.Contains(text, c.said) {
			t.Errorf("%s: ok %t, %q, %+v", c.what, doc.OK, text, doc.Experiments)
		}
	}
	a, b := analyze.Summarize(run("a", ok)), analyze.Summarize(run("b", ok))
	list, _ := gate.ParseThresholds([]string{"peak=1"})
	doc := checkRuns(gate.BaselineOf([]analyze.Summary{a, b}, ""), []analyze.Summary{a},
		gate.Options{Thresholds: list, Partial: true})
	if !doc.OK || doc.Experiments[1].State != gate.StateGone {
		t.Errorf("a partial check: %+v", doc)
	}
	doc = checkRuns(gate.BaselineOf([]analyze.Summary{b}, ""), []analyze.Summary{a},
		gate.Options{Thresholds: list, Partial: true})
	if doc.OK || doc.Sentence() != "nothing was compared: no experiment is in both" {
		t.Errorf("a check of nothing passes: %q", doc.Sentence())
	}
	failing := []analyze.Summary{analyze.Summarize(run("a", oom))}
	if doc = checkRuns(gate.BaselineOf(failing, ""), failing, gate.Options{Thresholds: list}); doc.OK ||
		doc.Sentence() != "nothing was compared: no experiment ended well in both" {
		t.Errorf("a check of what fails in both: %q", doc.Sentence())
	}
	if doc = checkRuns(gate.BaselineOf(failing, ""), []analyze.Summary{a}, gate.Options{Thresholds: list}); !doc.OK ||
		doc.Experiments[0].State != gate.StateImproved {
		t.Errorf("a check of what failed in the baseline and ends well now: %q, %+v", doc.Sentence(), doc.Experiments)
	}
	if doc = checkRuns(gate.BaselineOf([]analyze.Summary{b}, ""), []analyze.Summary{a},
		gate.Options{Thresholds: list, Pair: true}); !doc.OK ||
		len(doc.Experiments) != 1 ||
		!strings.Contains(strings.Join(doc.Warnings, "\n"), "compared although the parameters differ: method: a, "+
			"baseline b") {
		t.Errorf("two runs that were named: %+v", doc)
	}
}

// If an experiment is missing and a new experiment has the same name, the check states how the two differ.
func TestNamesakesSayWhatTellsThemApart(t *testing.T) {
	run := func(batch int) schemas.Tables {
		in := fixture.Sized("ghost", map[schemas.Category]int64{schemas.Parameters: base})
		in.Manifest.Params["batch_size"], in.Manifest.Params["clipping"] = batch, "flat"
		return in
	}
	doc := check(t, []schemas.Tables{run(16)}, []schemas.Tables{run(8)}, "peak=1")
	if want := "ghost is missing: the baseline has it, but the run of that name is another experiment " +
		"(batch_size: 8, baseline 16)"; doc.Sentence() != want {
		t.Errorf("%q, want %q", doc.Sentence(), want)
	}
	for _, x := range doc.Experiments {
		if !slices.Equal(x.DiffersIn, []string{"batch_size: 8, baseline 16"}) {
			t.Errorf("%s: %q", x.State, x.DiffersIn)
		}
	}
	// If several new experiments have the name of the missing one, the nearest one is compared with it. An experiment
	// that the baseline has is not compared in this way.
	far := run(8)
	far.Manifest.Params["clipping"] = "per_layer"
	doc = check(t, []schemas.Tables{run(16), run(32)}, []schemas.Tables{far, run(32), run(8)}, "peak=1")
	if x := doc.Experiments[0]; x.State != gate.StateGone || x.Label != "ghost (batch_size=16)" ||
		!slices.Equal(x.DiffersIn, []string{"batch_size: 8, baseline 16"}) || len(doc.Experiments[1].DiffersIn) > 0 {
		t.Errorf("%+v", doc.Experiments)
	}
}

// If a run is predicted and the baseline was measured, a check compares their bytes, and does not compare times.
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
	if !doc.OK || verdicts["peak"] != gate.VerdictOK || verdicts["time"] != gate.VerdictSkipped ||
		verdicts["samples"] != gate.VerdictSkipped ||
		!strings.Contains(said,
			"ghost: step time is not compared: the run is predicted; only measured runs have it") ||
		strings.Contains(said, "differs") {
		t.Errorf("%v, %v, %s", doc.OK, verdicts, said)
	}
	doc = check(t, []schemas.Tables{was}, []schemas.Tables{versions(now, "2.15.0")}, "peak=1")
	if said := strings.Join(doc.Warnings, "\n"); !doc.OK ||
		!strings.Contains(said, "ghost: torch differs: 2.15.0, baseline 2.11.0") ||
		!strings.Contains(said, "the run is predicted, the baseline measured") {
		t.Errorf("other versions: %s", said)
	}
	if doc = check(t, []schemas.Tables{was}, []schemas.Tables{now}, "time=1.1"); doc.OK ||
		!strings.HasPrefix(doc.Sentence(), "nothing was compared: ") {
		t.Errorf("a check of times only: %q", doc.Sentence())
	}
	// If a measured run has no breakdown, its categories were not checked. The check must fail, since the categories
	// may have grown.
	bare := fixture.Sized("ghost", nil)
	bare.Report.Devices[0].TorchPeakAllocatedBytes = &bare.Report.Devices[0].PeakAllocatedBytes
	if doc = check(t, []schemas.Tables{was}, []schemas.Tables{bare}, "category:*=1.05"); doc.OK ||
		!strings.Contains(doc.Sentence(), "each category at the peak could not be checked: the run's peak is not "+
			"broken down") {
		t.Errorf("without a breakdown: %q", doc.Sentence())
	}
}

// A check names experiments by the arguments in which they differ. If each side has one experiment, the check compares
// the two, and says how their arguments differ.
func TestArgumentsInACheck(t *testing.T) {
	runs := []analyze.Summary{madeup.Scripted("a", 1000, nil, "python", "train.py", "--bs", "8"),
		madeup.Scripted("b", 1002, nil, "/venv/bin/python", "train.py", "--bs", "8"),
		madeup.Scripted("c", 3000, nil, "python", "train.py", "--bs", "16", "--fast")}
	list, _ := gate.ParseThresholds([]string{"peak=1"})
	check := func(base, now []analyze.Summary) report.CheckDocument {
		return checkRuns(gate.BaselineOf(base, ""), now, gate.Options{Thresholds: list})
	}
	if d := check(runs, runs); !d.OK || len(d.Experiments) != 2 ||
		!slices.Contains(d.Warnings, "train: runs with different arguments (--bs 16 --fast, --bs 8) are different "+
			"experiments; collect --param NAME=VALUE names what varies") {
		t.Errorf("beside themselves: %q %q", d.Failures, d.Warnings)
	}
	if d := check(runs[:1], runs[2:]); len(d.Experiments) != 1 || d.Experiments[0].State != gate.StateRegressed ||
		!slices.Contains(d.Warnings, "train: compared although the commands differ in their arguments: --bs 16 "+
			"--fast, baseline --bs 8") {
		t.Errorf("the only one on both sides: %+v %q", d.Experiments, d.Warnings)
	}
}
