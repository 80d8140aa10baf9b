package compare

import (
	"fmt"
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	// otherWork says why two runs are not one experiment done in two ways, empty where nothing says so: they name
	// different
)

// models, or methods on models of other sizes, or run different scripts of which one does not say its method, or is a
// built-in experiment, whose model is its own. A study compares such runs only where somebody asked for it; a GAN has
// no overhead over a ResNet.
func otherWork(a, b *analyze.Summary) string {
	if m, n := a.Params["model"], b.Params["model"]; m != nil && n != nil && identity.TextOf(m) != identity.TextOf(n) {
		return fmt.Sprintf("models (%s and %s)", identity.TextOf(n), identity.TextOf(m))
	}
	if text := otherSize(a, b); text != "" {
		return text
	}
	if a.Script != "" && b.Script != "" && a.Script != b.Script && (a.Method() == "" || b.Method() == "" ||
		builtin(a) != builtin(b)) {
		return fmt.Sprintf("scripts (%s and %s)", b.Script, a.Script)
	}
	return ""
}

// sizeParams make a model of the built-in experiments another one; how large its batches are does not.
var sizeParams = []string{"mlp_dims", "hidden_dim", "num_layers", "num_heads", "vocab_size"}

// otherSize says in what the models of two methods differ, empty where nothing says so. Who varies the size of a model
// of a script's own has no method that says what is to be compared: the size is what is compared.
func otherSize(a, b *analyze.Summary) string {
	if a.Method() == "" || b.Method() == "" {
		return ""
	}
	for _, k := range sizeParams {
		m, n := a.Params[k], b.Params[k]
		if m == nil || n == nil || identity.TextOf(m) == identity.TextOf(n) {
			continue
		}
		if p, q := a.Params["preset"], b.Params["preset"]; p != nil && q != nil &&
			identity.TextOf(p) != identity.TextOf(q) {
			return fmt.Sprintf("presets (%s and %s)", identity.TextOf(q), identity.TextOf(p))
		}
		return fmt.Sprintf("models (%s %s and %s)", k, identity.TextOf(n), identity.TextOf(m))
	}
	return ""
}

// builtin is whether the run is a built-in experiment.
func builtin(s *analyze.Summary) bool { return s.Script == "-m "+identity.BuiltinModule }
