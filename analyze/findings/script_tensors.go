package findings

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const scriptPercent = 5 // least percentage of the peak in the script's tensors that live from first to last step

// ScriptTensorsFacts are the facts of a [ScriptTensors] finding: the names that keep most of the bytes.
type ScriptTensorsFacts struct{ Names []NamedBytes }

// fewSteps is how many steps are needed to distinguish blocks that the first step keeps for good from blocks that it
// leaves only until the next step.
const fewSteps = 3

// scriptTensors looks for tensors that variables of the script keep from the first step, or earlier, to the end of the
// last step: a data set, leftovers of set-up, or a cache that the first forward pass fills.
func (x *evidence) scriptTensors() []Finding {
	var steps []*schemas.Step
	for i := range x.in.Steps {
		s := &x.in.Steps[i]
		if s.Rank == x.p.Rank && s.Device == x.p.Device && s.EndSeq > s.BeginSeq { // the step has events on this device
			steps = append(steps, s)
		}
	}
	if len(steps) == 0 {
		return nil
	}
	slices.SortFunc(steps, func(a, b *schemas.Step) int { return cmp.Compare(a.BeginSeq, b.BeginSeq) })
	first, last := steps[0].BeginSeq, steps[len(steps)-1].EndSeq
	if len(steps) >= fewSteps {
		first = steps[0].EndSeq
	}
	count := x.counted(schemas.Script, schemas.Inputs)
	kept := func(i int, a *schemas.Allocation) int64 {
		if a.AllocSeq > first || !a.LiveAt(last) || x.viewed(a) > 0 || x.exceptionOf(a) != nil || x.keeper(i) == "" {
			return 0
		}
		return count(i, a)
	}
	names, held := map[string]int64{}, int64(0)
	var voids []memory.Void
	for i, a := range x.l.Allocs {
		if bytes := kept(i, a); bytes > 0 {
			held += bytes
			names[x.keeper(i)] += bytes
			voids = append(voids, memory.Void{From: a.AllocSeq, To: 1 << 62, Bytes: a.BlockBytes})
		}
	}
	if held == 0 || !memory.AtLeast(held, x.d.AllocatedBytes, scriptPercent) {
		return nil
	}
	f := x.finding(ScriptTensors)
	x.of(&f, held)
	f.Facts = ScriptTensorsFacts{Names: largest(names, held)}
	x.line(&f, kept)
	x.savesWithout(&f, voids, x.looked, AtMost)
	return []Finding{f}
}

// keeper returns the script's name that keeps block i at the peak; "" if only C++ keeps the block, or if no name is
// known.
func (x *evidence) keeper(i int) string {
	if h := x.holders.Of(x.l.Allocs[i]); h != nil && !slices.Contains([]schemas.HolderKind{schemas.HeldByPython,
		schemas.HeldByGraph}, h.Kind) {
		return ""
	}
	return x.holder(i, x.d.At.Event)
}
