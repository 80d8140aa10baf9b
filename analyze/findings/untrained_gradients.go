package findings

import (
	"strings"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const untrainedPercent = 5 // least percentage of the peak in gradients of parameters that no optimizer updates

// untrainedGradients looks for gradients of parameters without optimizer state, while other parameters have state.
// Parameters without state were left out of the optimizer, but autograd still computes their gradients. Only the state
// shows which parameters an optimizer updates. So there is no finding if an optimizer may keep state for only a part of
// its parameters: if several optimizers run in a step, if several models or ranks are trained, or if all state has one
// name, as with LBFGS.
func (x *evidence) untrainedGradients() []Finding {
	if x.updatesOften() || len(x.in.Report.Devices) > 1 {
		return nil
	}
	trained := map[string]bool{} // names of parameters that have optimizer state
	for i := range x.l.Allocs {
		for _, o := range x.l.Owners[i] {
			if o.Category == schemas.OptimizerState && o.Evidence == schemas.Tagged && o.Name != "" {
				if rootOf(o.Name) != "" {
					return nil
				}
				trained[o.Name[:max(strings.LastIndexByte(o.Name, '.'), 0)]] = true // cuts off the name of the state
			}
		}
	}
	if len(trained) < 2 {
		return nil
	}
	untrained := func(i int) bool {
		for _, o := range x.l.Owners[i] {
			if o.Category == schemas.Gradients && o.Evidence == schemas.Tagged && o.Name != "" {
				return !trained[o.Name] && rootOf(o.Name) == ""
			}
		}
		return false
	}
	count, facts, held := x.counted(schemas.Gradients), HeldFacts{}, int64(0)
	f := x.finding(UntrainedGradients)
	x.line(&f, func(i int, a *schemas.Allocation) int64 {
		bytes := count(i, a)
		if bytes == 0 || !untrained(i) {
			return 0
		}
		held += bytes
		facts.Blocks++
		return bytes
	})
	if held == 0 || !memory.AtLeast(held, x.d.AllocatedBytes, untrainedPercent) {
		return nil
	}
	x.of(&f, held)
	f.Facts = facts
	var voids []memory.Void
	for i := range x.l.Allocs {
		if untrained(i) {
			voids = append(voids, x.heldBy(i, schemas.Gradients)...)
		}
	}
	x.savesWithout(&f, voids, x.looked, AtLeast)
	return []Finding{f}
}

// updatesOften reports whether an optimizer phase occurs more than once in some step.
func (x *evidence) updatesOften() bool {
	updates := map[int64]int{}
	for i := range x.in.Phases {
		p := &x.in.Phases[i]
		if p.Rank != x.p.Rank || p.Device != x.p.Device || p.Phase != schemas.PhaseOptimizer {
			continue
		}
		if updates[p.Step]++; updates[p.Step] > 1 {
			return true
		}
	}
	return false
}
