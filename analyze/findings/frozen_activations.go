package findings

import (
	"sort"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const frozenPercent = 5 // least percentage of the peak in activations of frozen layers before all trained layers

// frozenActivations looks for activations that autograd holds for untrained layers before the first trained one.
// Activations before the first trained layer serve only a gradient of the model's input. If no parameter gets a
// gradient, the script may want exactly the gradient of the input.
func (x *evidence) frozenActivations() []Finding {
	now, trained := x.stepOf(x.d.At.Event), x.trainedModules()
	if now == nil || len(trained) == 0 {
		return nil
	}
	first := int64(-1) // event at which a trained module first allocates, in the step with the peak
	inForward := func(a *schemas.Allocation) bool {
		return a.Phase == schemas.PhaseForward && now.From < a.AllocSeq && a.AllocSeq <= now.To
	}
	for _, a := range x.l.Allocs {
		if trained[a.Module] && inForward(a) && (first < 0 || a.AllocSeq < first) {
			first = a.AllocSeq
		}
	}
	before := map[int64]bool{} // modules that allocate before that event
	for _, a := range x.l.Allocs {
		if x.modules.ByID[a.Module] != nil && inForward(a) && a.AllocSeq < first {
			before[a.Module] = true
		}
	}
	frozen := func(i int) bool { // a trained module needs the part of a frozen module's output that it saves
		a, keeps := x.l.Allocs[i], x.moduleOf(i)
		return a.Phase == schemas.PhaseForward && before[a.Module] && keeps != nil && before[keeps.ID]
	}
	facts, held, count := HeldFacts{}, int64(0), x.counted(schemas.Activations)
	f := x.finding(FrozenActivations)
	x.line(&f, func(i int, a *schemas.Allocation) int64 {
		bytes := count(i, a)
		if bytes == 0 || !frozen(i) {
			return 0
		}
		held += bytes
		facts.Blocks++
		return bytes
	})
	if held == 0 || !memory.AtLeast(held, x.d.AllocatedBytes, frozenPercent) {
		return nil
	}
	x.of(&f, held)
	f.Facts = facts
	// Without a graph, each of these activations lives until the next layer has used it, so none is left when backward
	// begins.
	var voids []memory.Void
	passes := x.backwardPasses()
	for i, a := range x.l.Allocs {
		next := sort.Search(len(passes), func(k int) bool { return passes[k].From >= a.AllocSeq })
		if next == len(passes) || !before[a.Module] || a.Phase != schemas.PhaseForward {
			continue
		}
		for _, v := range x.heldBy(i, schemas.Activations) {
			if v.From = max(v.From, passes[next].From); v.From < v.To && frozen(i) {
				voids = append(voids, v)
			}
		}
	}
	x.savesWithout(&f, voids, x.looked, AtLeast)
	return []Finding{f}
}

// trainedModules are the modules that have a parameter with a gradient.
func (x *evidence) trainedModules() map[int64]bool {
	trained := map[int64]bool{}
	for i := range x.l.Allocs {
		for _, o := range x.l.Owners[i] {
			if o.Category != schemas.Gradients || o.Evidence != schemas.Tagged || o.Name == "" {
				continue
			}
			if m := x.modules.Enclosing(o.Name); m != nil {
				trained[m.ID] = true
			}
		}
	}
	return trained
}
