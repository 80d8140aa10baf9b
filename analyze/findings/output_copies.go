package findings

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const (
	outputPercent = 5 // least percentage of the peak in copies of the model's output
	lossChunks    = 8 // number of parts in which the advised loss is computed
)

// dependable lists the categories under which a copy of the model's output may count. A block of the same size under
// another category, such as parameters, is no copy.
var dependable = []schemas.Category{schemas.Activations, schemas.HookActivations, schemas.StoredBackprops,
	schemas.ClipTemporaries, schemas.Outputs,
	schemas.ActivationGradients, schemas.ForwardTemporaries, schemas.Other}

// OutputCopiesFacts are the facts of an [OutputCopies] finding. The saving assumes that the script computes its loss in
// Parts parts.
type OutputCopiesFacts struct {
	SizeBytes     int64 // bytes of the largest output
	Copies, Parts int
}

// outputs looks for several copies of the model's output at the peak: the logits of a language model, their softmax and
// its gradient, each once more if the loss computes in fp32. A copy is a block of the output's size, or of twice that
// size. The copy must be made in the step of the peak, or in the evaluation pass of a peak outside all steps, by the
// loss, the head, the model itself or no module. Something else keeps a block from an earlier step, and computing the
// loss in parts does not free it. If no module made the output, there is no head.
func (x *evidence) outputs() []Finding {
	size := x.outputBytes()
	if size == 0 {
		return nil
	}
	copies, held := 0, int64(0)
	copied := map[int]bool{} // number of copies at the peak, by block
	var voids []memory.Void
	now := x.stepOf(x.d.At.Event)
	for i, a := range x.l.Allocs {
		if a.RequestedBytes != size && a.RequestedBytes != 2*size || !x.ofLoss(i) {
			continue
		}
		step := x.stepOf(a.AllocSeq)
		if step == nil { // neither a step nor a pass made the block
			continue
		}
		// If a block outlives its step, something other than the head and the loss keeps it.
		end := step.To + 1
		if a.FreeRequestedSeq > 0 {
			end = min(end, a.FreeRequestedSeq)
		}
		voids = append(voids, memory.Void{From: a.AllocSeq, To: end, Bytes: a.RequestedBytes -
			a.RequestedBytes/lossChunks})
		if a.LiveAt(x.d.At.Event) && now != nil && *step == *now {
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
	x.savesWithout(&f, voids, x.looked, AtMost)
	return []Finding{f}
}

// outputBytes returns the size of the model's largest output in the step of the peak; 0 if unknown. If a script calls
// parts of a model, or several models, one after another, the output of the last part counts as the model's.
func (x *evidence) outputBytes() (size int64) {
	now := x.stepOf(x.d.At.Event)
	if now == nil {
		return 0
	}
	var last, by int64
	var outputs []*schemas.Allocation
	for i, a := range x.l.Allocs {
		m := x.modules.ByID[a.Module]
		if m == nil || a.AllocSeq <= now.From || a.AllocSeq > now.To ||
			!slices.ContainsFunc(x.l.Owners[i], func(o *schemas.Owner) bool {
				return o.Category == schemas.Outputs && o.Evidence == schemas.Tagged
			}) {
			continue
		}
		outputs = append(outputs, a)
		if a.AllocSeq > last && !strings.Contains(m.Class, "Loss") {
			last, by = a.AllocSeq, a.Module
		}
	}
	for _, a := range outputs {
		if a.Module == by {
			size = max(size, a.RequestedBytes)
		}
	}
	return size
}

// stepOf returns the evaluation pass that an event belongs to, or else the step; nil if the event is in neither. The
// events after the completed steps are the step in which the run died.
func (x *evidence) stepOf(seq int64) *memory.Span {
	if x.within == nil {
		x.within = []memory.Span{}
		for i := range x.in.Phases {
			if f := &x.in.Phases[i]; f.Rank == x.p.Rank && f.Device == x.p.Device && f.Phase == schemas.PhaseEval {
				x.within = append(x.within, memory.Span{From: f.BeginSeq, To: f.EndSeq})
			}
		}
		last := int64(0)
		for i := range x.in.Steps {
			if s := &x.in.Steps[i]; s.Rank == x.p.Rank && s.Device == x.p.Device {
				x.within = append(x.within, memory.Span{From: s.BeginSeq, To: s.EndSeq})
				last = max(last, s.EndSeq)
			}
		}
		x.within = append(x.within, memory.Span{From: last, To: 1 << 62})
	}
	for i := range x.within {
		if s := &x.within[i]; s.From < seq && seq <= s.To {
			return s
		}
	}
	return nil
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
	return a.AllocSeq > 0 && (m == nil || m.Path == "" || rootOf(m.Path) == m.Path || m.Role == roleHead ||
		strings.Contains(m.Class, "Loss"))
}

const roleHead = "head"
