package report

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

const viewChange = "keep a copy of the part, .clone(): a view keeps all of its base as long as it lives"

// viewWords describes views that keep more than they show: as a growth, or at the peak.
func viewWords(w *wording) {
	switch x := w.found.Facts.(type) {
	case findings.GrowthFacts:
		growthWords(w, x)
	case findings.ViewFacts:
		w.Title = fmt.Sprintf("Views that show %s keep %s", units.MiB(x.ViewBytes), units.MiB(x.BaseBytes))
		from := fmt.Sprintf("holders.parquet and allocations.parquet: view_bytes less than the block's, after event %d",
			w.event())
		w.bytes("kept by views", x.BaseBytes, from)
		w.bytes("shown by them", x.ViewBytes, from)
		w.count("blocks", x.Blocks, from)
		w.peakFigure()
		w.say("At %s %s of %s are kept by views that show %s of them: the other %s (%s) nobody can reach.", w.peak,
			units.MiB(x.BaseBytes), units.Plural(x.Blocks, "block", "blocks"), units.MiB(x.ViewBytes),
			units.MiB(*w.Bytes), w.share(*w.Bytes))
		w.Change = viewChange
		w.Assumption = "a copy takes the place of each view, and its base is freed; all other allocations stay as they are"
	default:
		panic(fmt.Sprintf("no words for %T", x))
	}
}

func keptExceptionWords(w *wording, x findings.HeldFacts) {
	w.Title = "An exception that was caught keeps what its functions had: " + units.MiB(*w.Bytes)
	w.bytes("kept by frames of an exception", *w.Bytes, fmt.Sprintf("holders.parquet: kind exception, live after event %d",
		w.At.Event))
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("An exception has a traceback, and that has the variables of each function that it ended: %s (%s of %s) are "+
		"alive as long as the exception is.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "keep str(error) and not the exception, and try again after the except block: its end gives the " +
		"exception up, and with it all that the failed try had"
	w.Assumption = "what the failed functions had is freed once they have failed; all other allocations stay as " +
		"they are"
}

func previousValueWords(w *wording, x findings.HeldFacts) {
	name := variable(w.found.Holder)
	w.Title = "A name keeps its old value while the next is made: " + units.MiB(*w.Bytes)
	change := "delete the name (del) at the end of the loop's body"
	if name != "" {
		w.Title = fmt.Sprintf("%s keeps its old value while the next is made: %s", name, units.MiB(*w.Bytes))
		change = fmt.Sprintf("put del %s at the end of the loop's body", name)
	}
	w.bytes("old values", *w.Bytes, fmt.Sprintf("allocations.parquet and holders.parquet: after event %d, made by a "+
		"line that has made as much again", w.event()))
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("%s (%s of %s) are what a name stood for in the pass before. It gives that up when it is bound to the next "+
		"value, and by then both are there.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = change + ", where the pass has used it"
	w.Assumption = "the old value is freed when the pass, or the update, that came after it has ended, and the next is " +
		"not computed from it; all other allocations stay as they are"
}

// variable returns a holder's variable: "x" for "global x" and for "local x of train()". It returns "" if anything
// else lies between.
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
	w.say("%s (%s) of %s are kept by the script itself, from before the first step to the end of the last",
		units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	if len(parts) > 0 {
		w.say(": %s", prose.JoinWords(parts))
	}
	w.say(".")
	if len(names) > 0 {
		w.Title += ", by " + prose.JoinWords(names)
	}
	w.Change = "delete (del) what no step uses; keep in host memory what each step takes a part of, and move the part; " +
		"of a part that is always the same, keep a copy (.clone()) and delete the rest"
	w.Assumption = "none of it is there, and no step needs anything in its place; all other allocations stay as they are"
}

func untrainedGradientsWords(w *wording, x findings.HeldFacts) {
	w.Title = "Parameters that the optimizer does not have get gradients: " + units.MiB(*w.Bytes)
	w.bytes("gradients of parameters without state", *w.Bytes, w.of(schemas.Gradients)+", tagged, of names that no row "+
		"of category "+schemas.OptimizerState+" has")
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("%s (%s of %s) are gradients of parameters that the optimizer has no state for, although it has for others: "+
		"autograd computes them, and no update uses them.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "call requires_grad_(False) on the parameters that the optimizer does not get; autograd then saves less " +
		"for them, too"
	w.Assumption = "nothing else updates these parameters or reads their gradients; all other allocations stay as they are"
}

func retainedGraphWords(w *wording, x findings.HeldFacts) {
	w.Title = "Backward makes a graph that nobody uses: " + units.MiB(*w.Bytes)
	w.bytes("activations made by backward", *w.Bytes, w.of(schemas.Activations)+", born in phase backward, freed after it")
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("Backward has saved %s (%s of %s) for a second derivative, and no backward pass comes before they are freed. "+
		"Nor does such a pass free activations as it goes.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "take first derivatives by torch.autograd.grad or .backward(), without create_graph=True; " +
		"torch.func.grad always makes the graph"
	w.Assumption = "backward saves nothing, and what it needs in place of that is not counted; all other allocations " +
		"stay as they are"
}

func earlierGraphWords(w *wording, x findings.HeldFacts) {
	w.Title = "The graph of an earlier step is alive at " + w.peak + ": " + units.MiB(*w.Bytes)
	w.bytes("activations of earlier steps", *w.Bytes, w.of(schemas.Activations)+", made in an earlier step or pass")
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("Autograd holds %s (%s of %s) for a step, or an evaluation pass, that is over: no backward pass has freed "+
		"them, or one that keeps the graph.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "give up the result of a step before the next forward pass (del loss, or loss.item() in what is kept), " +
		"put torch.no_grad() around what trains nothing, and leave retain_graph=True out"
	if w.found.Cycle {
		w.Change = cycleChange
	}
	w.Assumption = "what autograd holds for a step is freed when the step ends; all other allocations stay as they are"
}

func bucketCopiesWords(w *wording, x findings.BucketCopiesFacts) {
	w.Title = "DDP has the gradients twice, in .grad and in its buckets: " + units.MiB(*w.Bytes)
	w.bytes("gradients in blocks of their own", *w.Bytes, w.of(schemas.Gradients)+", tagged")
	w.bytes("buckets", x.BucketBytes, w.of(schemas.Gradients)+", name DDP bucket")
	w.peakFigure()
	w.say("Gradients take %s of %s beside the %s of DDP's buckets, which have a copy of each.", units.MiB(*w.Bytes),
		w.peak, units.MiB(x.BucketBytes))
	w.Change = "give DistributedDataParallel gradient_as_bucket_view=True: .grad is then a view of the bucket"
	w.Assumption = "no gradient has a block of its own once autograd has accumulated it; all other allocations " +
		"stay as they are"
}

func autocastCacheWords(w *wording, x findings.HeldFacts) {
	w.Title = fmt.Sprintf("Autocast keeps %s of weights: %s", units.Plural(x.Blocks, "copy", "copies"),
		units.MiB(*w.Bytes))
	w.bytes("casts of weights", *w.Bytes, w.of(schemas.AutocastCache))
	w.count("casts", x.Blocks, "the same")
	w.peakFigure()
	w.say("Autocast keeps a copy in low precision of each weight that it has cast until its outermost context ends: %s "+
		"(%s of %s) that no graph needs.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "where nothing is trained, give torch.autocast cache_enabled=False, or load the model in low precision " +
		"(model.to(torch.bfloat16)); a weight that is used several times is then cast each time"
	w.Assumption = "a cast is freed before the next one is made; all other allocations stay as they are"
}

func idleModelsWords(w *wording, x findings.IdleModelsFacts) {
	w.Title = "Models that do not run are on the device: " + units.MiB(*w.Bytes)
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
	w.say("At %s models that have not run yet, or never run again, hold %s (%s)", w.peak, units.MiB(*w.Bytes),
		w.share(*w.Bytes))
	if len(parts) > 0 {
		w.say(": %s", prose.JoinWords(parts))
	}
	if len(names) > 0 {
		w.Title += ", of " + prose.JoinWords(names)
	}
	w.say(". Resetting torch's peak counters frees none of it.")
	w.Change = "put a model on the device when its first step comes, and delete it with its optimizer after its last; " +
		"to compare cases, run each in a process of its own"
	w.Assumption = "a model, its gradients and its optimizer's state are there from its first call to its last; all " +
		"other allocations stay as they are"
}
