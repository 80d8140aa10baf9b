package findings

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/memory"
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

// OutputCopiesFacts are those of [OutputCopies]. What it saves is by a loss that is computed in so many parts.
type OutputCopiesFacts struct {
	SizeBytes     int64 // of the largest output
	Copies, Parts int
}

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
	copied := map[int]bool{} // at the peak, by block
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
			copied[i] = true
			held += a.RequestedBytes
		}
	}
	whole := x.d.AllocatedBytes
	if copies < 2 || !memory.AtLeast(held, whole, outputPercent) {
		return nil
	}
	f := x.finding(OutputCopies)
	x.of(&f, held)
	f.Facts = OutputCopiesFacts{SizeBytes: size, Copies: copies, Parts: lossChunks}
	x.line(&f, func(i int, a *schemas.Allocation) int64 {
		if !copied[i] {
			return 0
		}
		return a.RequestedBytes
	})
	x.savesWithout(&f, voids, x.looked)
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
