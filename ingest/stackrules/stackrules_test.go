package stackrules

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/ingest/torchsnap"
)

var update = flag.Bool("update", false, "write the table of rules into the documentation")

const site = "/env/lib/python3.12/site-packages/"

// stack returns a stack of frames, each given as "file function", innermost first.
func stack(words ...string) (out []torchsnap.Frame) {
	for _, w := range words {
		file, function, _ := strings.Cut(w, " ")
		out = append(out, torchsnap.Frame{File: file, Function: function, Line: 1})
	}
	return out
}

func TestRoles(t *testing.T) {
	call := site + "torch/nn/modules/module.py _call_impl"
	for _, c := range []struct {
		frames []torchsnap.Frame
		want   Role
	}{
		{stack(site+"torch/nn/modules/linear.py forward", call, "train.py <module>"), Forward},
		{stack(site+"torch/nn/functional.py cross_entropy", "train.py <module>"), Forward},
		{stack(site+"torch/autograd/graph.py _engine_run_backward", "train.py <module>"), Backward},
		// A module's call inside a backward pass is a forward that is recomputed.
		{stack(call, site+"torch/utils/checkpoint.py recompute_fn", site+"torch/autograd/graph.py _engine_run_backward"),
			Forward},
		{stack(site+"torch/optim/adamw.py _init_group", site+"torch/optim/adamw.py step", "train.py main"), State},
		{stack(site+"torch/optim/adamw.py adamw", site+"torch/optim/adamw.py step", "train.py main"), Optimizer},
		{stack(`C:\env\site-packages\torch\optim\sgd.py step`, "train.py main"), Optimizer},
		// The optimizer LBFGS calls the model through a closure.
		{stack(call, "train.py closure", site+"torch/optim/lbfgs.py step"), Forward},
		{stack(site+"torch/nn/modules/module.py convert", site+"torch/nn/modules/module.py _apply", "train.py main"), Setup},
		{stack(site+"torch/nn/modules/linear.py __init__", "model.py __init__", "train.py main"), Setup},
		{stack("model.py __init__", "train.py main"), Setup},
		// Memory that a module's call requests has the role Forward and not Setup, even if the function's name is
		// __init__.
		{stack("cache.py __init__", call, "train.py main"), Forward},
		{stack(site+"torch/utils/data/dataloader.py __next__", "train.py main"), Data},
		{stack(site+"opacus/grad_sample/linear.py compute_linear_grad_sample",
			site+"opacus/grad_sample/grad_sample_module.py capture_backprops_hook"), PerSample},
		{stack(site+"opacus/optimizers/optimizer.py clip_and_accumulate", "train.py main"), Clip},
		{stack("optimizer_fast_gradient_clipping.py add_noise", "train.py main"), Clip},
		{stack(site+"diffusers/schedulers/scheduling_ddpm.py add_noise", "train.py main"), None},
		{stack("?? torch::CapturedTraceback::gather", "?? torch::autograd::AccumulateGrad::apply"), Gradient},
		{stack("?? torch::CapturedTraceback::gather", "?? at::cuda::getCUDABlasLtWorkspace"), Workspace},
		{stack("?? torch::CapturedTraceback::gather"), Backward}, // a stack without Python is of a thread of autograd's
		{stack("train.py main", "train.py <module>"), None},
	} {
		stacks := torchsnap.NewStacks()
		id := stacks.Add(c.frames)
		stacks.Add(stack("python.py recorded"))
		meanings, err := Default.Meanings(stacks)
		if err != nil {
			t.Fatal(err)
		}
		if meanings[id].Role != c.want {
			t.Errorf("%v: %v, want %v", c.frames, meanings[id].Role, c.want)
		}
		if !meanings[0].none() {
			t.Errorf("no stack: %v", meanings[0])
		}
	}
}

// If no stack of a recording has a frame of Python, a stack without Python does not count as backward.
func TestRolesWithoutPython(t *testing.T) {
	stacks := torchsnap.NewStacks()
	id := stacks.Add(stack("?? malloc"))
	meanings, err := Default.Meanings(stacks)
	if err != nil || !meanings[0].none() || !meanings[id].none() {
		t.Errorf("%v, %v", meanings, err)
	}
}

// A user's rules take precedence over the built-in rules, and give a stack a role, a category or a phase.
func TestUserRules(t *testing.T) {
	user, err := Read(strings.NewReader(`
- {role: data, file: my_loader}
- {category: buffers, function: ^rope_cache$, file: 'model\.py$'}
`))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := Default.Before(user)
	if err != nil {
		t.Fatal(err)
	}
	call := site + "torch/nn/modules/module.py _call_impl"
	for _, c := range []struct {
		frames []torchsnap.Frame
		want   Meaning
	}{
		{stack("my_loader/batches.py next", call), Meaning{Role: Data}},
		{stack("model.py rope_cache", call), Meaning{Category: "buffers"}},
		{stack(call, "model.py rope_cache"), Meaning{Category: "buffers"}}, // the user's rule matches the outer frame
		{stack("model.py other", call), Meaning{Role: Forward}},
	} {
		stacks := torchsnap.NewStacks()
		id := stacks.Add(c.frames)
		meanings, err := rules.Meanings(stacks)
		if err != nil || meanings[id] != c.want {
			t.Errorf("%v: %v, %v, want %v", c.frames, meanings[id], err, c.want)
		}
	}
	for text, want := range map[string]string{
		"- {role: data}":                                   "rule 1: it has neither a file nor a function",
		"- {file: a}":                                      "rule 1: it has one of a role, a category and a phase",
		"- {role: data, phase: x, file: a}":                "rule 1: it has one of a role, a category and a phase",
		"- {phase: 'a,b', file: a}":                        `rule 1: "a,b" is no name of a phase: --at separates by commas`,
		"- {role: data, category: inputs, file: a}":        "rule 1: it has one of a role, a category and a phase",
		"- {role: dta, file: a}":                           `rule 1: "dta" is no role: setup, data`,
		"- {category: stuff, file: a}":                     `rule 1: "stuff" is no category`,
		"- {role: data, file: a}\n- {role: data, file: (}": "rule 2: a rule for data: error parsing regexp",
		"- {role: data, fle: a}":                           "line 1: field fle not found in a rule",
		"role: data":                                       "it is no list of rules",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", text, err, want)
		}
	}
	if rules, err := Read(strings.NewReader("")); err != nil || rules == nil || len(rules) > 0 {
		t.Errorf("%v, %v: an empty file takes a run's rules away", rules, err)
	}
}

// docs lists the current stack rules. The test's option -update writes them there.
func TestRulesAreDocumented(t *testing.T) {
	const file, begin, end = "../../docs/snapshots.md", "<!-- rules -->\n", "<!-- end of rules -->\n"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	from, to := strings.Index(text, begin)+len(begin), strings.Index(text, end)
	if from < len(begin) || to < from {
		t.Fatalf("%s has no place for the rules", file)
	}
	var want strings.Builder
	want.WriteString("| role | file | function |\n| --- | --- | --- |\n")
	for i, rules := range [][]Rule{Default.Strong, Default.Weak} {
		for _, r := range rules {
			role := r.Role.String()
			if i == 1 {
				role += " (weak)"
			}
			fmt.Fprintf(&want, "| %s | %s | %s |\n", role, cell(r.File), cell(r.Function))
		}
	}
	if text[from:to] == want.String() {
		return
	}
	if !*update {
		t.Fatalf("%s has other rules: go test ./ingest/stackrules -update", file)
	}
	if err := os.WriteFile(file, []byte(text[:from]+want.String()+text[to:]), 0o644); err != nil {
		t.Fatal(err)
	}
}

// cell returns a pattern, escaped for a cell of a Markdown table.
func cell(pattern string) string {
	if pattern == "" {
		return "any"
	}
	return "`" + strings.ReplaceAll(pattern, "|", `\|`) + "`"
}
