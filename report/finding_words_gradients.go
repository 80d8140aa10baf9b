package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/clipping"
	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

func keptGradientsWords(w *wording, x findings.KeptGradientsFacts) {
	w.Title = "Gradients of a step stay until the next backward pass: " + units.MiB(*w.Bytes)
	w.bytes("gradients when forward begins", *w.Bytes, fmt.Sprintf("owners.parquet: category gradients after event "+
		"%d, step %d", x.Event, x.Step))
	w.bytes("blocks of them unused at "+w.peak, x.AtPeakBytes, fmt.Sprintf("gradients.parquet and owners.parquet: not "+
		"written since, after event %d", w.event()))
	w.peakFigure()
	w.say("Gradients outlive their step. When the forward pass of step %d begins, .grad still holds %s of gradients.",
		x.Step, units.MiB(*w.Bytes))
	if x.AtPeakBytes > 0 {
		w.say(" Blocks of such gradients are %s of %s (%s), rounding included.", units.MiB(x.AtPeakBytes), w.peak,
			w.share(x.AtPeakBytes))
	} else {
		w.say(" None of them are in %s.", w.peak)
	}
	w.Change = "call zero_grad(set_to_none=True) right after the optimizer's step"
	if x.Opacus {
		w.Change += "; Opacus' optimizers keep .grad by default"
	}
	w.Assumption = "nothing reads .grad between the optimizer's step and the next backward pass; all other " +
		"allocations stay as they are"
}

func perSampleWords(w *wording, x findings.PerSampleFacts) {
	w.Title = "Several layers hold their per-sample gradients at once: " + units.MiB(*w.Bytes)
	w.bytes("per-sample gradients", *w.Bytes, w.of(schemas.PerSampleGradients))
	w.peakFigure()
	w.say("Per-sample gradients are %s (%s) of %s.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	if m := x.Largest.Module; m != nil {
		w.bytes("of them "+grouping.ModulePath(m, 0), x.Largest.Bytes, w.of(schemas.PerSampleGradients)+
			", modules.parquet")
		w.say(" The largest part, %s, belongs to %s.", units.MiB(x.Largest.Bytes), grouping.ModuleWords(m))
	}
	w.Change = "use a method that never holds the per-sample gradients of all layers: fast gradient clipping, " +
		"ghost clipping, tiles or book-keeping"
	if x.Layerwise {
		w.Change = "use a method that holds no layer's per-sample gradients: ghost clipping, tiles or book-keeping"
	}
	w.Assumption = "at most: the other method would hold no per-sample gradients, and nothing in their place"
}

func perSampleEmbeddingWords(w *wording, x findings.PerSampleEmbeddingFacts) {
	table := x.Largest.ParameterBytes
	w.Title = "Each sample has a gradient of the whole embedding: " + units.MiB(*w.Bytes)
	w.bytes("per-sample gradients of embeddings", *w.Bytes, w.of(schemas.PerSampleGradients)+
		", modules.parquet: role embedding")
	w.bytes("parameters of "+grouping.ModulePath(x.Largest, 0), table, "modules.parquet: parameter_bytes")
	w.peakFigure()
	w.say("%s (%s) of %s are per-sample gradients of embeddings, the largest in %s. Each sample has a gradient of the "+
		"whole table (%s), but uses at most one row for each token.",
		units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak, grouping.ModuleWords(x.Largest), units.MiB(table))
	w.Change = "compute the embedding's norm from token ids and output gradients, as ghost clipping does, or keep its " +
		"per-sample gradient sparse"
	w.Assumption = "the embedding's norm needs no gradient of the whole table; all other allocations stay as they are"
}

func clipTemporariesWords(w *wording, x findings.ClipTemporariesFacts) {
	w.Title = "Norms and clipping need temporaries: " + units.MiB(*w.Bytes)
	w.bytes("clip temporaries", *w.Bytes, w.of(schemas.ClipTemporaries))
	w.peakFigure()
	w.say("Temporaries of norms and clipping are %s (%s) of %s, %s", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak,
		when(&w.found.Highest.At))
	if m := x.Largest.Module; m != nil {
		w.bytes("of them "+grouping.ModulePath(m, 0), x.Largest.Bytes, w.of(schemas.ClipTemporaries)+
			", modules.parquet")
		w.say(". %s of them belong to %s", units.MiB(x.Largest.Bytes), grouping.ModuleWords(m))
		switch {
		case m.NormBy == clipping.NormGhost:
			w.say(", whose norm comes from two T×T Gram matrices for each sample")
		case m.NormBy == clipping.NormPerSample:
			w.say(", whose norm comes from its per-sample gradient")
		case strings.HasPrefix(m.NormBy, clipping.NormTiled):
			w.say(", whose norm is computed by tiles")
		}
	}
	w.say(".")
	w.Change = clipAdviceWords(x.Advice)
	if slices.Contains(x.Advice, clipping.Sum) {
		w.rest = clipAdvice[clipping.Sum]
	}
	w.Assumption = "at most: norms and clipping would need no memory of their own"
}

var clipAdvice = map[clipping.Advice]string{
	clipping.Tiles: "compute norms by tiles, which hold neither a T×T matrix nor a whole per-sample gradient",
	clipping.TilesOfBoth: "compute norms and clipped gradients by tiles (flash_bk), which hold neither a T×T " +
		"matrix nor a whole per-sample gradient",
	clipping.ByLayer: "use a method that clips without the per-sample gradients of all layers: ghost " +
		"clipping, tiles or book-keeping",
	clipping.Gram: "compute this layer's norm from Gram matrices (ghost clipping) if 2T² is below the product of " +
		"its dimensions",
	clipping.Outer: "compute this layer's norm from its per-sample gradient (mixed ghost clipping) if 2T² exceeds " +
		"the product of its dimensions",
	clipping.Sum: `set loss_reduction="sum": Opacus then copies no output gradients to scale them`,
}

// clipAdviceWords list ways to make the temporary tensors of norms and clipping smaller.
func clipAdviceWords(ways []clipping.Advice) string {
	const tiled = "; norms are computed by tiles already"
	switch {
	case len(ways) == 0:
		return "use smaller physical batches" + tiled
	case len(ways) == 1 && ways[0] == clipping.Sum:
		return clipAdvice[clipping.Sum] + tiled
	}
	var out []string
	for _, way := range ways {
		out = append(out, clipAdvice[way])
	}
	return strings.Join(out, "; or ")
}
