package findings

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const scriptPercent = 5 // of the peak, tensors of the script that are there from before the first step to the last

// ScriptTensorsFacts are those of [ScriptTensors]: the names that keep most of the bytes.
type ScriptTensorsFacts struct{ Names []NamedBytes }

// scriptTensors looks for what names of the script keep from before the first step to the end of the last: a data set,
// or what set-up has left. No setting of a step changes that.
func (x *evidence) scriptTensors() []Finding {
	first, last := int64(-1), int64(-1)
	for i := range x.in.Steps {
		if s := &x.in.Steps[i]; s.Rank == x.p.Rank && s.Device == x.p.Device {
			if first < 0 || s.BeginSeq < first {
				first = s.BeginSeq
			}
			last = max(last, s.EndSeq)
		}
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

// keeper is the name that keeps block i at the peak; empty where C++ does, or where none is known.
func (x *evidence) keeper(i int) string {
	if h := x.holders.Of(x.l.Allocs[i]); h != nil && !slices.Contains([]schemas.HolderKind{schemas.HeldByPython,
		schemas.HeldByGraph}, h.Kind) {
		return ""
	}
	return x.holder(i, x.d.At.Event)
}
