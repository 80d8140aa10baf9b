package suite

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/experiments"
)

func TestBuiltinSuites(t *testing.T) {
	for _, test := range []struct {
		name       string
		runs, bare int
	}{{"quick", 5, 0}, {"headline", 10, 3}, {"headline-batch", 11, 0}, {"trainers", 16, 0}, {"seq", 8, 0}} {
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
		if s.Name != test.name || len(s.Experiments) < test.runs || len(keys) != len(s.Experiments) ||
			len(names) != len(keys) || bare != test.bare {
			t.Errorf("%s: %d experiments, %d keys, %d names, %d bare", s.Name, len(s.Experiments), len(keys),
				len(names), bare)
		}
		if s.Baseline["method"] != "vanilla" {
			t.Errorf("%s: baseline %v", s.Name, s.Baseline)
		}
	}
	if n := len(Names()); n != 5 {
		t.Errorf("%d built-in suites", n)
	}
	s, err := Load("headline")
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range s.Experiments {
		if x.Params["preset"] != "seed" || x.Params["num_iter"] != int64(3) || x.Params["warmup_iter"] != int64(2) ||
			x.Params["seq_len"] != int64(16384) {
			t.Errorf("experiment %d: %v", i, x.Params)
		}
		if x.Bare && (i == 0 || x.Params["method"] != s.Experiments[i-1].Params["method"] || s.Experiments[i-1].Bare) {
			t.Errorf("experiment %d: a bare run must follow its instrumented run", i)
		}
	}
	trainers, err := Load("trainers")
	if err != nil {
		t.Fatal(err)
	}
	if n := trainers.Experiments[15]; len(trainers.Experiments) != 16 ||
		n.Name != "DPFastGradientClippingTrainer_bs8_seq1024" || n.Params["method"] != "fgc" ||
		trainers.Baseline["method"] != "vanilla" {
		t.Errorf("%d experiments, the last %+v", len(trainers.Experiments), n)
	}
}

// The suite headline-batch has every method that accepts bf16.
func TestHeadlineBatchHasAllMethods(t *testing.T) {
	s, err := Load("headline-batch")
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, m := range experiments.Methods() {
		params, err := experiments.Resolve(map[string]string{"method": m.ID, "precision": "bf16", "preset": "small",
			"seq_len": "512", "batch_size": "32", "num_iter": "20", "warmup_iter": "3"})
		if err != nil {
			continue
		}
		if !slices.ContainsFunc(s.Experiments, func(x *Experiment) bool { return maps.Equal(x.Params, params) }) {
			missing = append(missing, m.ID)
		}
	}
	if len(missing) > 0 || len(s.Experiments) < 8 {
		t.Errorf("it has %d experiments and lacks %v", len(s.Experiments), missing)
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
	if len(x) != 3 || x[0].Repeats != 1 || x[1].Repeats != 2 || x[2].Repeats != 1 {
		t.Fatalf("the same experiment twice is one with two repetitions: %+v", x)
	}
	if x[2].Key == x[1].Key || x[0].Key == x[1].Key {
		t.Error("different experiments have the same key")
	}
	if x[1].Name != "ghost-batch_size2-learning_rate0.001" || x[2].Name != x[1].Name+"-bare" {
		t.Errorf("names %q, %q", x[1].Name, x[2].Name)
	}
	var order []string
	for _, task := range s.Tasks() {
		order = append(order, fmt.Sprintf("%s/%d", task.Name, task.Repetition))
	}
	if got := strings.Join(order, " "); got != "vanilla/0 "+x[1].Name+"/0 "+x[2].Name+"/0 "+x[1].Name+"/1" {
		t.Errorf("order %s", got)
	}
	if _, ok := x[0].Params["max_grad_norm"]; ok || x[1].Params["max_grad_norm"] != 0.5 {
		t.Errorf("params %v, %v", x[0].Params, x[1].Params)
	}
	plan := s.Document("id", time.Unix(0, 0))
	if len(plan.Experiments) != 3 || plan.Experiments[2].Params["bare"] != true ||
		plan.Experiments[1].Params["bare"] != nil {
		t.Errorf("plan %+v", plan.Experiments)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "the file is empty"},
		{"name: x", "the suite has no experiments"},
		{"name: x\nmatrices: {method: [vanilla]}\n", "unknown key matrices"},
		{"experiments: [{method: vanila}]", "did you mean vanilla"},
		{"experiments: [{method: vanilla}, {method: vanilla, sequence: 3}]", "experiment 2: unknown option"},
		{"experiments: [{method: [vanilla]}]", "line 1: a value must be"},
		{"experiments: [{method: vanilla, bare: maybe}]", "bare must be true or false"},
		{"timeout: soon\nexperiments: [{method: vanilla}]", `timeout "soon"`},
		{"baseline: {method: ghost}\nexperiments: [{method: vanilla}]", "no experiment matches the baseline"},
		{"experiments: [{method: vanilla, method: ghost}]", "already defined"},
		{"experiments: [{method: vanilla}]\n---\nname: y", "more than one document"},
		{"\tname", "suite bad.yaml: "},
		{"import torch", "line 1: `import ...` is no suite"},
		{"[1]", "line 1: a list is no suite"},
		{"42", "line 1: `42` is no suite"},
		{"experiments: {method: vanilla}", "line 1: a mapping is no list of experiments"},
		{"matrix: {method: [vanilla]}\nrepeats: 1.5", `line 2: a whole number from 1 belongs here, not "1.5"`},
		{"matrix: {method: [vanilla]}\nrecord_steps: 0", `line 2: a whole number from 1 belongs here, not "0"`},
		{"matrix: {method: [vanilla], batch_size: [4, null]}", "line 1: a value must be"},
		{"matrix: {method: [vanilla, ghost]}\nnames: x", "two experiments have the name x: the matrix"},
	} {
		_, err := Parse("bad.yaml", []byte(test.text))
		var usage *collect.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want one line with %q", test.text, err, test.want)
		}
	}
	for text, want := range map[string]string{"matrx: {method: [vanilla]}": documentKeys,
		"matrix: {method: [vanila]}":                            "docs/suites.md",
		"matrix: {method: [vanilla], physical_batch_size: [3]}": "exclude or where"} {
		_, err := Parse("bad.yaml", []byte(text))
		if usage := new(collect.UsageError); !errors.As(err, &usage) || !strings.Contains(usage.Hint(), want) {
			t.Errorf("%s: %v, with another hint than %s", text, err, want)
		}
	}
	if _, err := Load("no-such-suite"); err == nil || !strings.Contains(err.(*collect.UsageError).Hint(),
		"give a file, or one of the built-in suites: headline") {
		t.Errorf("an unknown suite: %v", err)
	}
	path := filepath.Join(t.TempDir(), "file.yaml")
	os.WriteFile(path, []byte("experiments: [{method: dpsgd}]"), 0o600)
	if s, err := Load(path); err != nil || s.Name != "file" {
		t.Errorf("%+v, %v", s, err)
	}
}
