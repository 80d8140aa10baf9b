package findings

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// Nobody is advised to do what the run does.
func TestClipAdviceIsOfTheMethod(t *testing.T) {
	mean := &schemas.Privacy{LossReduction: new("mean")}
	const tiles, gram, mixed, sum, all = "by tiles", "Gram matrices where", "mixed ghost", `loss_reduction="sum"`,
		"clips without the per-sample gradients of all layers"
	every := []string{tiles, gram, mixed, sum, all}
	for _, c := range []struct {
		method, normBy string
		privacy        *schemas.Privacy
		says           []string
	}{
		{"ghost", "ghost", mean, []string{tiles, mixed, sum}},
		{"ghost", "per_sample", nil, []string{tiles, gram}}, // a layer that Opacus has no ghost norm of
		{"", "ghost", nil, []string{tiles, mixed}},
		{"mixed_ghost", "ghost", nil, []string{tiles}},
		{"mixed_ghost", "per_sample", nil, []string{tiles}},
		{"fgc", "per_sample", mean, []string{tiles, gram, sum}},
		{"flash", "tiled_gram", mean, []string{sum}},
		{"flash", "", mean, []string{sum}},
		{"flash", "tiled_outer", nil, nil},
		{"bk", "ghost", mean, []string{tiles, mixed}},
		{"flash_bk", "tiled_outer", mean, nil},
		{"dpsgd", "", mean, []string{all, sum}},
		{"norm_only", "ghost", nil, []string{tiles, mixed}},
		{"", "", nil, []string{tiles}},
	} {
		change, instead := clipAdvice(c.method, c.normBy, c.privacy)
		if i := strings.Index(change, "; norms are taken by tiles already"); i >= 0 {
			if c.says == nil || c.method == "flash" {
				change = change[:i]
			}
		}
		for _, s := range every {
			if s == tiles && slices.Contains(c.says, all) {
				continue // "ghost clipping, tiles or book-keeping"
			}
			if strings.Contains(change, s) != slices.Contains(c.says, s) {
				t.Errorf("%s, %s: %q", c.method, c.normBy, change)
				break
			}
		}
		if slices.Contains(instead, c.method) || (len(instead) == 0) != (!slices.Contains(c.says, tiles) &&
			!slices.Contains(c.says, all)) {
			t.Errorf("%s, %s: measured against %v", c.method, c.normBy, instead)
		}
	}
}
