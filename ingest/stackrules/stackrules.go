// Package stackrules finds, from the frames of a stack, which part of a training program requested memory. A memory
// snapshot has stacks in place of the agent's tags.
package stackrules

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
)

// A Role is the part of a training program to which a stack belongs.
type Role uint8

const (
	None      Role = iota
	Setup          // a model is made, loaded or moved
	Data           // a batch is loaded or moved
	Forward        // a module is called, or a loss
	Backward       // autograd runs
	Gradient       // autograd hands a parameter's gradient over, or a wrapper keeps a copy of it
	Optimizer      // the optimizer makes a step
	State          // the optimizer allocates its state
	PerSample      // per-sample gradients are computed
	Clip           // per-sample gradients are clipped, summed up, or noise is added
	Workspace      // a library allocates memory for its own computation
	roles
)

var roleNames = [roles]string{"none", "setup", "data", "forward", "backward", "gradient", "optimizer", "state",
	"per_sample", "clip", "workspace"}

func (r Role) String() string { return roleNames[r] }

// ParseRole is the inverse of [Role.String].
func ParseRole(name string) (Role, error) {
	for i, n := range roleNames {
		if n == name {
			return Role(i), nil
		}
	}
	return None, fmt.Errorf("%q is no role: %s", name, strings.Join(roleNames[1:], ", "))
}

// A Rule gives a role to the frames that match both its patterns. An empty pattern matches everything.
type Rule struct {
	Role           Role
	File, Function string // regular expressions for the path of the file, with slashes, and for the function's name
}

// A Meaning says what memory is for according to the stack that requested it: a role, or the category that a user's
// rule names.
type Meaning struct {
	Role     Role
	Category schemas.Category
}

func (m Meaning) none() bool { return m == Meaning{} }

// Default are the rules for torch and the libraries that people train with. The innermost frame of a stack that matches
// a rule decides, since a module that is called inside a backward pass recomputes its forward. If several rules match a
// frame, the first of these rules decides.
var Default = Rules{Strong: strong, Weak: weak}

// Rules are rules in three ranks: a user's rules come before strong rules, and weak rules count only if no other rule
// matches a frame of the stack.
type Rules struct {
	Strong, Weak []Rule

	user   []matcher
	phases []matcher // the user's rules that name the phase of a stack
}

// weak are rules for names that programs often give to their own functions.
var weak = []Rule{
	{Setup, ``, `^(__init__|create_weights|_?init_weights?|reset_parameters|build_model|get_model|load_model|` +
		`from_pretrained|from_checkpoint|load_weights)$`},
	{Forward, ``, `^(forward|compute_loss|loss_fn|loss)$`},
	{Data, ``, `^(get_batch|collate_fn|_?prepare_batch|to_device|batch_to_device)$`},
}

var strong = []Rule{
	// The first rules match C++ frames, which only some snapshots have.
	{Workspace, ``, `getCUDABlasLtWorkspace|getNewWorkspace|(?i:cublas).*[wW]orkspace`},
	{Gradient, ``, `torch::autograd::AccumulateGrad`},
	{Gradient, ``, `c10d::Reducer::`},

	// The next rules match libraries of differential privacy. A rule has no file pattern if no other library has a
	// function with the name in the rule.
	{Clip, ``, `^compute_\w+_norm_sample$|^(create|get)_norm_sample$|^get_clipping_coef$|^clip_and_accumulate$`},
	{Clip, `(^|/)(opacus/|optimizer\w*\.py$)`, `^(add_noise|_generate_noise)$`},
	{PerSample, ``, `^(capture_backprops_hook|create_or_accumulate_grad_sample|rearrange_grad_samples)$`},
	{PerSample, `(^|/)opacus/grad_sample/`, ``},
	{PerSample, `(^|/)private_transformers/`, `grad_sample|per_sample`},
	{Clip, `(^|/)fastDP/`, `clip|norm|noise`},

	// Optimizers.
	{State, `(^|/)torch/optim/`, `^_init_group$|^_init_state$|^init_state$`},
	{State, `(^|/)(bitsandbytes|deepspeed|apex)/.*optim`, `^init_state$|^_init_group$|get_state_buffer`},
	{Optimizer, `(^|/)torch/optim/`, ``},
	{Optimizer, `(^|/)(bitsandbytes|apex|transformers|timm|fairscale)/optim`, `^step$|^update`},
	{Optimizer, `(^|/)deepspeed/`, `^(step|_optimizer_step|update_lp_params)$`},
	{Optimizer, `(^|/)torch/nn/utils/clip_grad\.py$`, ``},
	{Optimizer, `(^|/)torch/(cuda/)?amp/grad_scaler\.py$`, `^(step|unscale_|update|_unscale_grads_)$`},

	// The next rules match wrappers that split a model over processes.
	{Gradient, `(^|/)torch/nn/parallel/distributed\.py$`, `_ddp_init_helper|_build_.*bucket|__init__`},
	{Gradient, `(^|/)torch/distributed/(fsdp|_composable/fsdp)/`, `reduce_scatter|post_backward|_reduce_grad`},
	{Setup, `(^|/)torch/distributed/(fsdp|_composable/fsdp)/`,
		`unshard|all_gather|alloc_storage|flatten|__init__|init_`},

	// Data.
	{Data, `(^|/)torch/utils/data/`, ``},
	{Data, `(^|/)accelerate/(utils/operations|data_loader)\.py$`, ``},
	{Data, `(^|/)(lightning|pytorch_lightning|lightning_fabric)/.*(apply_func|move_data|data_connector)`, ``},
	{Data, `(^|/)transformers/(trainer|tokenization_utils_base|feature_extraction_utils)\.py$`,
		`^(_prepare_input|_prepare_inputs|to)$`},

	// The next rules match code that moves a model to the device.
	{Setup, `(^|/)torch/nn/modules/module\.py$`,
		`^(_apply|to|cuda|half|float|double|bfloat16|convert|load_state_dict|to_empty)$`},
	{Setup, `(^|/)torch/nn/(init|parameter)\.py$`, ``},
	{Setup, `(^|/)torch/nn/modules/`, `^(__init__|reset_parameters|_reset_parameters)$`},
	{Setup, `(^|/)torch/serialization\.py$|(^|/)safetensors/`, ``},
	{Setup, `(^|/)(transformers|diffusers|accelerate|peft)/`,
		`from_pretrained|load_state_dict|_load_.*model|set_module_tensor_to_device`},

	// The next rules match calls of a model and of a loss, including recomputed calls.
	{Forward, `(^|/)torch/nn/modules/loss\.py$`, ``},
	{Forward, `(^|/)torch/nn/functional\.py$`, `loss|cross_entropy`},
	{Forward, `(^|/)torch/nn/modules/module\.py$`, `_call_impl$`},
	{Forward, `(^|/)torch/utils/checkpoint\.py$`, `recompute_fn|^forward$|^checkpoint$`},
	{Forward, `(^|/)torch/_functorch/_aot_autograd/`, `^forward$`},

	// The next rules match autograd's Python frames, inside which the engine runs.
	{Backward, `(^|/)torch/autograd/(__init__|graph)\.py$`, `^(backward|grad|_engine_run_backward|_make_grads)$`},
	{Backward, `(^|/)torch/_tensor\.py$`, `^backward$`},
	{Backward, ``, `torch::autograd::Engine::`},
}

// Meanings returns the meaning of each stack, by the stack's id; id 0, which stands for no stack, has none. A stack
// without a Python frame that matches no rule counts as backward on autograd's threads, if Python's frames were
// recorded at all, since other parts of a program allocate from Python.
func (r Rules) Meanings(stacks *torchsnap.Stacks) ([]Meaning, error) {
	user := byFrame(r.user, stacks)
	strong, err := byRules(r.Strong, stacks)
	if err != nil {
		return nil, err
	}
	weak, err := byRules(r.Weak, stacks)
	if err != nil {
		return nil, err
	}
	out := make([]Meaning, stacks.Len()+1)
	recorded := slices.ContainsFunc(stacks.Frames(), isPython)
	for id := 1; id < len(out); id++ {
		frames := stacks.FrameIDs(uint32(id))
		python := slices.ContainsFunc(frames, func(f uint32) bool { return isPython(stacks.Frames()[f]) })
		if out[id] = innermost(frames, user); out[id].none() {
			out[id] = innermost(frames, strong)
		}
		switch {
		case out[id].none() && python:
			out[id] = innermost(frames, weak)
		case out[id].none() && recorded:
			out[id].Role = Backward
		}
	}
	return out, nil
}

// Phases returns, by the stack's id, the phase that the user's rules give each stack (empty = none), and which stacks
// have a Python frame, which a rule could match. Without rules for phases, both returned values are nil.
func (r Rules) Phases(stacks *torchsnap.Stacks) (phases []string, python []bool) {
	if len(r.phases) == 0 {
		return nil, nil
	}
	byFrame := make([]string, len(stacks.Frames()))
	for i, f := range stacks.Frames() {
		if at := slices.IndexFunc(r.phases, func(m matcher) bool { return m.names(f) }); at >= 0 {
			byFrame[i] = r.phases[at].phase
		}
	}
	phases, python = make([]string, stacks.Len()+1), make([]bool, stacks.Len()+1)
	for id := 1; id < len(phases); id++ {
		for _, f := range stacks.FrameIDs(uint32(id)) {
			phases[id] = cmp.Or(phases[id], byFrame[f])
			python[id] = python[id] || isPython(stacks.Frames()[f])
		}
	}
	return phases, python
}

// innermost returns the meaning of the innermost frame that has a meaning.
func innermost(frames []uint32, meanings []Meaning) Meaning {
	for _, f := range frames {
		if !meanings[f].none() {
			return meanings[f]
		}
	}
	return Meaning{}
}

// byRules returns the meaning of each frame according to the rules.
func byRules(rules []Rule, stacks *torchsnap.Stacks) ([]Meaning, error) {
	var matchers []matcher
	for _, r := range rules {
		m, err := compile(Meaning{Role: r.Role}, r.File, r.Function)
		if err != nil {
			return nil, err
		}
		matchers = append(matchers, m)
	}
	return byFrame(matchers, stacks), nil
}

// byFrame returns the meaning of each frame. byFrame tries a pattern for files only once for each file, since many
// frames have the same file.
func byFrame(matchers []matcher, stacks *torchsnap.Stacks) []Meaning {
	meanings := make([]Meaning, len(stacks.Frames()))
	ofFile := map[string][]matcher{}
	for i, f := range stacks.Frames() {
		left, ok := ofFile[f.File]
		if !ok {
			for _, m := range matchers {
				if m.namesFile(f.File) {
					left = append(left, m)
				}
			}
			ofFile[f.File] = left
		}
		if at := slices.IndexFunc(left, func(m matcher) bool { return m.namesFunction(f.Function) }); at >= 0 {
			meanings[i] = left[at].meaning
		}
	}
	return meanings
}

func isPython(f torchsnap.Frame) bool {
	return strings.HasSuffix(f.File, ".py") || strings.HasPrefix(f.File, "<")
}

type matcher struct {
	meaning        Meaning
	phase          string         // phase that the rule names, instead of a meaning
	file, function *regexp.Regexp // nil = matches everything
}

func compile(meaning Meaning, file, function string) (m matcher, err error) {
	m.meaning = meaning
	for _, p := range []struct {
		pattern string
		into    **regexp.Regexp
	}{{file, &m.file}, {function, &m.function}} {
		if p.pattern == "" {
			continue
		}
		if *p.into, err = regexp.Compile(p.pattern); err != nil {
			return m, fmt.Errorf("a rule for %s: %w", cmp.Or(meaning.Category, meaning.Role.String()), err)
		}
	}
	return m, nil
}

// names reports whether both patterns of the matcher match a frame.
func (m *matcher) names(f torchsnap.Frame) bool {
	return m.namesFile(f.File) && m.namesFunction(f.Function)
}

func (m *matcher) namesFile(file string) bool {
	return m.file == nil || m.file.MatchString(strings.ReplaceAll(file, `\`, "/"))
}

func (m *matcher) namesFunction(function string) bool {
	return m.function == nil || m.function.MatchString(function)
}
