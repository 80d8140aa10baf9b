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

// castOfWeight: autocast kept the block until its outermost context ended, and let go of it then.
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

// lossTarget: the block is the tensor that a loss compares with. No call of a model takes it, so no tag says that it is
// an input. A loss target was made outside every pass, and the loss's own node in the graph held it.
func lossTarget(_ *rules, u *unowned) (verdict, bool) {
	return verdict{category: inputs, evidence: lifetime}, u.lossTarget
}

// forwardTemporary: the block was made in a forward pass, recomputed or not, and freed inside it.
func forwardTemporary(_ *rules, u *unowned) (verdict, bool) {
	switch u.family {
	case forwardFamily, recomputeFamily, evalFamily:
		return verdict{category: forwardTemporaries, evidence: lifetime}, u.inside
	}
	return verdict{}, false
}

// keptOutput: a model gave the block as a result, and the script has kept it beyond the model's next call.
func keptOutput(_ *rules, u *unowned) (verdict, bool) {
	return verdict{category: script, evidence: lifetime}, u.output && u.begin > u.AllocSeq
}

// activation: the block was made in a forward pass or in recompute, and outlives it. Once its graph is given up, or
// autograd was seen to let go of it, the script holds the block, and it is no activation any more.
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

// bornInBackward: the block is a gradient of an activation. A block of an unmatched bare step may be a kept gradient if
// it outlives backward, and a hook's if hooks ran, which a bare step does not show.
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

// bornInUpdate: the optimizer or the noise made the block. Such a block is optimizer state if it outlives the next step
// too, or if the first step made it and nothing frees it.
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

// bornInSetup: the block was made while the script loaded data, or made its model or optimizer, and outlives that.
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

// bornInScript: the block was made in a recorded run, outside every pass and every call that sets something up: the
// script's own code made it.
func bornInScript(r *rules, u *unowned) (verdict, bool) {
	applies := u.family == otherFamily && r.marked && !r.unphased(u)
	return verdict{category: script, evidence: u.byLifetime()}, applies
}

// anythingElse applies to every block.
func anythingElse(*rules, *unowned) (verdict, bool) {
	return verdict{category: other, evidence: byPhase}, true
}

// reducerBucket is the name of the reducer that made an allocation and kept it; false = none did.
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

// isLossTarget reports whether the node of a loss held a block that was made outside every pass. A script whose model
// is no module has no forward pass. In such a script the loss's own input is also made outside every pass, so the
// target cannot be determined.
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
