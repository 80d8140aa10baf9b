package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

func sharedHooksWords(w *wording, x findings.HookFacts) {
	w.hookFigures(&x)
	w.Title = fmt.Sprintf("DP hooks add %s, not the %s that they hold", units.MiB(x.HeldBytes-x.SharedBytes),
		units.MiB(x.HeldBytes))
	w.say("The hooks of the DP method hold %s at %s. Others hold %s (%s) of it too; autograd holds %s. The hooks "+
		"themselves add only %s.", units.MiB(x.HeldBytes), w.peak, units.MiB(x.SharedBytes),
		prose.Share(float64(x.SharedBytes), float64(x.HeldBytes)), units.MiB(x.AutogradBytes),
		units.MiB(x.HeldBytes-x.SharedBytes))
}

func (w *wording) hookFigures(x *findings.HookFacts) {
	from := w.of(schemas.HookActivations)
	w.bytes("held by hooks", x.HeldBytes, from)
	w.bytes("held by others too", x.SharedBytes, from+", blocks with several tagged owners")
	w.bytes("held by autograd too", x.AutogradBytes, from+", blocks that category activations owns too")
	w.peakFigure()
}

func ownHooksWords(w *wording, x findings.OwnHooksFacts) {
	w.hookFigures(&x.HookFacts)
	w.Title = "DP hooks hold memory that nothing else holds: " + units.MiB(*w.Bytes)
	where := ""
	if m := x.Largest.Module; m != nil {
		w.bytes("of it "+grouping.ModulePath(m, 0), x.Largest.Bytes, w.of(schemas.HookActivations))
		where = fmt.Sprintf(", the largest part in %s (%s)", grouping.ModuleWords(m), units.MiB(x.Largest.Bytes))
	}
	w.say("At %s, only the hooks of the DP method hold %s (%s)%s. Autograd never held these blocks, has released "+
		"them, or holds other copies.", w.peak, units.MiB(*w.Bytes), w.share(*w.Bytes), where)
	if x.Needed {
		w.say(" Book-keeping needs them until it has clipped. Autograd does not need them where parameter gradients " +
			"are skipped.")
		return
	}
	w.Change = "let the hooks hold the same tensors as autograd (no cast or reshaped copy), and release them once the " +
		"norm of their layer is computed"
	w.Assumption = "the hooks hold only what autograd holds, and nothing takes its place; all other allocations " +
		"stay as they are"
}

func outputCopiesWords(w *wording, x findings.OutputCopiesFacts) {
	w.Title = fmt.Sprintf("Head and loss hold %d blocks of the output's size: %s", x.Copies, units.MiB(*w.Bytes))
	w.bytes("largest output", x.SizeBytes, "owners.parquet: category outputs, tagged; allocations.parquet: "+
		"requested_bytes")
	w.count("blocks of its size, or twice that, at "+w.peak, x.Copies, fmt.Sprintf("allocations.parquet: after event "+
		"%d, of the loss, the head, the model itself or no module", w.event()))
	w.bytes("in them", *w.Bytes, "the same")
	w.peakFigure()
	w.say("At %[1]s, %[2]s, head and loss hold %[3]d blocks as large as the model's output (%[4]s) or twice as "+
		"large: %[5]s, %[6]s of %[1]s.", w.peak, when(&w.found.Highest.At), x.Copies, units.MiB(x.SizeBytes),
		units.MiB(*w.Bytes), w.share(*w.Bytes))
	w.Change = "compute head and loss for a part of the tokens at a time, or use a fused kernel that never holds all " +
		"logits and their gradients"
	w.Assumption = fmt.Sprintf("the loss is computed in %[1]d parts, each with 1/%[1]d of these blocks; the sum of the "+
		"head's gradients is not counted; all other allocations stay as they are", x.Parts)
}

func optimizerWords(w *wording) {
	w.Title = "The optimizer's step needs temporaries: " + units.MiB(*w.Bytes)
	w.bytes("optimizer temporaries", *w.Bytes, w.of(schemas.OptimizerTemporaries)+", born in phase "+
		schemas.PhaseOptimizer)
	w.peakFigure()
	w.say("Temporaries of the optimizer's step are %s (%s) of %s.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "pass fused=True to the optimizer, or foreach=False, which updates one parameter after another"
	w.Assumption = "at most: the step would hold no temporaries; all other allocations stay as they are"
}

// leastNamedPercent is the smallest part of the rule of thumb that its sentence names, in percent of the peak.
const leastNamedPercent = 1

func ruleOfThumbWords(w *wording, x findings.RuleOfThumbFacts) {
	whole := w.found.Highest.AllocatedBytes
	w.Title = "The rule of thumb gives " + units.MiB(x.SumBytes) + ", but the peak is " + units.MiB(whole)
	var over, under []string
	for _, p := range x.Counted {
		w.bytes("highest "+prose.Words(p.Category), p.MaxBytes, "owners.parquet and allocations.parquet: maximum of "+
			"category "+p.Category)
		if absent := p.MaxBytes - p.Bytes; memory.AtLeast(absent, whole, leastNamedPercent) {
			over = append(over, units.MiB(absent)+" of "+prose.Words(p.Category))
		}
	}
	var small int64
	for _, p := range x.LeftOut {
		w.bytes(prose.Words(p.Name)+" at "+w.peak, p.Bytes, w.of(p.Name))
		if memory.AtLeast(p.Bytes, whole, leastNamedPercent) {
			under = append(under, units.MiB(p.Bytes)+" of "+prose.Words(p.Name))
		} else {
			small += p.Bytes
		}
	}
	if small > 0 {
		under = append(under, units.MiB(small)+" of others")
	}
	w.peakFigure()
	state := "the optimizer's state"
	if x.Adam {
		state = "two moments for each parameter"
	}
	w.say("Parameters, gradients, %s and activations, each at its own maximum, sum to %s, but %s is %s, %s.", state,
		units.MiB(x.SumBytes), w.peak, units.MiB(whole), besideSum(whole-x.SumBytes, x.SumBytes))
	if len(over) > 0 {
		w.say(" The rule counts %s, which are not allocated at %s.", prose.JoinWords(over), w.peak)
	}
	if len(under) > 0 {
		w.say(" It leaves out %s.", prose.JoinWords(under))
	}
}

// besideSum states how far the peak is from the sum of a rule of thumb: "3 MiB (5 % of the sum) more". The finding's
// own share refers to the peak.
func besideSum(delta, sum int64) string {
	switch {
	case delta > 0:
		return fmt.Sprintf("%s (%s of the sum) more", units.MiB(delta), prose.Share(float64(delta), float64(sum)))
	case delta < 0:
		return fmt.Sprintf("%s (%s of the sum) less", units.MiB(-delta), prose.Share(float64(-delta), float64(sum)))
	}
	return "the same"
}
