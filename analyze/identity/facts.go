package identity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// A Fact is a parameter of a run's experiment, or a property of its environment that may change the figures of every
// method.
type Fact struct {
	What  string `json:"what"`
	Value string `json:"value"`
	// Condition is true for a fact that a fair comparison keeps equal. Runs that differ in a condition are still
	// compared, with a remark.
	Condition bool `json:"condition"`
	// Param is true for a parameter of the experiment, false for a fact of what the experiment ran on.
	Param bool `json:"param"`
	// Whole is the JSON that Value abbreviates, or "" if Value is complete.
	Whole string `json:"-"`
}

// Equals reports whether two facts of the same name have the same value.
func (f *Fact) Equals(o *Fact) bool { return f.Value == o.Value && f.Whole == o.Whole }

// fairParams are the experiment parameters that a fair comparison holds constant if both runs have them.
var fairParams = []string{"preset", "model", "mlp_dims", "vocab_size", "hidden_dim", "num_layers", "num_heads",
	"seq_len", "batch_size",
	"physical_batch_size", "optimizer", "precision", "checkpointing", "zero_grad", "clipping", "poisson"}

// FactsOf lists the facts in a run's manifest: first those about its environment, then its parameters by name.
func FactsOf(m *schemas.Manifest) []Fact {
	var list []Fact
	add := func(what string, value any) {
		switch v := value.(type) {
		case nil:
			return
		case *string:
			if v == nil {
				return
			}
			value = *v
		case *bool:
			if v == nil {
				return
			}
			value = *v
		case string:
			if v == "" {
				return
			}
		}
		list = append(list, Fact{What: what, Value: fmt.Sprint(value), Condition: true})
	}
	if len(m.GPUs) > 0 {
		add("GPU", m.GPUs[0].Name)
	}
	add("driver", m.Driver)
	if e := m.Environment; e != nil {
		add("torch", e.Torch)
		add("CUDA", e.CUDA)
		add("cuDNN", e.CuDNN)
		add("Opacus", e.Opacus)
		add("TF32 matmul", e.TF32Matmul)
		add("TF32 cuDNN", e.TF32CuDNN)
		add("matmul precision", e.MatmulPrecision)
		add("cuDNN benchmark", e.CuDNNBenchmark)
		add("deterministic", e.Deterministic)
		add("allocator backend", e.AllocatorBackend)
		if len(e.AllocatorSettings) > 0 {
			// encoding/json sorts the keys of a map, so equal settings give equal text.
			if text, err := json.Marshal(e.AllocatorSettings); err == nil {
				value, _ := e.AllocatorSettings["PYTORCH_CUDA_ALLOC_CONF"].(string)
				list = append(list, Fact{"allocator settings", cmp.Or(value, "default"), true, false, string(text)})
			}
		}
	}
	for _, p := range SortedKeys(m.Params) {
		if v := m.Params[p]; v != nil && p != "bare" {
			list = append(list, Fact{p, TextOf(v), slices.Contains(fairParams, p), true, ""})
		}
	}
	return list
}

// Method is the experiment's method, empty for a script of the user's.
func (id *Identity) Method() string { m, _ := id.Params["method"].(string); return m }

// MethodNormOnly is [schemas.MethodNormOnly].
const MethodNormOnly = schemas.MethodNormOnly

// NormsOnly reports whether the run computes per-sample norms and does nothing with the norms. A run that only computes
// norms is not private.
func (id *Identity) NormsOnly() bool { return id.Method() == MethodNormOnly }

// SortedKeys returns the keys of all maps, sorted and without duplicates.
func SortedKeys[V any](maps ...map[string]V) []string {
	var keys []string
	for _, m := range maps {
		for k := range m {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

const MethodVanilla = "vanilla"

// LengthParams are the parameters that set how long an experiment runs and how it begins. LengthParams do not change
// what a training step computes or needs.
var LengthParams = []string{"num_iter", "warmup_iter", "seed"}

// BuiltinModule is the Python module that runs the built-in experiments. The parameters of a built-in experiment say
// all that its command says. A later dpsight may write more options into the command for the same parameters.
const BuiltinModule = "dpsight_experiments"

// Builtin reports whether a script, as named by [ScriptOf], is the module of the built-in experiments.
func Builtin(script string) bool { return script == "-m "+BuiltinModule }
