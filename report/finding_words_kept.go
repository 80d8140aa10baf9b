package report

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

const viewChange = "keep a copy of the part (.clone()): a view keeps its whole base alive"

// viewWords describe views that keep more bytes than they show, as growth or at the peak.
func viewWords(w *wording) {
	switch x := w.found.Facts.(type) {
	case findings.GrowthFacts:
		growthWords(w, x)
	case findings.ViewFacts:
		w.Title = fmt.Sprintf("Views of %s keep %s alive", units.MiB(x.ViewBytes), units.MiB(x.BaseBytes))
		from := fmt.Sprintf("holders.parquet and allocations.parquet: view_bytes less than the block's, after event %d",
			w.event())
		w.bytes("kept by views", x.BaseBytes, from)
		w.bytes("shown by them", x.ViewBytes, from)
		w.count("blocks", x.Blocks, from)
		w.peakFigure()
		w.say("At %s, views keep %s in %s alive but show only %s. The other %s (%s) cannot be reached.", w.peak,
			units.MiB(x.BaseBytes), units.Plural(x.Blocks, "block", "blocks"), units.MiB(x.ViewBytes),
			units.MiB(*w.Bytes), w.share(*w.Bytes))
		w.Change = viewChange
		w.Assumption = "a copy replaces each view, and its base is freed; all other allocations stay as they are"
	default:
		panic(fmt.Sprintf("no words for %T", x))
	}
}

func keptExceptionWords(w *wording, x findings.HeldFacts) {
	w.Title = "A caught exception keeps the variables of its functions: " + units.MiB(*w.Bytes)
	w.bytes("kept by frames of an exception", *w.Bytes, fmt.Sprintf("holders.parquet: kind exception, live after event %d",
		w.At.Event))
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("The traceback of an exception keeps the variables of every function that it ended. %s (%s of %s) stay alive "+
		"as long as the exception.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "keep str(error) instead of the exception, and retry after the except block: at its end Python drops the " +
		"exception and these variables"
	w.Assumption = "the variables of the failed functions are freed once they have failed; all " +
		"other allocations stay as " +
		"they are"
}

func previousValueWords(w *wording, x findings.HeldFacts) {
	name := variable(w.found.Holder)
	w.Title = "A variable keeps its old value while the next one is computed: " + units.MiB(*w.Bytes)
	change := "delete the variable (del) at the end of the loop's body"
	if name != "" {
		w.Title = fmt.Sprintf("%s keeps its old value while the next one is computed: %s", name, units.MiB(*w.Bytes))
		change = fmt.Sprintf("put del %s at the end of the loop's body", name)
	}
	w.bytes("old values", *w.Bytes, fmt.Sprintf("allocations.parquet and holders.parquet: after event %d, made by a "+
		"line that has made as much again", w.event()))
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("%s (%s of %s) are the value that a variable had in the pass before. The variable releases it only when the "+
		"next value is assigned, so both exist for a time.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = change + ", after its last use"
	w.Assumption = "the old value is freed at the end of the next pass or update, and the next value is not computed " +
		"from it; all other allocations stay as they are"
}

// variable returns the name of a holder that is a variable: "x" for "global x" and for "local x of train()". variable
// returns "" for another holder, and if other objects lie between the variable and the block.
func variable(holder string) string {
	words := strings.Fields(holder)
	if len(words) < 2 || words[0] != "global" && words[0] != "local" || strings.Contains(holder, "→") ||
		strings.ContainsAny(words[1], ".[") {
		return ""
	}
	return words[1]
}

func scriptTensorsWords(w *wording, x findings.ScriptTensorsFacts) {
	w.Title = "The script keeps tensors through all steps: " + units.MiB(*w.Bytes)
	from := fmt.Sprintf("holders.parquet and owners.parquet: categories inputs and script after event %d, made before "+
		"the first step and not freed before the last ends", w.event())
	w.bytes("kept by the script", *w.Bytes, from)
	w.peakFigure()
	var parts, names []string
	for _, n := range x.Names {
		parts = append(parts, units.MiB(n.Bytes)+" by "+n.Name)
		w.bytes("of it by "+n.Name, n.Bytes, "the same")
		if name := variable(n.Name); name != "" {
			names = append(names, name)
		}
	}
	w.say("The script itself keeps %s (%s) of %s, from before the first step to the end of the last",
		units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	if len(parts) > 0 {
		w.say(": %s", prose.JoinWords(parts))
	}
	w.say(".")
	if len(names) > 0 {
		w.Title += ", by " + prose.JoinWords(names)
	}
	w.Change = "delete (del) what no step uses. If each step uses only a part, keep the tensor in host memory and move " +
		"that part. If the part is always the same, keep a copy of it (.clone()) and delete the rest"
	w.Assumption = "all of it is deleted, and no step needs anything in its place; all other allocations stay as they are"
}

func untrainedGradientsWords(w *wording, x findings.HeldFacts) {
	w.Title = "Parameters that no optimizer updates get gradients: " + units.MiB(*w.Bytes)
	w.bytes("gradients of parameters without state", *w.Bytes, w.of(schemas.Gradients)+", tagged, of names that no row "+
		"of category "+schemas.OptimizerState+" has")
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("%s (%s of %s) are gradients of parameters for which the optimizer has no state, although it has state for "+
		"others. Autograd computes these gradients, but no update uses them.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "call requires_grad_(False) on the parameters that the optimizer does not get; autograd then also saves " +
		"fewer activations"
	w.Assumption = "nothing else updates these parameters or reads their gradients; all other allocations stay as they are"
}

func retainedGraphWords(w *wording, x findings.HeldFacts) {
	w.Title = "Backward builds a graph that nothing uses: " + units.MiB(*w.Bytes)
	w.bytes("activations made by backward", *w.Bytes, w.of(schemas.Activations)+", born in phase backward, freed after it")
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("Backward saved %s (%s of %s) for a second derivative, but no second backward pass used them. A backward pass "+
		"that saves its own graph also frees no activations as it proceeds.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "compute first derivatives with torch.autograd.grad or .backward(), without create_graph=True; " +
		"torch.func.grad always builds the graph"
	w.Assumption = "backward saves nothing, and what it needs instead is not counted; all other allocations " +
		"stay as they are"
}

func earlierGraphWords(w *wording, x findings.HeldFacts) {
	w.Title = "The graph of an earlier step is alive at " + w.peak + ": " + units.MiB(*w.Bytes)
	w.bytes("activations of earlier steps", *w.Bytes, w.of(schemas.Activations)+", made in an earlier step or pass")
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("Autograd holds %s (%s of %s) for a step or evaluation pass that has ended. No backward pass freed them, or "+
		"it kept the graph.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "drop the result of a step before the next forward pass (del loss, or keep loss.item()), put " +
		"torch.no_grad() around code that does not train, and remove retain_graph=True"
	if w.found.Cycle {
		w.Change = cycleChange
	}
	w.Assumption = "what autograd holds for a step is freed when the step ends; all other allocations stay as they are"
}

func bucketCopiesWords(w *wording, x findings.BucketCopiesFacts) {
	w.Title = "DDP holds the gradients twice, in .grad and in its buckets: " + units.MiB(*w.Bytes)
	w.bytes("gradients in blocks of their own", *w.Bytes, w.of(schemas.Gradients)+", tagged")
	w.bytes("buckets", x.BucketBytes, w.of(schemas.Gradients)+", name DDP bucket")
	w.peakFigure()
	w.say("Gradients take %s of %s. DDP's buckets take another %s and hold a copy of each gradient.",
		units.MiB(*w.Bytes), w.peak, units.MiB(x.BucketBytes))
	w.Change = "pass gradient_as_bucket_view=True to DistributedDataParallel: .grad is then a view of the bucket"
	w.Assumption = "no gradient has a block of its own once autograd has accumulated it; all other allocations " +
		"stay as they are"
}

func autocastCacheWords(w *wording, x findings.HeldFacts) {
	w.Title = fmt.Sprintf("Autocast keeps %s of weights: %s", units.Plural(x.Blocks, "copy", "copies"),
		units.MiB(*w.Bytes))
	w.bytes("casts of weights", *w.Bytes, w.of(schemas.AutocastCache))
	w.count("casts", x.Blocks, "the same")
	w.peakFigure()
	w.say("Autocast keeps a low-precision copy of each weight that it has cast until its outermost context ends: %s (%s "+
		"of %s). No graph needs these copies.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "where nothing is trained, pass cache_enabled=False to torch.autocast (a weight is " +
		"then cast each time it " +
		"is used), or load the model in low precision (model.to(torch.bfloat16))"
	w.Assumption = "a cast is freed before the next one is made; all other allocations stay as they are"
}

func idleModelsWords(w *wording, x findings.IdleModelsFacts) {
	w.Title = "Models that do not run are on the GPU: " + units.MiB(*w.Bytes)
	w.bytes("of models that do not run", *w.Bytes, fmt.Sprintf("owners.parquet: parameters, gradients and state after "+
		"event %d", w.event()))
	w.peakFigure()
	var parts, names []string
	for _, m := range x.Idle {
		name := m.Name
		if root, others := strings.CutSuffix(name, "+"); others {
			name = root + " and others of its class"
		}
		names = append(names, name)
		parts = append(parts, units.MiB(m.Bytes)+" of "+name)
		w.bytes("of them "+name, m.Bytes, "the same")
	}
	w.say("At %s, models that have not run yet or never run again hold %s (%s)", w.peak, units.MiB(*w.Bytes),
		w.share(*w.Bytes))
	if len(parts) > 0 {
		w.say(": %s", prose.JoinWords(parts))
	}
	if len(names) > 0 {
		w.Title += ", of " + prose.JoinWords(names)
	}
	w.say(". Resetting torch's peak counters frees none of it.")
	w.Change = "move a model to the GPU right before its first step, and delete it and its optimizer after its last; to " +
		"compare cases, run each in a process of its own"
	w.Assumption = "a model, its gradients and its optimizer's state exist only from its first call to its last; all " +
		"other allocations stay as they are"
}
