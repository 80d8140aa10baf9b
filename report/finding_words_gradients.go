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
	w.say("Gradients outlive their step: when the forward pass of step %d begins, .grad holds %s of gradients that "+
		"were written before", x.Step, units.MiB(*w.Bytes))
	if x.AtPeakBytes > 0 {
		w.say(", and %s of %s (%s) are blocks of such gradients, what rounding adds to them included.",
			units.MiB(x.AtPeakBytes), w.peak, w.share(x.AtPeakBytes))
	} else {
		w.say("; none of them are in %s.", w.peak)
	}
	w.Change = "call zero_grad(set_to_none=True) right after the optimizer's step"
	if x.Opacus {
		w.Change += "; Opacus' optimizers keep .grad unless told so"
	}
	w.Assumption = "nothing reads .grad between the optimizer's step and the next writing; all other " +
		"allocations stay as they are"
}

func perSampleWords(w *wording, x findings.PerSampleFacts) {
	w.Title = "Per-sample gradients of several layers are held at once: " + units.MiB(*w.Bytes)
	w.bytes("per-sample gradients", *w.Bytes, w.of(schemas.PerSampleGradients))
	w.peakFigure()
	w.say("Per-sample gradients are %s (%s) of %s", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	if m := x.Largest.Module; m != nil {
		w.bytes("of them "+grouping.ModulePath(m, 0), x.Largest.Bytes, w.of(schemas.PerSampleGradients)+
			", modules.parquet")
		w.say("; the largest part, %s, is of %s", units.MiB(x.Largest.Bytes), grouping.ModuleWords(m))
	}
	w.say(".")
	w.Change = "use a method that never holds the per-sample gradients of all layers: fast gradient clipping, " +
		"ghost clipping, tiles or book-keeping"
	if x.Layerwise {
		w.Change = "use a method that holds no layer's per-sample gradients: ghost clipping, tiles or book-keeping"
	}
	w.Assumption = "at most: no per-sample gradient is ever held, and the other method holds nothing in their place"
}

func perSampleEmbeddingWords(w *wording, x findings.PerSampleEmbeddingFacts) {
	table := x.Largest.ParameterBytes
	w.Title = "Each sample has a gradient of the whole embedding: " + units.MiB(*w.Bytes)
	w.bytes("per-sample gradients of embeddings", *w.Bytes, w.of(schemas.PerSampleGradients)+
		", modules.parquet: role embedding")
	w.bytes("parameters of "+grouping.ModulePath(x.Largest, 0), table, "modules.parquet: parameter_bytes")
	w.peakFigure()
	w.say("%s (%s) of %s are per-sample gradients of embeddings, the largest in %s: each sample has a whole table "+
		"(%s), but touches at most as many rows as it has tokens.",
		units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak, grouping.ModuleWords(x.Largest), units.MiB(table))
	w.Change = "take the embedding's norm from ids and output gradients, as ghost clipping does, or keep its " +
		"per-sample gradient sparse"
	w.Assumption = "the embedding's norm needs no table of gradients; all other allocations stay as they are"
}

func clipTemporariesWords(w *wording, x findings.ClipTemporariesFacts) {
	w.Title = "Norms and clipping need temporaries: " + units.MiB(*w.Bytes)
	w.bytes("clip temporaries", *w.Bytes, w.of(schemas.ClipTemporaries))
	w.peakFigure()
	w.say("%s (%s) of %s, %s, are temporaries of norms and clipping", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak,
		when(&w.found.Highest.At))
	if m := x.Largest.Module; m != nil {
		w.bytes("of them "+grouping.ModulePath(m, 0), x.Largest.Bytes, w.of(schemas.ClipTemporaries)+
			", modules.parquet")
		w.say(", %s of them in %s", units.MiB(x.Largest.Bytes), grouping.ModuleWords(m))
		switch {
		case m.NormBy == clipping.NormGhost:
			w.say(", whose norm comes from two T×T Gram matrices for each sample")
		case m.NormBy == clipping.NormPerSample:
			w.say(", whose norm comes from its per-sample gradient")
		case strings.HasPrefix(m.NormBy, clipping.NormTiled):
			w.say(", whose norm is taken by tiles")
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
	clipping.Tiles: "take norms by tiles, which hold neither a T×T matrix nor a whole per-sample gradient",
	clipping.TilesOfBoth: "take norms and clipped gradients by tiles (flash_bk), which hold neither a T×T " +
		"matrix nor a whole per-sample gradient",
	clipping.ByLayer: "use a method that clips without the per-sample gradients of all layers: ghost " +
		"clipping, tiles or book-keeping",
	clipping.Gram: "this layer's from Gram matrices where 2T² is below the product of its dimensions (ghost " +
		"clipping)",
	clipping.Outer: "this layer's from its per-sample gradient where 2T² exceeds the product of its dimensions " +
		"(mixed ghost clipping)",
	clipping.Sum: `take the sum of the losses and not their mean (loss_reduction="sum"), so that Opacus copies ` +
		"no output gradients to scale them",
}

// clipAdviceWords lists the ways to make the temporaries of norms and clipping smaller.
func clipAdviceWords(ways []clipping.Advice) string {
	const tiled = "; norms are taken by tiles already"
	switch {
	case len(ways) == 0:
		return "smaller physical batches" + tiled
	case len(ways) == 1 && ways[0] == clipping.Sum:
		return clipAdvice[clipping.Sum] + tiled
	}
	var out []string
	for _, way := range ways {
		out = append(out, clipAdvice[way])
	}
	return strings.Join(out, "; or ")
}
