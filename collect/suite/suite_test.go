package suite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect"
)

func TestBuiltinSuites(t *testing.T) {
	for _, test := range []struct {
		name       string
		runs, bare int
	}{{"quick", 5, 0}, {"headline", 6, 3}} {
		s, err := Load(test.name)
		if err != nil {
			t.Fatal(err)
		}
		keys, names, bare := map[string]bool{}, map[string]bool{}, 0
		for _, x := range s.Experiments {
			keys[x.Key], names[x.Name] = true, true
			if x.Bare {
				bare++
			}
		}
		if s.Name != test.name || len(s.Experiments) < test.runs || len(keys) != len(s.Experiments) || len(names) != len(keys) || bare != test.bare {
			t.Errorf("%s: %d experiments, %d keys, %d names, %d bare", s.Name, len(s.Experiments), len(keys), len(names), bare)
		}
		if s.Baseline["method"] != "vanilla" {
			t.Errorf("%s: baseline %v", s.Name, s.Baseline)
		}
	}
	s, err := Load("headline")
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range s.Experiments {
		if x.Params["preset"] != "seed" || x.Params["num_iter"] != int64(3) || x.Params["warmup_iter"] != int64(2) || x.Params["seq_len"] != int64(16384) {
			t.Errorf("experiment %d: %v", i, x.Params)
		}
		if x.Bare != (i%2 == 1) || i%2 == 1 && x.Params["method"] != s.Experiments[i-1].Params["method"] {
			t.Errorf("experiment %d: a bare run must follow its instrumented run", i)
		}
	}
}

func TestParse(t *testing.T) {
	s, err := Parse("mine.yaml", []byte(`
baseline: {method: standard}
timeout: 90s
defaults: {preset: tiny, max_grad_norm: 0.5}
experiments:
  - {method: vanilla}
  - {method: ghost, batch_size: 2, learning-rate: 1e-3}
  - {method: ghost, batch_size: 2, learning-rate: 0.001}
  - {method: ghost, batch_size: 2, learning-rate: 1e-3, bare: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "mine" || s.Timeout.Seconds() != 90 || s.Baseline["method"] != "vanilla" {
		t.Errorf("%+v", s)
	}
	x := s.Experiments
	if x[1].Key != x[2].Key || x[1].Repetition != 0 || x[2].Repetition != 1 {
		t.Errorf("the same experiment twice: keys %s, %s, repetitions %d, %d", x[1].Key, x[2].Key, x[1].Repetition, x[2].Repetition)
	}
	if x[3].Key == x[1].Key || x[0].Key == x[1].Key {
		t.Error("different experiments have the same key")
	}
	if x[1].Name != "ghost-batch_size2-learning-rate0.001" || x[3].Name != x[1].Name+"-bare" {
		t.Errorf("names %q, %q", x[1].Name, x[3].Name)
	}
	if _, ok := x[0].Params["max_grad_norm"]; ok || x[1].Params["max_grad_norm"] != 0.5 {
		t.Errorf("params %v, %v", x[0].Params, x[1].Params)
	}
	plan := s.Plan("id", time.Unix(0, 0))
	if len(plan.Experiments) != 3 || plan.Experiments[2].Params["bare"] != true || plan.Experiments[1].Params["bare"] != nil {
		t.Errorf("plan %+v", plan.Experiments)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "it is empty"},
		{"name: x", "it has no experiments"},
		{"name: x\nmatrix: {method: [vanilla]}\n", "unknown key matrix"},
		{"experiments: [{method: vanila}]", "did you mean vanilla"},
		{"experiments: [{method: vanilla}, {method: vanilla, sequence: 3}]", "experiment 2: unknown option"},
		{"experiments: [{method: [vanilla]}]", "line 1: a value must be"},
		{"experiments: [{method: vanilla, bare: maybe}]", "bare must be true or false"},
		{"timeout: soon\nexperiments: [{method: vanilla}]", `timeout "soon"`},
		{"baseline: {method: ghost}\nexperiments: [{method: vanilla}]", "no experiment matches the baseline"},
		{"experiments: [{method: vanilla, method: ghost}]", "already defined"},
		{"experiments: [{method: vanilla}]\n---\nname: y", "more than one document"},
		{"\tname", "suite bad.yaml: "},
	} {
		_, err := Parse("bad.yaml", []byte(test.text))
		var usage *collect.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want one line with %q", test.text, err, test.want)
		}
	}
	if _, err := Load("no-such-suite"); err == nil || !strings.Contains(err.(*collect.UsageError).Hint, "headline, quick") {
		t.Errorf("an unknown suite: %v", err)
	}
	path := filepath.Join(t.TempDir(), "file.yaml")
	os.WriteFile(path, []byte("experiments: [{method: dpsgd}]"), 0o600)
	if s, err := Load(path); err != nil || s.Name != "file" {
		t.Errorf("%+v, %v", s, err)
	}
}
