package findings

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// How a layer's norm was taken: norm_by of modules.parquet.
const (
	normGhost     = "ghost"
	normPerSample = "per_sample"
	normTiled     = "tiled_" // what the names of both tiled forms begin with
)

// ownBackprops are the methods that scale by the batch on their own, and copy no output gradients for it.
var ownBackprops = []string{"bk", "flash_bk"}

// clipAdvice says what would make the temporaries of norms and clipping smaller, and which methods' runs tell by how
// much. What the run does already is no advice: method and normBy, of the layer with the largest part, say what that
// is; either may be empty.
func clipAdvice(method, normBy string, privacy *schemas.Privacy) (change string, instead []string) {
	var ways []string
	tiles := "take norms by tiles, which hold neither a T×T matrix nor a whole per-sample gradient"
	if method == "bk" {
		tiles = "take norms and clipped gradients by tiles (flash_bk), which hold neither a T×T matrix nor a whole " +
			"per-sample gradient"
	}
	switch {
	case strings.HasPrefix(normBy, normTiled), method == "flash", method == "flash_bk":
		// What is left are tiles, bounded whatever the layer, and what is copied for them.
	case slices.Contains([]string{"dpsgd", "functorch", "ew"}, method):
		ways = append(ways, "use a method that clips without the per-sample gradients of all layers: ghost clipping, "+
			"tiles or book-keeping")
		instead = oneLayer
	case normBy == normPerSample && method != "mixed_ghost":
		ways = append(ways, tiles, "this layer's from Gram matrices where 2T² is below the product of its dimensions "+
			"(ghost clipping)")
		instead = oneLayer
	case normBy == normGhost && method != "mixed_ghost":
		ways = append(ways, tiles, "this layer's from its per-sample gradient where 2T² exceeds the product of its "+
			"dimensions (mixed ghost clipping)")
		instead = oneLayer
	default:
		ways = append(ways, tiles)
		instead = oneLayer
	}
	instead = slices.DeleteFunc(slices.Clone(instead), func(m string) bool { return m == method })
	if sum := sumAdvice(method, privacy); sum != "" {
		if len(ways) == 0 {
			return sum + "; norms are taken by tiles already", nil
		}
		ways = append(ways, sum)
	}
	if len(ways) == 0 {
		return "smaller physical batches; norms are taken by tiles already", nil
	}
	return strings.Join(ways, "; or "), instead
}

// sumAdvice is the part of it that is of the loss, empty where nothing is copied for its mean.
func sumAdvice(method string, privacy *schemas.Privacy) string {
	if privacy == nil || privacy.LossReduction == nil || *privacy.LossReduction != "mean" ||
		slices.Contains(ownBackprops, method) {
		return ""
	}
	return `take the sum of the losses and not their mean (loss_reduction="sum"), so that Opacus copies no output ` +
		"gradients to scale them"
}
