package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

func wholeCheckpointWords(w *wording, x findings.WholeCheckpointFacts) {
	w.Title = "One checkpoint recomputes all its activations at once: " + units.MiB(*w.Bytes)
	w.bytes("activations computed again", *w.Bytes, w.of(schemas.Activations)+", born in phase "+schemas.PhaseRecompute)
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("Backward recomputes everything that the checkpoint left out before it frees any of it (%s). So %s (%s of %s) "+
		"are held at once, as without a checkpoint.", units.Plural(x.Blocks, "block", "blocks"), units.MiB(*w.Bytes),
		w.share(*w.Bytes), w.peak)
	w.Change = "checkpoint parts, such as each layer of a transformer, and not the whole model: backward then holds one " +
		"recomputed part at a time, and what lies between parts"
	w.Assumption = fmt.Sprintf("there are %d parts; one part is held at a time, and of each earlier part its last "+
		"block; all other allocations stay as they are", x.Parts)
}

func frozenActivationsWords(w *wording, x findings.HeldFacts) {
	w.Title = "Autograd holds activations of frozen layers: " + units.MiB(*w.Bytes)
	w.bytes("activations of frozen layers", *w.Bytes, w.of(schemas.Activations)+
		", made before any module with a gradient")
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("Autograd holds %s (%s of %s) for frozen layers that come before every trained layer. They serve only a "+
		"gradient of the model's input.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "run the frozen layers under torch.no_grad(), or make sure that their input requires no gradient (no " +
		"requires_grad, requires_grad_() or enable_input_require_grads() on it)"
	w.Assumption = "none of them exist when backward begins; all other allocations stay as they are"
}

func adapterDropoutWords(w *wording, x findings.HeldFacts) {
	w.Title = "The dropout of LoRA adapters makes copies: " + units.MiB(*w.Bytes)
	w.bytes("activations of lora_dropout", *w.Bytes, w.of(schemas.Activations)+", of modules lora_dropout")
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("Each layer with an adapter keeps a dropout mask and a copy of its input: %s (%s of %s). Without dropout, "+
		"layers with the same input share it.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "set lora_dropout=0, if your training does not need it"
	w.Assumption = "others hold the inputs that adapters then save; all other allocations stay as they are"
}
