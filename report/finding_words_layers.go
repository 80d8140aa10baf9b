package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

func wholeCheckpointWords(w *wording, x findings.WholeCheckpointFacts) {
	w.Title = "One checkpoint computes everything again at once: " + units.MiB(*w.Bytes)
	w.bytes("activations computed again", *w.Bytes, w.of(schemas.Activations)+", born in phase "+schemas.PhaseRecompute)
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("Backward computes all that the checkpoint left out in one go, %s: %s (%s of %s) are then held at once, as "+
		"they would be without a checkpoint.", units.Plural(x.Blocks, "block", "blocks"), units.MiB(*w.Bytes),
		w.share(*w.Bytes), w.peak)
	w.Change = "checkpoint parts, such as each layer of a transformer, and not the whole model: only one part is then " +
		"computed again at a time, and what lies between parts is kept"
	w.Assumption = fmt.Sprintf("there are %d parts, one of which is held at a time, and between two the last block of "+
		"the first; all other allocations stay as they are", x.Parts)
}

func frozenActivationsWords(w *wording, x findings.HeldFacts) {
	w.Title = "Autograd holds activations of frozen layers: " + units.MiB(*w.Bytes)
	w.bytes("activations of frozen layers", *w.Bytes, w.of(schemas.Activations)+
		", made before any module with a gradient")
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("%s (%s of %s) are held for layers that are not trained and come before all that is. Their only use is a "+
		"gradient of the model's input.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "run the frozen layers under torch.no_grad(), or let their input need no gradient (no requires_grad, " +
		"requires_grad_() or enable_input_require_grads() on it)"
	w.Assumption = "none of them is there when backward begins; all other allocations stay as they are"
}

func adapterDropoutWords(w *wording, x findings.HeldFacts) {
	w.Title = "The dropout of LoRA adapters makes copies: " + units.MiB(*w.Bytes)
	w.bytes("activations of lora_dropout", *w.Bytes, w.of(schemas.Activations)+", of modules lora_dropout")
	w.count("blocks of them", x.Blocks, "the same")
	w.peakFigure()
	w.say("Each layer with an adapter has a mask and a copy of its input: %s (%s of %s). Without dropout, layers with "+
		"one input share it.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "set lora_dropout=0, if the training can do without it"
	w.Assumption = "the inputs that adapters then save are held by others too; all other allocations stay as they are"
}
