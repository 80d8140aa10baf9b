package examples_test

import (
	"maps"
	"testing"
)

// The recordings of examples/headline have, for each layer, the rule by which the method computed the norms of its
// per-sample gradients. The model has 121 linear layers, two embeddings and 41 layer norms. The layer norms'
// per-sample gradients are so small that these methods compute them directly.
func TestNormsOfHeadline(t *testing.T) {
	want := map[string]map[string]int{
		"flash": {"tiled_outer": 121, "grouped": 2, "per_sample": 41},
		"bk":    {"ghost": 123, "per_sample": 41},
		"ghost": {"ghost": 123, "per_sample": 41},
	}
	full, _ := recorded(t, headline)
	for method, rules := range want {
		got := map[string]int{}
		for _, m := range full[method].in.Modules {
			if m.NormBy != "" {
				got[m.NormBy]++
			}
		}
		if !maps.Equal(got, rules) {
			t.Errorf("%s: norms by %v, want %v", method, got, rules)
		}
	}
}
