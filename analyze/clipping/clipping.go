// Package clipping lists the ways to clip per-sample gradients with less memory than a run's present method.
package clipping

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

// OneLayer lists the methods that never hold the per-sample gradients of all layers at once. NoTable lists the ones
// among them that also hold none of an embedding.
var (
	NoTable  = []string{"ghost", "mixed_ghost", "flash", "bk", "flash_bk"}
	OneLayer = append([]string{"fgc"}, NoTable...)
)

// ownBackprops are the methods that scale by the batch on their own, and copy no output gradients for it.
var ownBackprops = []string{"bk", "flash_bk"}

// Advice is one way to smaller temporaries of norms and clipping.
type Advice int

const (
	Tiles       Advice = iota // for norms
	TilesOfBoth               // for norms and clipped gradients
	ByLayer                   // clip without the per-sample gradients of all layers
	Gram                      // take the layer's norm from Gram matrices
	Outer                     // take the layer's norm from its per-sample gradient
	Sum                       // take the sum of the losses: no output gradients are copied for their mean
)

// AdviceFor returns what would make the temporaries of norms and clipping smaller, and the methods whose runs show
// by how much. It leaves out what the run does already, as given by method and normBy, the way of the layer with
// the largest part. Either may be "".
func AdviceFor(method, normBy string, privacy *schemas.Privacy) (ways []Advice, instead []string) {
	tiles := Tiles
	if method == "bk" {
		tiles = TilesOfBoth
	}
	switch {
	case strings.HasPrefix(normBy, NormTiled), method == "flash", method == "flash_bk":
		// Only tiles remain, bounded whatever the layer, and what is copied for them.
	case slices.Contains([]string{"dpsgd", "functorch", "ew"}, method):
		ways, instead = []Advice{ByLayer}, OneLayer
	case normBy == NormPerSample && method != "mixed_ghost":
		ways, instead = []Advice{tiles, Gram}, OneLayer
	case normBy == NormGhost && method != "mixed_ghost":
		ways, instead = []Advice{tiles, Outer}, OneLayer
	default:
		ways, instead = []Advice{tiles}, OneLayer
	}
	if copiesForMean(method, privacy) {
		ways = append(ways, Sum)
	}
	return ways, slices.DeleteFunc(slices.Clone(instead), func(m string) bool { return m == method })
}

// copiesForMean reports whether output gradients are copied for the mean of the losses.
func copiesForMean(method string, privacy *schemas.Privacy) bool {
	return privacy != nil && privacy.LossReduction != nil && *privacy.LossReduction == "mean" &&
		!slices.Contains(ownBackprops, method)
}
