package report

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/analyze/findings"
)

// A FindingKind says what a kind of finding means, and what to do about it. The words of a finding in a run name the
// line, the bytes and the change in full.
type FindingKind struct{ ID, Means, Do string }

// FindingKinds are all kinds, in the order of docs/findings.md: memory, time, and what is known of the run.
var FindingKinds = []FindingKind{
	{findings.Growth, "Memory grows from step to step.", "Find what keeps the blocks that it names, and give it up."},
	{findings.EvaluationGraphs, "Each evaluation pass keeps its autograd graph.", "Evaluate under `torch.no_grad()`."},
	{findings.KeptGraphs, "A tensor that is kept has the graph of its step.",
		"Keep `x.detach()`, or `x.item()` of a number."},
	{findings.GradientGraphs, "Gradients have a graph, and it is kept.",
		"Leave `create_graph` out, or give the gradients up after the step."},
	{findings.ViewKeepsBase, "A small view keeps a large block alive.", "Keep a copy of the part: `.clone()`."},
	{findings.KeptException, "A caught exception keeps what its functions had.",
		"Keep `str(error)`, and try again after the `except` block."},
	{findings.RetainedGraph, "Backward leaves activations that nothing uses.",
		"Take first derivatives without `create_graph=True`."},
	{findings.WholeCheckpoint, "One checkpoint holds the whole model.",
		"Checkpoint the model in several parts."},
	{findings.FrozenActivations, "Frozen layers keep activations without need.",
		"Run them under `torch.no_grad()`, or let their input need no gradient."},
	{findings.AdapterDropout, "The dropout of LoRA adapters keeps activations.", "Set `lora_dropout=0`."},
	{findings.EarlierGraph, "The graph of a step that is over is still there.",
		"Give up the result of a step before the next forward pass."},
	{findings.PreviousValue, "A name keeps its old value while the next is made.",
		"Delete the name at the end of the loop's body."},
	{findings.ScriptTensors, "Tensors of the script stay from first step to last.",
		"Delete what no step uses, and keep on the host what each step takes a part of."},
	{findings.UntrainedGradients, "Parameters that no optimizer updates have gradients.",
		"Call `requires_grad_(False)` on them."},
	{findings.IdleModels, "A model is on the GPU while nothing calls it.", "Move it to the host while it is idle."},
	{findings.BucketCopies, "DistributedDataParallel keeps every gradient twice.",
		"Pass `gradient_as_bucket_view=True`."},
	{findings.AutocastCache, "Autocast keeps low-precision copies of weights.",
		"Pass `cache_enabled=False`, or hold the weights in low precision."},
	{findings.OOM, "A request for memory failed.",
		"Hold less at that moment: `dpsight breakdown --at oom` says what held memory."},
	{findings.Cached, "Torch held memory that nothing was allocated in.",
		"Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`."},
	{findings.Fragmentation, "Torch reserved more, as free pieces were too small.",
		"Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`."},
	{findings.KeptGradients, "Gradients of the last step stay during forward.",
		"Call `zero_grad(set_to_none=True)` right after the optimizer's step."},
	{findings.SharedHooks, "Autograd holds most of what DP hooks hold.",
		"Nothing: it would be there without the hooks."},
	{findings.OwnHooks, "DP hooks hold memory that nothing else holds.",
		"Let the hooks hold what autograd holds. Book-keeping needs what it holds."},
	{findings.StreamWorkspaces, "cuBLAS keeps workspaces of several streams.",
		"Run matrix products on one stream, or set `CUBLAS_WORKSPACE_CONFIG`."},
	{findings.ThreadWorkspaces, "cuBLAS keeps workspaces of several threads.",
		"Run backward in the calling thread, or set `CUBLAS_WORKSPACE_CONFIG`."},
	{findings.PerSample, "Per-sample gradients are large.",
		"Use a method that never holds all of them: ghost, fast gradient clipping or book-keeping."},
	{findings.PerSampleEmbedding, "Per-sample gradients of an embedding are large.",
		"Take the norm from ids and output gradients, as ghost clipping does."},
	{findings.ClipTemporaries, "Norms and clipping need large temporaries.",
		"Take norms by tiles, or use smaller physical batches."},
	{findings.OutputCopies, "Head and loss hold copies of the output.",
		"Compute head and loss in parts, or with a fused kernel."},
	{findings.OptimizerPeak, "The optimizer's update needs large temporaries.", "Pass `foreach=False` or `fused=True`."},
	{findings.Slack, "Blocks are larger than what was asked for.",
		"Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`."},
	{findings.RuleOfThumb, "The usual sum of parts is not the peak.",
		"Nothing: do not use the rule for this run."},
	{findings.HostGrowth, "Memory on the host grows from step to step.",
		"Look for what the phase keeps: `dpsight host` has all phases."},
	{findings.Throttled, "The GPU's clock was slowed in timed steps.",
		"Compare only runs with the same limits, or lock the clocks."},
	{findings.OtherProcess, "Another process used the GPU in timed steps.", "Measure again on a GPU of your own."},
	{findings.NotIsolated, "The GPU was not known to be free before the run.", "Measure again on a free GPU."},
	{findings.UnsteadySteps, "Timed steps differ much in length.",
		"Time more steps, or look for what differs between them."},
	{findings.RepeatsTime, "Repeats of one experiment differ in time.",
		"Take more repeats, on a GPU with locked clocks."},
	{findings.CheaperMethod, "Another method takes less time or memory.",
		"Use that method: it gives the same clipped sum."},
	{findings.PhaseOnly, "Of some bytes only the phase is known.",
		"Name tensors with `dpsight.tag`, or code with `dpsight.phase`."},
	{findings.Unattributed, "Some bytes have no owner.", "Name tensors with `dpsight.tag`."},
	{findings.AmbiguousTags, "Tags fit no single life of their address.", "Report it: it is a defect of dpsight."},
	{findings.NotConserved, "Replayed bytes are not known to equal torch's.",
		"Record again. Until then, quote figures with the residue."},
	{findings.PeakNotBrokenDown, "Torch's own peak is higher than the recorded one.",
		"Record more steps: `--record-steps`."},
	{findings.RepeatsPeak, "Repeats of one experiment differ in their peak.", "Look for what differs: `dpsight explain`."},
}

// FindingList lists all kinds for a terminal, a line each.
func FindingList() string {
	var b strings.Builder
	for _, kind := range FindingKinds {
		fmt.Fprintf(&b, "  %-21s  %s\n", kind.ID, kind.Means)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
