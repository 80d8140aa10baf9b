package findings

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// Nobody is advised to do what the run does.
func TestClipAdviceIsOfTheMethod(t *testing.T) {
	mean := &schemas.Privacy{LossReduction: new("mean")}
	const tiles, both, gram, outer, sum, all = AdviseTiles, AdviseTilesOfBoth, AdviseGram, AdviseOuter, AdviseSum,
		AdviseOneLayer
	for _, c := range []struct {
		method, normBy string
		privacy        *schemas.Privacy
		says           []ClipAdvice
	}{
		{"ghost", "ghost", mean, []ClipAdvice{tiles, outer, sum}},
		{"ghost", "per_sample", nil, []ClipAdvice{tiles, gram}}, // a layer that Opacus has no ghost norm of
		{"", "ghost", nil, []ClipAdvice{tiles, outer}},
		{"mixed_ghost", "ghost", nil, []ClipAdvice{tiles}},
		{"mixed_ghost", "per_sample", nil, []ClipAdvice{tiles}},
		{"fgc", "per_sample", mean, []ClipAdvice{tiles, gram, sum}},
		{"flash", "tiled_gram", mean, []ClipAdvice{sum}},
		{"flash", "", mean, []ClipAdvice{sum}},
		{"flash", "tiled_outer", nil, nil},
		{"bk", "ghost", mean, []ClipAdvice{both, outer}},
		{"flash_bk", "tiled_outer", mean, nil},
		{"dpsgd", "", mean, []ClipAdvice{all, sum}},
		{"norm_only", "ghost", nil, []ClipAdvice{tiles, outer}},
		{"", "", nil, []ClipAdvice{tiles}},
	} {
		says, instead := clipAdvice(c.method, c.normBy, c.privacy)
		if !slices.Equal(says, c.says) {
			t.Errorf("%s, %s: %v, want %v", c.method, c.normBy, says, c.says)
		}
		another := slices.ContainsFunc(says, func(way ClipAdvice) bool { return way != sum })
		if slices.Contains(instead, c.method) || (len(instead) > 0) != another {
			t.Errorf("%s, %s: measured against %v", c.method, c.normBy, instead)
		}
	}
}
