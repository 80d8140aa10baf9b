package analyze

import (
	"fmt"

	"github.com/dpsight/dpsight/schemas"
)

// A condition is a fact about a run that moves its figures whatever the method. Two runs that differ in one are still
// compared, and say so.
type condition struct{ what, value string }

// fairParams are the experiment parameters that a fair comparison holds constant, where both runs have them.
var fairParams = []string{"preset", "model", "vocab_size", "hidden_dim", "num_layers", "num_heads", "seq_len", "batch_size",
	"physical_batch_size", "optimizer", "precision", "checkpointing", "zero_grad"}

func conditionsOf(m *schemas.Manifest) []condition {
	var list []condition
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
		list = append(list, condition{what, fmt.Sprint(value)})
	}
	if len(m.GPUs) > 0 {
		add("GPU", m.GPUs[0].Name)
	}
	add("driver", m.Driver)
	if e := m.Environment; e != nil {
		add("torch", e.Torch)
		add("CUDA", e.CUDA)
		add("TF32 matmul", e.TF32Matmul)
		add("matmul precision", e.MatmulPrecision)
		add("allocator backend", e.AllocatorBackend)
	}
	for _, p := range fairParams {
		add(p, m.Params[p])
	}
	return list
}

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
	theirs := map[string]string{}
	for _, c := range baseline.conditions {
		theirs[c.what] = c.value
	}
	for _, c := range run.conditions {
		// What GPU and driver a prediction ran beside does not matter; that it is one is said already.
		if t, ok := theirs[c.what]; ok && t != c.value && (baseline.Source == run.Source || c.what != "GPU" && c.what != "driver") {
			w = append(w, fmt.Sprintf("%s differs: %s, baseline %s", c.what, c.value, t))
		}
	}
	if a, b := baseline.KeptGradientBytes, run.KeptGradientBytes; a != nil && b != nil && (*a == 0) != (*b == 0) {
		who := "the run keeps .grad between steps and the baseline frees it"
		if *b == 0 {
			who = "the baseline keeps .grad between steps and the run frees it"
		}
		w = append(w, fmt.Sprintf("%s: up to %s of the difference is zero_grad's doing, not the method's", who, mib(max(*a, *b))))
	}
	return w
}
