package analyze

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// A Fact is something about a run that moves its figures whatever the method, or a parameter of its experiment. Two
// runs that differ in a condition are still compared, and say so.
type Fact struct {
	What  string `json:"what"`
	Value string `json:"value"`
	// Condition is true for what a fair comparison holds constant.
	Condition bool `json:"condition"`
	// Param is true for a parameter of the experiment, false for what it ran on.
	Param bool `json:"param"`
	// whole is the JSON that Value abbreviates, empty where it does not.
	whole string
}

// equals compares facts of the same name.
func (f *Fact) equals(o *Fact) bool { return f.Value == o.Value && f.whole == o.whole }

// fairParams are the experiment parameters that a fair comparison holds constant, where both runs have them.
var fairParams = []string{"preset", "model", "mlp_dims", "vocab_size", "hidden_dim", "num_layers", "num_heads",
	"seq_len", "batch_size",
	"physical_batch_size", "optimizer", "precision", "checkpointing", "zero_grad", "clipping", "poisson"}

// factsOf lists what the manifest says of a run: where it ran first, then its parameters by name.
func factsOf(m *schemas.Manifest) []Fact {
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
			// Go writes the keys of a map in order, so equal settings give equal text.
			if text, err := json.Marshal(e.AllocatorSettings); err == nil {
				value, _ := e.AllocatorSettings["PYTORCH_CUDA_ALLOC_CONF"].(string)
				list = append(list, Fact{"allocator settings", cmp.Or(value, "default"), true, false, string(text)})
			}
		}
	}
	for _, p := range sortedKeys(m.Params) {
		if v := m.Params[p]; v != nil && p != "bare" {
			list = append(list, Fact{p, textOf(v), slices.Contains(fairParams, p), true, ""})
		}
	}
	return list
}

// fact is the run's fact of that name, nil if it has none.
func (s *Summary) fact(what string) *Fact {
	for i := range s.facts {
		if s.facts[i].What == what {
			return &s.facts[i]
		}
	}
	return nil
}

// Method is the experiment's method, empty for a script of the user's.
func (id *Identity) Method() string { m, _ := id.Params["method"].(string); return m }

// methodNormOnly is the method that computes per-sample norms and does nothing with them.
const methodNormOnly = "norm_only"

// NormsOnly is whether the run computes per-sample norms and does nothing with them: it is not private.
func (id *Identity) NormsOnly() bool { return id.Method() == methodNormOnly }

// unfair says why a run should not be compared with the baseline as they are.
func unfair(baseline, run *Summary) []string {
	var w []string
	if baseline.Source != run.Source {
		w = append(w, fmt.Sprintf("%s beside a baseline that is %s", run.Source, baseline.Source))
	}
	if baseline.Bare() != run.Bare() {
		which := "a bare run beside a full one"
		if baseline.Bare() {
			which = "a full run beside a bare one"
		}
		w = append(w, which+": only peak and time can be compared")
	}
	if baseline.Status != schemas.StatusOK {
		w = append(w, fmt.Sprintf("the baseline ended early (%s)", baseline.Status))
	}
	w = append(w, unlike(baseline, run)...)
	if baseline.script != run.script && baseline.script != "" && run.script != "" {
		w = append(w, fmt.Sprintf("script differs: %s, baseline %s", run.script, baseline.script))
	}
	w = append(w, argumentsDiffer(baseline, run)...)
	ours, theirs := run.Method(), baseline.Method()
	switch {
	case ours == theirs:
	case ours == "" || theirs == "":
		w = append(w, "only one of the two says which method it is: nothing says that they train the same model with "+
			"the same batch")
	case ours == methodNormOnly:
		w = append(w, "norm_only computes norms and nothing else: it clips nothing, adds no noise and is not "+
			"private; its overhead is not that of a DP-SGD step")
	case theirs == methodNormOnly:
		w = append(w, "the baseline (norm_only) computes norms and nothing else: it is no DP-SGD step")
	}
	w = append(w, poissonBeside(baseline, run)...)
	switch slowed, theirs := run.throttled.String(), baseline.throttled.String(); {
	case slowed != "" && theirs != "":
		w = append(w, fmt.Sprintf("the GPU was slowed down in %s, the baseline's in %s", slowed, theirs))
	case slowed != "":
		w = append(w, "the GPU was slowed down in "+slowed)
	case theirs != "":
		w = append(w, "the baseline's GPU was slowed down in "+theirs)
	}
	return append(w, keptGradients(baseline, run)...)
}

// poissonBeside says that only one of two runs draws batches of sizes of its own, unless their parameters have said so.
func poissonBeside(baseline, run *Summary) []string {
	if a, b := run.fact("poisson"), baseline.fact("poisson"); run.poisson == baseline.poisson || a != nil && b != nil {
		return nil
	}
	who, other := "the run", "the baseline"
	if baseline.poisson {
		who, other = other, who
	}
	return []string{fmt.Sprintf("Poisson sampling draws batches of other sizes at each step of %s and not of %s: its "+
		"peak is that of the largest batch drawn, and a larger batch is no overhead of the method", who, other)}
}

// unlike lists the conditions in which a run differs from the baseline, where both have them.
func unlike(baseline, run *Summary) []string {
	var w []string
	for _, f := range run.facts {
		// What GPU and driver a prediction ran beside does not matter; that it is one is said already.
		if !f.Condition || baseline.Source != run.Source && (f.What == "GPU" || f.What == "driver") {
			continue
		}
		switch theirs := baseline.fact(f.What); {
		case theirs == nil || f.equals(theirs):
		case f.whole != "": // both are long, and alike but for one
			w = append(w, f.What+" differ: "+differences(f.whole, theirs.whole))
		default:
			w = append(w, fmt.Sprintf("%s differs: %s, baseline %s", f.What, f.Value, theirs.Value))
		}
	}
	return w
}

// keptGradients says that one of two runs keeps .grad between steps, and what the difference would be without. A loop
// that frees it between forward and backward keeps it too, and its peak in backward has none: nothing is said of what
// does not stand at the peak.
func keptGradients(baseline, run *Summary) []string {
	a, b := baseline.KeptGradientBytes, run.KeptGradientBytes
	if a == nil || b == nil || (*a == 0) == (*b == 0) {
		return nil
	}
	keeper := run
	if *b == 0 {
		keeper = baseline
	}
	if at := keeper.keptAtPeak(); at != nil && *at == 0 {
		return nil
	}
	who := "the run keeps .grad between steps and the baseline frees it"
	if *b == 0 {
		who = "the baseline keeps .grad between steps and the run frees it"
	}
	if ours, theirs := run.freedPeak(), baseline.freedPeak(); ours != nil && theirs != nil && run.PeakBytes != nil &&
		baseline.PeakBytes != nil {
		freed, kept := signedMiB(*ours-*theirs), signedMiB(*run.PeakBytes-*baseline.PeakBytes)
		if freed == kept {
			return []string{who + ", which hardly moves the peaks: they differ by " + kept + " either way"}
		}
		return []string{fmt.Sprintf("%s: if both freed it, the peaks would differ by %s and not by %s", who, freed,
			kept)}
	}
	return []string{fmt.Sprintf("%s: up to %s of the difference is zero_grad's doing, not the method's", who,
		mib(max(*a, *b)))}
}

// keptAtPeak is at most what .grad kept between steps holds at the peak: without a replay all gradients there, some of
// which backward may have made anew. Nil where the peak is not broken down.
func (s *Summary) keptAtPeak() *int64 {
	switch {
	case s.Kept != nil:
		return &s.Kept.AtPeakBytes
	case s.BrokenDown():
		return new(s.Main().Category(schemas.Gradients).HeldBytes)
	}
	return nil
}

// signedMiB is [mib] of a difference.
func signedMiB(bytes int64) string {
	switch {
	case bytes < 0:
		return "−" + mib(-bytes)
	case bytes > 0:
		return "+" + mib(bytes)
	}
	return mib(0)
}

// differences lists the keys in which two JSON objects differ, as "key=ours (baseline theirs)".
func differences(ours, theirs string) string {
	var a, b map[string]any
	if json.Unmarshal([]byte(ours), &a) != nil || json.Unmarshal([]byte(theirs), &b) != nil {
		return ours + ", baseline " + theirs
	}
	text := ""
	value := func(m map[string]any, key string) string {
		if v, ok := m[key]; ok && v != nil {
			return textOf(v)
		}
		return "unset"
	}
	for _, k := range sortedKeys(a, b) {
		if x, y := value(a, k), value(b, k); x != y {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%s=%s (baseline %s)", k, x, y)
		}
	}
	return text
}

// sortedKeys are the keys of all maps, each once.
func sortedKeys[V any](maps ...map[string]V) []string {
	var keys []string
	for _, m := range maps {
		for k := range m {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
