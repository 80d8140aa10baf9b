package findings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const (
	outputPercent = 5 // of the peak, copies of the model's output
	lossChunks    = 8 // of a loss that is computed in parts
)

// dependable are the categories that a copy of an output may be in: what belongs to a parameter is none.
var dependable = []schemas.Category{schemas.Activations, schemas.HookActivations, schemas.StoredBackprops,
	schemas.ClipTemporaries, schemas.Outputs,
	schemas.ActivationGradients, schemas.ForwardTemporaries, schemas.Other}

// outputs looks for several copies of the model's output at the peak: the logits of a language model, their softmax,
// its gradient, each again where the loss computes in fp32. A copy is a block of the output's size, or twice that, that
// the loss, the head, the model itself or no module made.
func (x *evidence) outputs() []Finding {
	var size int64
	for i, a := range x.l.Allocs {
		if slices.ContainsFunc(x.l.Owners[i], func(o *schemas.Owner) bool {
			return o.Category == schemas.Outputs && o.Evidence == schemas.Tagged
		}) {
			size = max(size, a.RequestedBytes)
		}
	}
	if size == 0 {
		return nil
	}
	copies, held := 0, int64(0)
	var voids []memory.Void
	for i, a := range x.l.Allocs {
		if a.RequestedBytes != size && a.RequestedBytes != 2*size || !x.ofLoss(i) {
			continue
		}
		end := a.FreeRequestedSeq
		if end == 0 {
			end = 1 << 62
		}
		voids = append(voids, memory.Void{From: a.AllocSeq, To: end, Bytes: a.RequestedBytes -
			a.RequestedBytes/lossChunks})
		if a.LiveAt(x.d.At.Event) {
			copies++
			held += a.RequestedBytes
		}
	}
	whole := x.d.AllocatedBytes
	if copies < 2 || !memory.AtLeast(held, whole, outputPercent) {
		return nil
	}
	f := x.finding(OutputCopies)
	x.of(&f, held)
	f.bytes("largest output", size, "owners.parquet: category outputs, tagged; allocations.parquet: requested_bytes")
	f.count("blocks of its size, or twice that, at "+x.peak, copies, fmt.Sprintf("allocations.parquet: after event "+
		"%d, of the loss, the head, the model itself or no module", x.d.At.Event))
	f.bytes("in them", held, "the same")
	x.peakFigure(&f)
	f.Sentence = fmt.Sprintf("At %[1]s, %[2]s, %[3]d blocks of the size of the model's output (%[4]s) or twice that "+
		"are held by head and loss: %[5]s, %[6]s of %[1]s.",
		x.peak, memory.When(&x.d.At), copies, prose.MiB(size), prose.MiB(held),
		prose.Share(float64(held), float64(whole)))
	f.Change = "compute head and loss in parts of the tokens, or by a fused kernel that never holds all logits and " +
		"their gradients"
	x.savesWithout(&f, voids, x.looked, fmt.Sprintf("the loss is computed in %[1]d parts, so that 1/%[1]d of each "+
		"such block is held at a time; all other allocations stay as they are", lossChunks))
	return []Finding{f}
}

// ofLoss reports whether block i may be a copy of the output.
func (x *evidence) ofLoss(i int) bool {
	a := x.l.Allocs[i]
	for _, o := range x.l.Owners[i] {
		if !slices.Contains(dependable, o.Category) {
			return false
		}
	}
	m := x.modules.ByID[a.Module]
	return a.AllocSeq > 0 && (m == nil || m.Path == "" || m.Role == roleHead || strings.Contains(m.Class, "Loss"))
}

const roleHead = "head"
