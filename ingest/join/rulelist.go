package join

import (
	"slices"
	"strings"
)

// bucketOfGradients: DDP's reducer made the block and kept it. A reducer's bucket holds a copy of gradients, or the
// gradients themselves.
func bucketOfGradients(r *rules, u *unowned) (verdict, bool) {
	name, ok := reducerBucket(r.f, u.alloc)
	return verdict{category: gradients, evidence: lifetime, name: name}, ok
}

// untracedBlock: the block was alive before recording began, or was made in a gap between two windows of recorded
// steps.
func untracedBlock(_ *rules, u *unowned) (verdict, bool) {
	return verdict{category: untraced, evidence: lifetime}, u.untraced
}

// libraryWorkspace: the block is a workspace of cuBLAS or cuBLASLt; see [workspaceFinder].
func libraryWorkspace(_ *rules, u *unowned) (verdict, bool) {
	return verdict{category: workspace, evidence: lifetime}, u.whole && u.workspace
}

// castOfWeight: autocast kept the block until autocast's outermost context ended, and released it then.
func castOfWeight(r *rules, u *unowned) (verdict, bool) {
	if u.FreeRequestedSeq == 0 {
		return verdict{}, false
	}
	freedAt := r.f.context.markOf(r.f.device.Events, int(u.FreeRequestedSeq)-1)
	return verdict{category: autocastCache, evidence: lifetime}, r.f.context.dropping[freedAt]
}

// bornInDPCode: a DP hook made the block to compute norms or per-sample gradients, or clipping or accumulating did.
func bornInDPCode(_ *rules, u *unowned) (verdict, bool) {
	return verdict{category: clipTemporaries, evidence: u.byLifetime()}, u.birth.dp || u.family == clipFamily
}

// lossTarget: the block is the tensor with which a loss compares the model's output. No call of a model takes the
// tensor, so no tag calls it an input. A loss target was made outside all passes, and the loss's node in the graph held
// it.
func lossTarget(_ *rules, u *unowned) (verdict, bool) {
	return verdict{category: inputs, evidence: lifetime}, u.lossTarget
}

// forwardTemporary: the block was made and freed inside a forward pass or a recompute.
func forwardTemporary(_ *rules, u *unowned) (verdict, bool) {
	switch u.family {
	case forwardFamily, recomputeFamily, evalFamily:
		return verdict{category: forwardTemporaries, evidence: lifetime}, u.inside
	}
	return verdict{}, false
}

// keptOutput: a model returned the block as a result, and the script has kept the block beyond the model's next call.
func keptOutput(_ *rules, u *unowned) (verdict, bool) {
	return verdict{category: script, evidence: lifetime}, u.output && u.begin > u.AllocSeq
}

// activation: the block was made in a forward pass or in recompute, and outlives it. Once its graph is freed, or an
// untag says that autograd released the block, the script holds it and it is no longer an activation.
func activation(r *rules, u *unowned) (verdict, bool) {
	switch {
	case u.inside || u.family != forwardFamily && u.family != recomputeFamily:
		return verdict{}, false
	case u.begin > u.AllocSeq:
		return verdict{category: script, evidence: byPhase}, true
	case u.family == forwardFamily && u.FreeRequestedSeq == 0 && r.phaseEnd[u.span.Group] >= r.events:
		return verdict{category: activations, evidence: byPhase}, true // backward never began
	}
	return verdict{category: activations, evidence: lifetime, until: r.graphs.givenUp(u.alloc)}, true
}

// bornInBackward: the block is a gradient of an activation. A block of an unmatched bare step may instead be a kept
// gradient if it outlives backward, or belong to a hook, since a bare step does not show whether hooks ran.
func bornInBackward(r *rules, u *unowned) (verdict, bool) {
	v := verdict{category: activationGradients, evidence: u.byLifetime()}
	switch {
	case u.unmatched && !u.inside:
		v = verdict{category: other, evidence: byPhase}
	case u.unmatched && r.private:
		v.evidence = byPhase
	}
	return v, u.family == backwardFamily
}

// bornInUpdate: the block was made by the optimizer or for noise. The block is optimizer state if it outlives the next
// step too, or if the first step made it and nothing frees it.
func bornInUpdate(r *rules, u *unowned) (verdict, bool) {
	if u.family != updateFamily {
		return verdict{}, false
	}
	v := verdict{category: optimizerTemporaries, evidence: u.byLifetime()}
	next := u.span.Step + 1
	first := u.span.Step == 0 && u.FreeRequestedSeq == 0
	outlivesNext := next >= 1 && next < int64(len(r.stepEnd)) && endOf(u.FreeRequestedSeq) > r.stepEnd[next]
	if !u.inside && (first || outlivesNext) {
		v = verdict{category: optimizerState, evidence: lifetime}
	}
	if r.private && u.unmatched {
		v.evidence = byPhase
	}
	return v, true
}

// bornInSetup: the block was made in a set-up phase, while the script loaded data or made its model or optimizer, and
// outlives that phase.
func bornInSetup(_ *rules, u *unowned) (verdict, bool) {
	v := verdict{evidence: byPhase}
	switch u.family {
	case setupDataFamily:
		v.category = inputs
	case setupModelFamily:
		v.category = parameters
	case setupOptimizerFamily:
		v.category = optimizerState
	default:
		return v, false
	}
	return v, !u.inside
}

// bornInScript: the block was made in a recorded run, outside all passes and set-up calls, so the script's own code
// made it.
func bornInScript(r *rules, u *unowned) (verdict, bool) {
	applies := u.family == otherFamily && r.marked && !r.unphased(u)
	return verdict{category: script, evidence: u.byLifetime()}, applies
}

// anythingElse applies to every block.
func anythingElse(*rules, *unowned) (verdict, bool) {
	return verdict{category: other, evidence: byPhase}, true
}

// reducerBucket returns the name of the DDP reducer that made an allocation and kept it; ok is false if no reducer did.
func reducerBucket(f *facts, alloc int) (name uint32, ok bool) {
	if len(f.context.reducers) == 0 || f.untraced(alloc) {
		return 0, false
	}
	n := f.context.reducing[f.birthMark(alloc)]
	if n == 0 {
		return 0, false
	}
	made := f.context.reducers[n-1]
	return made.name, made.done > 0 && f.end(alloc) > f.marks.seqAt(made.done)
}

// lossNodes are parts of the names of autograd's nodes for losses.
var lossNodes = []string{"Loss", "CrossEntropy", "KlDiv"}

// isLossTarget reports whether the node of a loss held a block that was made outside all passes. If a script's model is
// no module, the script has no forward pass. If there is no forward pass, the loss's other input is also made outside
// all passes, so isLossTarget returns false.
func (r *rules) isLossTarget(u *unowned, owners []owner) bool {
	if !r.calls || u.untraced || u.family != otherFamily && u.family != setupDataFamily {
		return false
	}
	return slices.ContainsFunc(owners, func(o owner) bool {
		node := r.f.context.rank.Names[o.name]
		return o.category == activations &&
			slices.ContainsFunc(lossNodes, func(part string) bool { return strings.Contains(node, part) })
	})
}
