package findings

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// How a layer's norm was taken: norm_by of modules.parquet.
const (
	NormGhost     = "ghost"
	NormPerSample = "per_sample"
	NormTiled     = "tiled_" // what the names of both tiled forms begin with
)

// ownBackprops are the methods that scale by the batch on their own, and copy no output gradients for it.
var ownBackprops = []string{"bk", "flash_bk"}

// ClipAdvice is one way to smaller temporaries of norms and clipping.
type ClipAdvice int

const (
	AdviseTiles       ClipAdvice = iota // for norms
	AdviseTilesOfBoth                   // for norms and clipped gradients
	AdviseOneLayer                      // clip without the per-sample gradients of all layers
	AdviseGram                          // take the layer's norm from Gram matrices
	AdviseOuter                         // take the layer's norm from its per-sample gradient
	AdviseSum                           // take the sum of the losses: no output gradients are copied for their mean
)

// clipAdvice says what would make the temporaries of norms and clipping smaller, and which methods' runs tell by how
// much. What the run does already is no advice: method and normBy, of the layer with the largest part, say what that
// is; either may be empty.
func clipAdvice(method, normBy string, privacy *schemas.Privacy) (ways []ClipAdvice, instead []string) {
	tiles := AdviseTiles
	if method == "bk" {
		tiles = AdviseTilesOfBoth
	}
	switch {
	case strings.HasPrefix(normBy, NormTiled), method == "flash", method == "flash_bk":
		// What is left are tiles, bounded whatever the layer, and what is copied for them.
	case slices.Contains([]string{"dpsgd", "functorch", "ew"}, method):
		ways, instead = []ClipAdvice{AdviseOneLayer}, oneLayer
	case normBy == NormPerSample && method != "mixed_ghost":
		ways, instead = []ClipAdvice{tiles, AdviseGram}, oneLayer
	case normBy == NormGhost && method != "mixed_ghost":
		ways, instead = []ClipAdvice{tiles, AdviseOuter}, oneLayer
	default:
		ways, instead = []ClipAdvice{tiles}, oneLayer
	}
	if copiesForMean(method, privacy) {
		ways = append(ways, AdviseSum)
	}
	return ways, slices.DeleteFunc(slices.Clone(instead), func(m string) bool { return m == method })
}

// copiesForMean reports whether output gradients are copied for the mean of the losses.
func copiesForMean(method string, privacy *schemas.Privacy) bool {
	return privacy != nil && privacy.LossReduction != nil && *privacy.LossReduction == "mean" &&
		!slices.Contains(ownBackprops, method)
}
