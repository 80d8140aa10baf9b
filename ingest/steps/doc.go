// Package steps finds the steps and phases of a training script in the marks of one process. Package steps takes marks
// and returns steps and spans, and reads no files.
//
// # The tree
//
// Marks of the training thread (the one that updates weights) and of the autograd engine's threads become one tree of
// spans in order of k. The training thread waits while the engine runs, so the spans of both nest. The tree leaves out
// all other threads (data loaders, replicas).
//
// # Steps
//
// If the script calls dpsight.step(), only these calls end steps. Otherwise an update ends a step. An update is:
//   - an outermost optimizer step outside backward;
//   - a step of Opacus' optimizer that has an optimizer step inside (without one, the step only added a physical
//     batch);
//   - a backward run that has optimizer steps inside (optimizer in backward); the update ends at backward's end;
//   - a GradScaler step, with or without an optimizer step inside (a step that was skipped because of an inf still
//     counts);
//   - a compiled region that has a training backward inside but no optimizer step.
//
// An optimizer's step that only creates its state is no update. torch itself makes such a step before it loads a state,
// and the agent's mark says so. A step before the first backward run also only creates state, if its optimizer makes no
// other step before that run. If a script computes gradients without backward, its optimizer steps more than once, and
// each of its steps is an update.
//
// The key of an update is its optimizer. Keys whose updates interleave form a cluster (GAN: discriminator and
// generator). In each cluster the key with the fewest updates ends steps. Of several keys with equally few updates, it
// is the key whose first update comes last. Optimizers that are used one after the other form separate clusters.
// Without any update, each two-pass backward ends a step, or else each training backward.
//
// A step ends at the end of the update. A zero_grad after the update belongs to the next step. Step 0 begins at the
// first training mark: a forward pass that trains, a backward run, an optimizer step, or a zero_grad right before one.
// Marks before step 0 belong to step -1. After N complete steps, later marks belong to step N, which has no row.
//
// # Phases
//
// The innermost mark decides the phase. In addition:
//   - The first forward call that trains begins the phase forward, which lasts until backward begins. So the loss is
//     part of forward. A zero_grad or a phase of the script interrupts forward without ending it.
//   - A forward call trains if gradients are on, its output is differentiable, and a backward run follows before the
//     next update, or if it lies inside an optimizer's closure. A call that an out-of-memory error or the process's
//     death cut short counts as training if it ran in training mode with gradients on.
//   - A call in eval mode that is followed by a call in training mode before backward is the phase eval. So is any
//     other call that does not train.
//   - A call with gradients on whose output is not differentiable, or without a tensor on the device (data transforms),
//     changes no phase.
//   - The mark around a forward call inside backward shows what the call is: recompute, or a DP hook's computation.
//   - A backward run with create_graph that accumulates nothing (gradient penalty, MAML) is part of forward.
//   - A two-pass backward has the phases backward.norm, clip and backward.grad. Without Opacus' mark, a two-pass
//     backward is recognised as a run that keeps the graph, a zero_grad and another run, with no forward call or update
//     in between. A kept graph alone is no proof, since multi-task scripts keep their graphs, too.
package steps
