// Package steps finds the steps and phases of a training script in the marks of one process. Package steps is pure: it
// takes marks and returns steps and spans.
//
// # The tree
//
// Marks of the training thread (the one that updates weights) and of the autograd engine's threads become one tree
// of spans in order of k. The training thread waits while the engine runs, so their spans nest. Other threads (data
// loaders, replicas) are left out.
//
// # Steps
//
// If the script calls dpsight.step(), each call ends a step and nothing else does. Otherwise an update ends a step.
// An update is:
//   - an outermost optimizer step outside backward;
//   - a step of Opacus' optimizer that has an optimizer step inside (without one it was a physical batch, not a logical
//     step);
//   - a backward run that has optimizer steps inside (optimizer in backward); it ends at backward's end;
//   - a GradScaler step, with an optimizer step inside or not (skipped for an inf, it still counts);
//   - a compiled region that has a training backward inside but no optimizer step.
//
// An optimizer's step that only creates its state is no update. torch marks such a step of its own before it loads a
// state. A step before the first backward run also only creates state, if it is the only one of its optimizer there. A
// script that computes its gradients by other means steps again, or has no backward at all, and each of its steps is an
// update.
//
// The key of an update is its optimizer. Keys whose updates interleave form a cluster (GAN: discriminator and
// generator). In each cluster the key with the fewest updates ends steps, and of equals the one first seen last.
// Optimizers used one after the other form separate clusters. Without any update, each two-pass backward ends a
// step, or else each training backward.
//
// The boundary is the update's end. A zero_grad after the update belongs to the next step. Step 0 begins at the first
// training mark: a forward pass that trains, a backward run, an optimizer step, or a zero_grad right before one. Marks
// before step 0 belong to step -1. Marks after the last boundary belong to step N, after N complete steps; step N has
// no row.
//
// # Phases
//
// The innermost mark wins. In addition:
//   - The first forward call that trains begins forward, which lasts until backward begins. So the loss is part of it.
//     A zero_grad or a phase of the script interrupts forward without ending it.
//   - A forward call trains if gradients are on, its output is differentiable, and a backward run follows before the
//     next update, or if it lies inside an optimizer's closure. A call that an out-of-memory error or the process's
//     death cut short counts as training if it ran in training mode with gradients on.
//   - A call in eval mode that is followed by one in training mode before backward is eval. So is any other call that
//     does not train.
//   - A call with gradients on whose output is not differentiable, or without a tensor on the device (data transforms),
//     changes no phase.
//   - The mark around a forward call inside backward tells what it is: recompute, or a DP hook's sampler.
//   - A backward run with create_graph that accumulates nothing (gradient penalty, MAML) is part of forward.
//   - A two-pass backward is backward.norm, clip, backward.grad. Without Opacus' mark, a two-pass backward is
//     recognised as a run that keeps the graph, a zero_grad and another run, with no forward call or update in between.
//     A kept graph alone is no proof: multi-task scripts keep it too.
package steps
