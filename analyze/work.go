package analyze

import (
	"fmt"

	"github.com/dpsight/dpsight/schemas/launch"
)

// scriptOf names what a command runs: the base name of its script, else -m and the module; empty where neither can be
// seen.
func scriptOf(command []string) string {
	script, module := launch.Work(command)
	switch {
	case script != "":
		return launch.Base(script)
	case module != "":
		return "-m " + module
	}
	return ""
}

// otherWork says why two runs are not one experiment done in two ways, empty where nothing says so: they name different
// models, or methods on models of other sizes, or run different scripts of which one does not say its method, or is a
// built-in experiment, whose model is its own. A study compares such runs only where somebody asked for it; a GAN has
// no overhead over a ResNet.
func otherWork(a, b *Summary) string {
	if m, n := a.Params["model"], b.Params["model"]; m != nil && n != nil && textOf(m) != textOf(n) {
		return fmt.Sprintf("models (%s and %s)", textOf(n), textOf(m))
	}
	if text := otherSize(a, b); text != "" {
		return text
	}
	if a.script != "" && b.script != "" && a.script != b.script && (a.Method() == "" || b.Method() == "" ||
		a.builtin() != b.builtin()) {
		return fmt.Sprintf("scripts (%s and %s)", b.script, a.script)
	}
	return ""
}

// sizeParams make a model of the built-in experiments another one; how large its batches are does not.
var sizeParams = []string{"mlp_dims", "hidden_dim", "num_layers", "num_heads", "vocab_size"}

// otherSize says in what the models of two methods differ, empty where nothing says so. Who varies the size of a model
// of a script's own has no method that says what is to be compared: the size is what is compared.
func otherSize(a, b *Summary) string {
	if a.Method() == "" || b.Method() == "" {
		return ""
	}
	for _, k := range sizeParams {
		m, n := a.Params[k], b.Params[k]
		if m == nil || n == nil || textOf(m) == textOf(n) {
			continue
		}
		if p, q := a.Params["preset"], b.Params["preset"]; p != nil && q != nil && textOf(p) != textOf(q) {
			return fmt.Sprintf("presets (%s and %s)", textOf(q), textOf(p))
		}
		return fmt.Sprintf("models (%s %s and %s)", k, textOf(n), textOf(m))
	}
	return ""
}

// builtin is whether the run is a built-in experiment.
func (s *Summary) builtin() bool { return s.script == "-m "+builtinModule }
