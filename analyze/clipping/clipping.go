// Package clipping lists the ways to clip per-sample gradients with less memory than a run's present method.
package clipping

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// The ways in which a layer's per-sample norms are computed, as column norm_by of modules.parquet names them.
const (
	NormGhost     = "ghost"
	NormPerSample = "per_sample"
	NormTiled     = "tiled_" // the names of both tiled forms begin with it
)

// OneLayer lists the methods that never hold the per-sample gradients of all layers at once. NoTable lists those of
// OneLayer that also never hold the per-sample gradients of an embedding.
var (
	NoTable  = []string{"ghost", "mixed_ghost", "flash", "bk", "flash_bk"}
	OneLayer = append([]string{"fgc"}, NoTable...)
)

// ownBackprops are the methods that scale gradients by the batch size themselves, without a copy of the output
// gradients.
var ownBackprops = []string{"bk", "flash_bk"}

// Advice is one way to make the temporaries of norms and clipping smaller.
type Advice int

const (
	Tiles       Advice = iota // compute norms by tiles
	TilesOfBoth               // compute norms and clipped gradients by tiles
	ByLayer                   // clip without the per-sample gradients of all layers
	Gram                      // take the layer's norm from Gram matrices
	Outer                     // take the layer's norm from its per-sample gradient
	Sum                       // take the sum of the losses: no output gradients are copied for their mean
)

// AdviceFor returns the ways to make the temporaries of norms and clipping smaller, and the methods whose runs show by
// how much. AdviceFor leaves out what the run does already. method is the run's method, and normBy is how the layer
// with the largest part takes its norms. Either may be "".
func AdviceFor(method, normBy string, privacy *schemas.Privacy) (ways []Advice, instead []string) {
	tiles := Tiles
	if method == "bk" {
		tiles = TilesOfBoth
	}
	switch {
	case strings.HasPrefix(normBy, NormTiled), method == "flash", method == "flash_bk":
		// Nothing is left to advise on norms: the method computes them by tiles, whose size has a bound in every layer.
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
