// Package steps finds the steps and phases of a training script in the marks of one process. It is pure: marks in,
// steps and spans out.
//
// # The tree
//
// Marks of the training thread (the one that updates weights) and of the autograd engine's threads become one tree of
// spans in order of k: the training thread waits while the engine runs, so their spans nest. Other threads (data
// loaders, replicas) are left out.
//
// # Steps
//
// Where the script calls dpsight.step(), each call ends a step and nothing else does. Otherwise an update ends one. An
// update is:
//   - an outermost optimizer step outside backward;
//
// - a step of Opacus' optimizer that has an optimizer step inside (without one it was a physical batch, not a logical
// step);
//   - a backward run that has optimizer steps inside (optimizer in backward); it ends at backward's end;
//   - a GradScaler step, with an optimizer step inside or not (skipped for an inf: a step all the same);
//   - a compiled region that has a training backward inside but no optimizer step.
//
// An optimizer's step that only makes its state is none: torch's own, before it loads a state, which is marked; and one
// before the first backward run that is the only one of its optimizer there. A script that makes its gradients by other
// means steps again, or has no backward at all, and each of its steps is an update.
//
// Its key is the optimizer. Keys whose updates interleave form a cluster (GAN: discriminator and generator); of each
// cluster the key with the fewest updates ends steps, of equals the one first seen last. Optimizers used one after the
// other are clusters of their own. Without any update, each two-pass backward ends a step, or else each training
// backward.
//
// The boundary is the update's end; a zero_grad after it belongs to the next step. Step 0 begins at the first training
// mark (a forward pass that trains, a backward run, an optimizer step; a zero_grad right before it included); what
// comes earlier is step -1. What comes after the last boundary is step N of N complete ones, and has no row of its own.
//
// # Phases
//
// The innermost mark wins. Besides: - the first forward call that trains begins forward, which lasts until backward
// begins: the loss is part of it, and a
//
//	zero_grad or a phase of the script interrupts it without ending it;
//
// - a forward call trains if gradients are on, its output is differentiable, and a backward run follows before the next
// update, or it lies inside an optimizer's closure; a call that an out-of-memory error or the process's death cut short
//
//	counts as training if it ran in training mode with gradients on;
//
// - a call in eval mode, followed by one in training mode before backward, is eval; so is any other call that does not
// train;
//   - a call with gradients on whose output is not differentiable, or with no tensor on the device (data transforms)
//     changes no phase;
//   - a forward call inside backward is told by the mark around it: recompute, or a DP hook's sampler;
//   - a backward run with create_graph that accumulates nothing (gradient penalty, MAML) is part of forward;
//
// - two-pass backward: backward.norm, clip, backward.grad. Without Opacus' mark: a run that keeps the graph, a
// zero_grad, another run, and no forward call or update in between. A kept graph alone is no proof: multi-task scripts
// keep it too.
package steps
