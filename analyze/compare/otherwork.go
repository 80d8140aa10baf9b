package compare

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
)

// OtherWork says why two runs do different work: their models, scripts or presets are not the same.
type OtherWork struct {
	What          string // "models", "scripts" or "presets"
	Param         string // the parameter by which the models differ; empty if their names differ
	Now, Baseline string
}

// otherWork returns nil unless something shows that two runs do different work. Two runs do different work if they name
// different models, or if both state a method and their models differ in size. Two runs also do different work if their
// scripts differ and either run states no method, or exactly one run is a built-in experiment. A study compares runs of
// different work only on request: a GAN has no overhead over a ResNet.
func otherWork(a, b *analyze.Summary) *OtherWork {
	if m, n := a.Params["model"], b.Params["model"]; m != nil && n != nil && identity.TextOf(m) != identity.TextOf(n) {
		return &OtherWork{What: "models", Now: identity.TextOf(n), Baseline: identity.TextOf(m)}
	}
	if w := otherSize(a, b); w != nil {
		return w
	}
	if a.Script != "" && b.Script != "" && a.Script != b.Script && (a.Method() == "" || b.Method() == "" ||
		builtin(a) != builtin(b)) {
		return &OtherWork{What: "scripts", Now: b.Script, Baseline: a.Script}
	}
	return nil
}

// sizeParams are the parameters that change the size of a built-in experiment's model. The batch size is not among
// them.
var sizeParams = []string{"mlp_dims", "hidden_dim", "num_layers", "num_heads", "vocab_size"}

// otherSize returns how the models of two runs differ in size, or nil if nothing shows it or if either run states no
// method. The user of a script without methods may want to compare sizes.
func otherSize(a, b *analyze.Summary) *OtherWork {
	if a.Method() == "" || b.Method() == "" {
		return nil
	}
	for _, k := range sizeParams {
		m, n := a.Params[k], b.Params[k]
		if m == nil || n == nil || identity.TextOf(m) == identity.TextOf(n) {
			continue
		}
		if p, q := a.Params["preset"], b.Params["preset"]; p != nil && q != nil &&
			identity.TextOf(p) != identity.TextOf(q) {
			return &OtherWork{What: "presets", Now: identity.TextOf(q), Baseline: identity.TextOf(p)}
		}
		return &OtherWork{What: "models", Param: k, Now: identity.TextOf(n), Baseline: identity.TextOf(m)}
	}
	return nil
}

// builtin reports whether the run is a built-in experiment.
func builtin(s *analyze.Summary) bool { return identity.Builtin(s.Script) }
