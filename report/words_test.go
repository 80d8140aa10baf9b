package report

import (
	"testing"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
)

func TestShareText(t *testing.T) {
	for _, c := range []struct {
		part, whole float64
		want        string
	}{{1, 2, "50 %"}, {3, 3, "100 %"}, {0, 3, "0 %"}, {9999, 10000, ">99.9 %"}, {9973, 10000, "99.7 %"},
		{3, 1000, "0.3 %"}, {1, 1e6, "<0.1 %"}, {100001, 1e5, "100.1 %"}, {15, 1, "1,500 %"}} {
		if got := prose.Share(c.part, c.whole); got != c.want {
			t.Errorf("%g of %g is %q, want %q", c.part, c.whole, got, c.want)
		}
	}
}

// Sentences name categories with the words that papers use.
func TestCategoriesInProse(t *testing.T) {
	for c, want := range map[schemas.Category]string{schemas.PerSampleGradients: "per-sample gradients",
		schemas.ClipTemporaries: "clip temporaries", schemas.Noise: "noise"} {
		if got := prose.Words(c); got != want {
			t.Errorf("%s in prose is %q, want %q", c, got, want)
		}
	}
}

// If a module has no name, as in an nn.Sequential, a sentence does not show only its number.
func TestModuleNames(t *testing.T) {
	for title, want := range map[string]string{"3": "module 3", "blocks.*.mlp": "blocks.*.mlp", "(GAN)": "GAN"} {
		if got := moduleName(&explain.ModulePart{Module: &title, Modules: 1}); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
}
