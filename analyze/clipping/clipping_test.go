package clipping

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// AdviceFor does not advise a way to compute norms that the run already uses.
func TestAdviceIsOfTheMethod(t *testing.T) {
	mean := &schemas.Privacy{LossReduction: new("mean")}
	const tiles, both, gram, outer, sum, all = Tiles, TilesOfBoth, Gram, Outer, Sum,
		ByLayer
	for _, c := range []struct {
		method, normBy string
		privacy        *schemas.Privacy
		says           []Advice
	}{
		{"ghost", "ghost", mean, []Advice{tiles, outer, sum}},
		// "per_sample" stands for a layer whose ghost norm Opacus cannot compute
		{"ghost", "per_sample", nil, []Advice{tiles, gram}},
		{"", "ghost", nil, []Advice{tiles, outer}},
		{"mixed_ghost", "ghost", nil, []Advice{tiles}},
		{"mixed_ghost", "per_sample", nil, []Advice{tiles}},
		{"fgc", "per_sample", mean, []Advice{tiles, gram, sum}},
		{"flash", "tiled_gram", mean, []Advice{sum}},
		{"flash", "", mean, []Advice{sum}},
		{"flash", "tiled_outer", nil, nil},
		{"bk", "ghost", mean, []Advice{both, outer}},
		{"flash_bk", "tiled_outer", mean, nil},
		{"dpsgd", "", mean, []Advice{all, sum}},
		{"norm_only", "ghost", nil, []Advice{tiles, outer}},
		{"", "", nil, []Advice{tiles}},
	} {
		says, instead := AdviceFor(c.method, c.normBy, c.privacy)
		if !slices.Equal(says, c.says) {
			t.Errorf("%s, %s: %v, want %v", c.method, c.normBy, says, c.says)
		}
		another := slices.ContainsFunc(says, func(way Advice) bool { return way != sum })
		if slices.Contains(instead, c.method) || (len(instead) > 0) != another {
			t.Errorf("%s, %s: measured against %v", c.method, c.normBy, instead)
		}
	}
}
