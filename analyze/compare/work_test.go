package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	. "github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

// Package launch finds the program that a command runs. ScriptOf returns the program's name.
func TestScriptOf(t *testing.T) {
	for command, want := range map[string]string{
		`C:\py\python.exe C:\work\gan.py`: "gan.py", "torchrun -m pkg configs/a.py": "-m pkg",
		"mytrain --config=configs/dp.py": "", "": "",
	} {
		if got := identity.ScriptOf(strings.Fields(command)); got != want {
			t.Errorf("%q runs %q, want %q", command, got, want)
		}
	}
}

// scriptRun returns a run of a script. The run ended well.
func scriptRun(name, script string, params map[string]any) analyze.Summary {
	peak := int64(len(name)) << 20
	return analyze.Summary{Identity: identity.Identity{RunID: name, Name: name, Status: schemas.StatusOK,
		Source: schemas.Measured,
		Params: params},
		PeakBytes: &peak, Script: script}
}

// Runs that do different work are compared only if the user asks for the comparison.
func TestOtherWorkIsNotCompared(t *testing.T) {
	none := map[string]any{}
	vanilla, ghost := map[string]any{"method": "vanilla"}, map[string]any{"method": "ghost"}
	for _, c := range []struct {
		what string
		runs []analyze.Summary
		want []string // names of the runs' baselines; if nil, nothing is compared
	}{
		{"scripts", []analyze.Summary{scriptRun("resnet", "resnet.py", none), scriptRun("gan", "gan.py", none),
			scriptRun("llama", "llama.py", none)}, nil},
		{"models", []analyze.Summary{scriptRun("a", "train.py", map[string]any{"model": "vit"}),
			scriptRun("b", "train.py",
				map[string]any{"model": "unet"})}, nil},
		{"one script", []analyze.Summary{scriptRun("a", "train.py", none), scriptRun("b", "train.py",
			map[string]any{"rank": 8.0})}, []string{"a", "a"}},
		{"unknown scripts", []analyze.Summary{scriptRun("a", "", none), scriptRun("b", "train.py", none)},
			[]string{"a", "a"}},
		{"methods in scripts of their own", []analyze.Summary{scriptRun("a", "plain.py", vanilla),
			scriptRun("b", "dp.py", ghost)}, []string{"a", "a"}},
		{"a script beside methods", []analyze.Summary{scriptRun("g", "dp.py", ghost), scriptRun("v", "dp.py", vanilla),
			scriptRun("gan", "gan.py", none)}, []string{"v", "v", "gan"}},
		{"a built-in experiment beside a script with methods", []analyze.Summary{scriptRun("v", "train.py", vanilla),
			scriptRun("g", "train.py", ghost), scriptRun("b", "-m dpsight_experiments", ghost)},
			[]string{"v", "v", "b"}},
		{"two of each", []analyze.Summary{scriptRun("r", "resnet.py", none), scriptRun("g", "gan.py", none),
			scriptRun("g2", "gan.py", none), scriptRun("r2", "resnet.py", none)},
			[]string{"r", "g", "g", "r"}},
	} {
		s := told(NewMatchedStudy(c.runs, nil, ""))
		var got []string
		for i := range s.Cells {
			if b := s.Cells[i].Baseline; b != nil {
				got = append(got, b.RunID)
			}
		}
		if !slices.Equal(got, c.want) || (s.Baseline == nil) != (c.want == nil) ||
			(s.Overhead == nil) != (c.want == nil) || (s.Uncompared == nil) != (c.want != nil) {
			t.Errorf("%s: compared with %v, want %v (%+v)", c.what, got, c.want, s.Uncompared)
		}
		if asked := told(NewStudy(c.runs, &c.runs[0])); asked.Overhead == nil || len(asked.Overhead.Runs) != len(c.runs) {
			t.Errorf("%s: not compared though somebody asked for it", c.what)
		}
	}
	runs := []analyze.Summary{scriptRun("resnet", "resnet.py", none), scriptRun("gan", "gan.py", none)}
	if got := report.OtherWork(NewMatchedStudy(runs, nil, "").Uncompared); got !=
		"the runs are of different scripts (resnet.py and gan.py)" {
		t.Error(got)
	}
	if s := told(NewStudy(runs, &runs[0])); !slices.Contains(s.Overhead.Runs[1].Warnings, "script differs: gan.py, "+
		"baseline resnet.py") {
		t.Errorf("%q", s.Overhead.Runs[1].Warnings)
	}
}

// The baseline that a suite names applies to the suite's runs, and not to other runs in the store. If a failed run does
// other work, it is compared with no baseline.
func TestMixedStore(t *testing.T) {
	method := func(name, preset string, hidden, batch float64) analyze.Summary {
		return scriptRun(name, "-m dpsight_experiments", map[string]any{"method": strings.SplitN(name, "-", 2)[0],
			"model": "transformer", "preset": preset, "hidden_dim": hidden, "batch_size": batch})
	}
	suite := func(r analyze.Summary) analyze.Summary { r.SuiteID = "s"; return r }
	failed := func(r analyze.Summary) analyze.Summary { r.Status = schemas.StatusOOM; return r }
	vanilla := suite(method("vanilla", "tiny", 64, 8))
	for _, c := range []struct {
		what string
		runs []analyze.Summary
		want string
	}{
		{"a suite with a script beside it", []analyze.Summary{vanilla, suite(method("ghost", "tiny", 64, 8)),
			scriptRun("gan", "gan.py", nil)}, "vanilla vanilla gan"},
		{"that failed", []analyze.Summary{vanilla, suite(method("ghost", "tiny", 64, 8)),
			failed(scriptRun("gan", "gan.py", nil))}, "vanilla vanilla gan"},
		{"a larger model", []analyze.Summary{vanilla, suite(method("ghost", "tiny", 64, 8)),
			method("ghost-s", "small", 256, 8),
			method("vanilla-s", "small", 256, 8)}, "vanilla vanilla vanilla-s vanilla-s"},
		{"a larger model in the suite: it was asked for", []analyze.Summary{vanilla,
			suite(method("ghost-s", "small", 256, 8))},
			"vanilla vanilla"},
		{"another batch is the same work, and is said", []analyze.Summary{vanilla, method("ghost", "tiny", 64, 16)},
			"vanilla vanilla"},
	} {
		for i := range c.runs { // one fact about what a run trained is enough for this test
			for k, v := range c.runs[i].Params {
				c.runs[i].RunFacts = append(c.runs[i].RunFacts, identity.Fact{What: k, Value: identity.TextOf(v),
					Condition: slices.Contains([]string{"preset", "model", "hidden_dim", "batch_size"}, k),
					Param:     true})
			}
		}
		s := told(NewMatchedStudy(c.runs, map[string]any{"method": "vanilla"}, "s"))
		var got []string
		for i := range s.Cells {
			x := &s.Cells[i]
			got = append(got, x.Baseline.RunID)
			if alone := slices.Contains(x.Overhead.Warnings,
				"not compared: no other run here does the same work"); alone != (x.Name == "gan") {
				t.Errorf("%s: %s: %q", c.what, x.Name, x.Overhead.Warnings)
			}
			if b := x.Params["batch_size"]; b == 16.0 && !slices.Contains(x.Overhead.Warnings,
				"batch_size differs: 16, baseline 8") {
				t.Errorf("%s: %q", c.what, x.Overhead.Warnings)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: compared with %v, want %s", c.what, got, c.want)
		}
	}
	s := NewMatchedStudy([]analyze.Summary{method("vanilla", "tiny", 64, 8), method("ghost", "small", 256, 8)}, nil, "")
	if report.OtherWork(s.Uncompared) != "the runs are of different presets (tiny and small)" {
		t.Errorf("%+v", s.Uncompared)
	}
	sizes := []analyze.Summary{scriptRun("a", "train.py", map[string]any{"hidden_dim": 64.0}),
		scriptRun("b", "train.py",
			map[string]any{"hidden_dim": 128.0})}
	if s := told(NewMatchedStudy(sizes, nil, "")); s.Uncompared != nil {
		t.Errorf("a script's own sizes: %+v", s.Uncompared)
	}
}

// If the runs are variants of one method and none is a baseline, the user can compare them by naming one as the
// baseline. Without a named baseline, each variant has a note that no vanilla run does the same work.
func TestVariantsWithoutBaseline(t *testing.T) {
	run := func(name, method, key, value string) analyze.Summary {
		r := scriptRun(name, "-m dpsight_experiments", map[string]any{"method": method, key: value})
		r.RunFacts = []identity.Fact{{What: key, Value: value, Condition: key == "clipping", Param: true}}
		return r
	}
	const none = "not compared: no vanilla run here does the same work; name a run with --baseline"
	hooks, flat := run("hooks", "dpsgd", "grad_sample_mode", "hooks"), run("layers", "dpsgd", "clipping", "per_layer")
	hooks.RunFacts, flat.RunFacts = append(hooks.RunFacts, identity.Fact{What: "clipping", Value: "flat", Param: true}),
		append(flat.RunFacts, identity.Fact{What: "grad_sample_mode", Value: "ew", Param: true})
	s := told(NewMatchedStudy([]analyze.Summary{hooks, flat}, nil, ""))
	for i := range s.Cells {
		if got := s.Cells[i].Overhead.Warnings; !slices.Contains(got, none) {
			t.Errorf("%s: %q", s.Cells[i].Name, got)
		}
	}
	named := told(NewStudy([]analyze.Summary{hooks, flat}, &hooks))
	small, large := run("small", "vanilla", "batch_size", "8"), run("large", "vanilla", "batch_size", "16")
	vanilla := told(NewMatchedStudy([]analyze.Summary{small, large, run("ghost", "ghost", "batch_size", "8")}, nil, ""))
	for i, want := range []string{"", "not compared: it is a baseline itself, but no other run here is compared " +
		"with it", ""} {
		if got := strings.Join(vanilla.Cells[i].Overhead.Warnings, "; "); got != want {
			t.Errorf("%s: %q", vanilla.Cells[i].Name, got)
		}
	}
	if got := named.Cells[1].Overhead; got.PeakDeltaBytes == nil || slices.Contains(got.Warnings, none) {
		t.Errorf("named: %+v", got)
	}
}
