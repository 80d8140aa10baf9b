package suite

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect"
)

func parse(t *testing.T, text string) *Suite {
	t.Helper()
	s, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names(s *Suite) string {
	var out []string
	for _, x := range s.Experiments {
		out = append(out, x.Name)
	}
	return strings.Join(out, " ")
}

func TestMatrixExperimentsAndInclude(t *testing.T) {
	s := parse(t, `
name: all
repeats: 3
cooldown: 2s
defaults: {preset: tiny, batch_size: 8}
matrix:
  method: [vanilla, dpsgd, DPGhostClippingTrainer]
  physical_batch_size: [4, 8, 16]
exclude: [{method: [dpsgd, ghost], physical_batch_size: 4}]
where: physical_batch_size <= batch_size
experiments: [{method: fgc, repeats: 1}, {method: vanilla, physical_batch_size: 8, bare: true}]
include: [{method: dpsgd, physical_batch_size: 4, name: chosen}]
`)
	const want = "vanilla-physical_batch_size4 vanilla-physical_batch_size8 dpsgd-physical_batch_size8 " +
		"ghost-physical_batch_size8 fgc vanilla-physical_batch_size8-bare chosen"
	if got := names(s); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// Of the 9 cells, exclude removes two with a small physical batch. The condition "where" removes the three whose
	// physical batch is larger than the batch, which the options would refuse too.
	if s.LeftOut != 5 || s.Cooldown != 2*time.Second || s.Experiments[4].Repeats != 1 || s.Experiments[0].Repeats != 3 {
		t.Errorf("%d left out, cooldown %s, repeats %d and %d", s.LeftOut, s.Cooldown, s.Experiments[4].Repeats,
			s.Experiments[0].Repeats)
	}
	tasks := s.Tasks()
	if len(tasks) != 6*3+1 || tasks[6].Name != "chosen" || tasks[7].Name != "vanilla-physical_batch_size4" ||
		tasks[7].Repetition != 1 {
		t.Errorf("%d runs, then %s, %s", len(tasks), tasks[6].Name, tasks[7].Name)
	}
}

func TestNames(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"experiments: [{method: ghost}]", "ghost"},
		{"matrix: {method: [vanilla, ghost], batch_size: [4]}", "vanilla ghost"},
		{"matrix: {batch_size: [4, 8], method: [StandardTrainer]}", "vanilla-batch_size4 vanilla-batch_size8"},
		{"matrix: {method: [vanilla], precision: [fp32, bf16], checkpointing: [true, false]}",
			"vanilla-fp32-checkpointing vanilla-fp32-no-checkpointing vanilla-bf16-checkpointing " +
				"vanilla-bf16-no-checkpointing"},
		{"matrix: {method: [vanilla], bare: [false, true]}", "vanilla vanilla-bare"},
		{"matrix: {method: [dpsgd, functorch]}", "dpsgd functorch"},
		{"command: [x, '{lr}']\nmatrix: {lr: [1e-3, 0.1], data: [cifar]}", "lr0.001 lr0.1"},
		{"command: [x]\nexperiments: [{a: foo}, {b: foo}, {}]", "foo bfoo test"},
		{"command: [x]\nnames: 'n={a}'\nmatrix: {a: [1, 2], bare: [false, true]}", "n=1 n=1-bare n=2 n=2-bare"},
		{"experiments: [{method: ghost, name: 幽灵}, {method: vanilla}]", "幽灵 vanilla"},
	} {
		if got := names(parse(t, test.text)); got != test.want {
			t.Errorf("%s: %q, want %q", test.text, got, test.want)
		}
	}
}

func TestCommandTemplate(t *testing.T) {
	s := parse(t, `
name: own
baseline: {method: sgd}
environment: {MODE: fast, API_TOKEN: do-not-tell}
command: [python, train.py, "--method={method}", --lr, "{lr}", --format, "{{json}}"]
defaults: {lr: 1e-3}
matrix: {method: [sgd, dp], verbose: [true]}
`)
	if got := strings.Join(s.Experiments[1].Command, " "); got != "python train.py --method=dp --lr 1e-3 --format "+
		"{json}" {
		t.Errorf("%s", got)
	}
	if p := s.Experiments[1].Params; p["lr"] != 1e-3 || p["verbose"] != true || p["method"] != "dp" || len(p) != 3 {
		t.Errorf("%v", p)
	}
	// Experiments that differ only in a secret are the same. Experiments that differ in another value are not.
	same := parse(t, "name: other\nenvironment: {MODE: fast, API_TOKEN: another-secret}\ncommand: [python, train.py, "+
		"'--method={method}', --lr, '{lr}', --format, '{{json}}']\n"+
		"experiments: [{method: dp, lr: 1e-3, verbose: true}]")
	if same.Experiments[0].Key != s.Experiments[1].Key {
		t.Error("the key depends on a secret, or on the place in the file")
	}
	slow := parse(t, "name: own\nenvironment: {MODE: slow}\ncommand: [python, train.py, '--method={method}', --lr, "+
		"'{lr}', --format, '{{json}}']\n"+
		"experiments: [{method: dp, lr: 1e-3, verbose: true}]")
	if slow.Experiments[0].Key == s.Experiments[1].Key {
		t.Error("the key does not depend on the environment")
	}
	if doc := s.Document("id", time.Now()); doc.Environment["MODE"] != "fast" ||
		strings.Contains(doc.Environment["API_TOKEN"], "tell") {
		t.Errorf("%v", doc.Environment)
	}
}

func TestParseRefusesPlans(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"matrix: {method: []}", "line 1: the list of method is empty"},
		{"matrix: {method: [vanilla], name: [a, b]}", "name cannot vary"},
		{"matrix: {method: [vanilla, [a]]}", "line 1: a value must be"},
		{"matrix: {method: [vanilla], batchsize: [1]}",
			`the matrix: unknown option "batchsize"; did you mean batch_size? (method vanilla, batchsize 1)`},
		{"matrix: {seed: [1, 2], method: [vanilla], num_heads: [3]}", "num_heads must be a divisor of hidden_dim " +
			"256, not 3 (seed 1, method vanilla, num_heads 3)"},
		{"experiments: [{method: vanilla}]\nexclude: [{methd: ghost}]", "line 2: unknown option"},
		{"experiments: [{method: vanilla}]\nexclude: {method: ghost}", "line 2: "},
		{"experiments: [{method: vanilla}]\nwhere: batch_sise > 3", `where "batch_sise > 3": unknown option`},
		{"experiments: [{method: vanilla}]\nwhere: method == ghost",
			"exclude and where leave none of the suite's 1 experiment"},
		{"experiments: [{method: vanilla}]\nrepeats: -1", `line 2: a whole number from 1 belongs here, not "-1"`},
		{"experiments: [{method: vanilla}]\nrepeats: some",
			`line 2: a whole number from 1 belongs here, not "some"`},
		{"experiments: [{method: vanilla, repeats: 0}]", "experiment 1: repeats must be a whole number from 1"},
		{"experiments: [{method: vanilla}]\ncooldown: cold", `cooldown "cold" is not a duration`},
		{"experiments: [{method: vanilla}]\nenvironment: {CUDA_VISIBLE_DEVICES: 1}", "line 2: set CUDA_VISIBLE_DEVICES " +
			"in dpsight's own environment"},
		{"experiments: [{method: vanilla}]\nenvironment: {DPSIGHT_SPOOL: x}", "set DPSIGHT_SPOOL in dpsight's own"},
		{"experiments: [{method: vanilla}]\nenvironment: {A: [1]}", "line 2: a value must be"},
		{"command: python train.py\nexperiments: [{a: 1}]", "line 1: `python ...` is no list of words"},
		{"command: [run, '{a}', '{bb}']\nexperiments: [{a: 1, b: 2}]", "experiment 1: the command has {bb}, but " +
			"neither the experiment nor the defaults have such a parameter; known: a, b"},
		{"command: ['']\nexperiments: [{a: 1}]", "first word is empty"},
		{"command: [x]\nexperiments: [{a: 1}]\nwhere: b == 1", "no experiment has a parameter b; known: a"},
		{"experiments: [{method: vanilla, name: x}, {method: ghost, name: x}]", "two experiments have the name x: " +
			"experiment 1 and experiment 2"},
		{"names: '{seeed}'\nexperiments: [{method: vanilla}]", "names has {seeed}"},
		{"defaults: [1]\nexperiments: [{method: vanilla}]", "line 1: names with values belong here"},
		{"command: [x]\nmatrix: {a: [1,2,3,4,5,6,7,8,9,10,11], b: [1,2,3,4,5,6,7,8,9,10,11], c: " +
			"[1,2,3,4,5,6,7,8,9,10,11], d: [1,2,3,4,5,6,7,8,9,10,11]}", "more than 10000 cells"},
		{"command: [x]\nrepeats: 1000000000\nexperiments: [{a: 1}]", "more than 10000"},
		{"command: [x]\nmatrix: {password: [one-of-them, another-one]}", "masked as secrets, by their names: give " +
			"password another name"},
		{"defaults: {batch_size: 3, batch-size: 4}\nexperiments: [{method: vanilla}]",
			"batch_size is already defined at line 1"},
	} {
		_, err := Parse("bad.yaml", []byte(test.text))
		var usage *collect.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "\n") || usage.Hint() == "" {
			t.Errorf("%q\ngot  %v\nwant %q", test.text, err, test.want)
		}
	}
}

// In exclude, where and baseline, and with --only, a name such as ew stands for the method dpsgd with an option. A name
// such as ew selects only experiments with both the method and the option, and also selects among experiments that the
// options refuse: ew has no bf16.
func TestNamesOfMethodsWithParameters(t *testing.T) {
	names := func(s *Suite) string {
		var out []string
		for _, x := range s.Experiments {
			out = append(out, x.Name)
		}
		return strings.Join(out, " ")
	}
	for constraint, want := range map[string]string{
		"exclude: [{method: ew}]":                      "dpsgd-fp32 dpsgd-bf16 functorch-fp32 functorch-bf16",
		"exclude: [{method: ew}, {method: functorch}]": "dpsgd-fp32 dpsgd-bf16",
		"exclude: [{method: EW, precision: bf16}]":     "dpsgd-fp32 dpsgd-bf16 functorch-fp32 functorch-bf16 ew-fp32",
		"where: method != ew or precision == fp32":     "dpsgd-fp32 dpsgd-bf16 functorch-fp32 functorch-bf16 ew-fp32",
	} {
		s := parse(t, "name: s\nbaseline: {method: dpsgd}\nmatrix: {method: [dpsgd, functorch, ew], precision: "+
			"[fp32, bf16]}\n"+constraint)
		if got := names(s); got != want {
			t.Errorf("%s leaves %s", constraint, got)
		}
	}
	s := parse(t, "name: s\nbaseline: {method: functorch}\nmatrix: {method: [dpsgd, functorch, ew, ghost]}")
	if s.Baseline["method"] != "dpsgd" || s.Baseline["grad_sample_mode"] != "functorch" {
		t.Errorf("the baseline is %v", s.Baseline)
	}
	for choice, want := range map[string]string{"method=functorch": "functorch", "method=hooks": "dpsgd",
		"method=dpsgd": "dpsgd functorch ew", "method=ghost": "ghost"} {
		left, err := s.Select([]string{choice})
		if err != nil || names(left) != want {
			t.Errorf("%s: %v, %v", choice, left, err)
		}
	}
}

func TestSelect(t *testing.T) {
	s := parse(t, `
name: choose
baseline: {method: vanilla}
matrix: {method: [vanilla, dpsgd, ghost], batch_size: [4, 8], bare: [false, true]}
`)
	for _, test := range []struct {
		choices []string
		want    int
		first   string
	}{
		{[]string{"method=ghost"}, 4, "ghost-batch_size4"},
		{[]string{"method=ghost", "method=StandardTrainer"}, 8, "vanilla-batch_size4"},
		{[]string{"method=ghost", "method=vanilla", "batch-size=8", "bare=false"}, 2, "vanilla-batch_size8"},
		{[]string{"name=dpsgd-batch_size8-bare"}, 1, "dpsgd-batch_size8-bare"},
		{[]string{"batch_size=8.0"}, 6, "vanilla-batch_size8"},
	} {
		left, err := s.Select(test.choices)
		if err != nil || len(left.Experiments) != test.want || left.Experiments[0].Name != test.first {
			t.Errorf("%v: %v, %v", test.choices, left, err)
		}
	}
	for choice, want := range map[string]string{
		"method": "--only method has no value", "methd=x": "unknown option",
		"method=fgc": "no experiment of suite choose has method=fgc",
		"seed=1":     "no experiment of suite choose has seed=1",
	} {
		if _, err := s.Select([]string{choice}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", choice, err)
		}
	}
	plan := s.Plan(nil, false)
	if !slices.Equal(plan.Varies, []string{"method", "batch_size", "bare"}) || plan.Runs != 12 || plan.Todo != 12 ||
		plan.SuiteID != nil {
		t.Errorf("%+v", plan)
	}
}
