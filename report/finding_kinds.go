package report

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/analyze/findings"
)

// A FindingKind explains one kind of finding and what to do about it. A finding of a run has its own words, with the
// line, the bytes and the change.
type FindingKind struct{ ID, Means, Do string }

// FindingKinds are all kinds of findings in the order of docs/findings.md: memory, time, and the recording itself.
var FindingKinds = []FindingKind{
	{findings.Growth, "Memory grows from step to step.", "Find what keeps the blocks that it names, and release it."},
	{findings.EvaluationGraphs, "Each evaluation pass keeps its autograd graph.", "Evaluate under `torch.no_grad()`."},
	{findings.KeptGraphs, "A stored tensor keeps the graph of its step.",
		"Keep `x.detach()`, or `x.item()` of a number."},
	{findings.GradientGraphs, "Gradients have a graph, and keep it alive.",
		"Remove `create_graph=True`, or drop the gradients after the step."},
	{findings.ViewKeepsBase, "A small view keeps a large block alive.", "Keep a copy of the part: `.clone()`."},
	{findings.KeptException, "A caught exception keeps its functions' variables.",
		"Keep `str(error)`, and retry after the `except` block."},
	{findings.RetainedGraph, "Backward builds a graph that nothing uses.",
		"Compute first derivatives without `create_graph=True`."},
	{findings.WholeCheckpoint, "One checkpoint recomputes all activations at once.",
		"Checkpoint the model in several parts."},
	{findings.FrozenActivations, "Autograd keeps activations of frozen layers.",
		"Run them under `torch.no_grad()`, or give them an input that requires no gradient."},
	{findings.AdapterDropout, "The dropout of LoRA adapters keeps activations.", "Set `lora_dropout=0`."},
	{findings.EarlierGraph, "The graph of an earlier step is still alive.",
		"Drop the result of a step before the next forward pass."},
	{findings.PreviousValue, "The old value stays until the next one is computed.",
		"Delete the variable at the end of the loop's body."},
	{findings.ScriptTensors, "The script keeps tensors through all steps.",
		"Delete what no step uses. Keep on the host what each step uses only a part of."},
	{findings.UntrainedGradients, "Parameters that no optimizer updates get gradients.",
		"Call `requires_grad_(False)` on them."},
	{findings.IdleModels, "A model is on the GPU while nothing calls it.", "Move it to the host while it is idle."},
	{findings.BucketCopies, "DistributedDataParallel holds every gradient twice.",
		"Pass `gradient_as_bucket_view=True`."},
	{findings.AutocastCache, "Autocast keeps low-precision copies of weights.",
		"Pass `cache_enabled=False`, or load the weights in low precision."},
	{findings.OOM, "A request for memory failed.",
		"Hold less at that moment: `dpsight breakdown --at oom` lists what held memory."},
	{findings.Cached, "Torch reserved memory that it did not use.",
		"Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`."},
	{findings.Fragmentation, "Torch reserved more: its free memory lay in pieces.",
		"Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`."},
	{findings.KeptGradients, "Gradients of the last step stay during forward.",
		"Call `zero_grad(set_to_none=True)` right after the optimizer's step."},
	{findings.SharedHooks, "Autograd holds most of what DP hooks hold.",
		"Nothing: this memory would be held without the hooks too."},
	{findings.OwnHooks, "DP hooks hold memory that nothing else holds.",
		"Let the hooks hold the tensors that autograd holds. Book-keeping needs its own."},
	{findings.StreamWorkspaces, "cuBLAS has workspaces on several streams.",
		"Run matrix products on one stream, or set `CUBLAS_WORKSPACE_CONFIG`."},
	{findings.ThreadWorkspaces, "cuBLAS has workspaces for several threads.",
		"Run backward in the calling thread, or set `CUBLAS_WORKSPACE_CONFIG`."},
	{findings.PerSample, "Per-sample gradients are large.",
		"Use a method that never holds all of them: ghost, fast gradient clipping or book-keeping."},
	{findings.PerSampleEmbedding, "Per-sample gradients of an embedding are large.",
		"Compute the norm from token ids and output gradients, as ghost clipping does."},
	{findings.ClipTemporaries, "Norms and clipping need large temporaries.",
		"Compute norms by tiles, or use smaller physical batches."},
	{findings.OutputCopies, "Head and loss hold copies of the output.",
		"Compute head and loss in parts, or with a fused kernel."},
	{findings.OptimizerPeak, "The optimizer's update needs large temporaries.", "Pass `foreach=False` or `fused=True`."},
	{findings.Slack, "Blocks are larger than requested.",
		"Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`."},
	{findings.RuleOfThumb, "The usual sum of parts is not the peak.",
		"Nothing: the rule of thumb does not fit this run."},
	{findings.HostGrowth, "Memory on the host grows from step to step.",
		"Find what the phase keeps: `dpsight host` lists all phases."},
	{findings.Throttled, "The GPU's clock was slowed in timed steps.",
		"Compare only runs with the same limits, or lock the clocks."},
	{findings.OtherProcess, "Another process used the GPU in timed steps.", "Measure again on a GPU of your own."},
	{findings.NotIsolated, "The GPU may not have been free before the run.", "Measure again on a free GPU."},
	{findings.UnsteadySteps, "Step times vary much.",
		"Time more steps, or look for what differs between them."},
	{findings.RepeatsTime, "Repeats of one experiment differ in time.",
		"Take more repeats, on a GPU with locked clocks."},
	{findings.CheaperMethod, "Another method takes less time or memory.",
		"Use that method: it gives the same clipped sum."},
	{findings.PhaseOnly, "Only the phase is known of some bytes.",
		"Name tensors with `dpsight.tag`, or code with `dpsight.phase`."},
	{findings.Unattributed, "Some bytes have no owner.", "Name tensors with `dpsight.tag`."},
	{findings.AmbiguousTags, "Tags fit no single block at their address.", "Report it: it is a bug in dpsight."},
	{findings.NotConserved, "The replay and torch's own counters differ.",
		"Record again. Until then, quote figures with the residue."},
	{findings.PeakNotBrokenDown, "Torch's own peak is higher than the recorded one.",
		"Record more steps: `--record-steps`."},
	{findings.RepeatsPeak, "Repeats of one experiment differ in their peak.", "Look for what differs: `dpsight explain`."},
}

// FindingList lists all kinds for a terminal, one a line.
func FindingList() string {
	var b strings.Builder
	for _, kind := range FindingKinds {
		fmt.Fprintf(&b, "  %-21s  %s\n", kind.ID, kind.Means)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
