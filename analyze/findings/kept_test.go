package findings

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// beforeForward returns a run of kept gradients with a frozen encoder. In the last step, the encoder allocates the
// given bytes between the previous optimizer and the forward pass.
func beforeForward(bytes int64) schemas.Tables {
	in := fixture.KeptRun(false)
	last := &in.Steps[2]
	at := last.BeginSeq
	for _, seq := range seqs(&in) {
		if *seq > at {
			*seq += 2
		}
	}
	for i := range in.Phases {
		if f := &in.Phases[i]; f.Step == 2 {
			f.BeginSeq, f.EndSeq = max(f.BeginSeq, at+2), max(f.EndSeq, at+2)
		}
	}
	for i := range in.Steps[:2] {
		s := &in.Steps[i]
		in.Phases = append(in.Phases, schemas.Phase{Step: s.Step, Phase: schemas.PhaseOptimizer, BeginSeq: s.EndSeq,
			EndSeq: s.EndSeq})
	}
	id := int64(len(in.Allocations) + 1)
	in.Allocations = append(in.Allocations, schemas.Allocation{AllocID: id, Address: 1 << 40, RequestedBytes: bytes,
		BlockBytes: bytes, AllocSeq: at + 1, FreeRequestedSeq: at + 2})
	in.Owners = append(in.Owners, schemas.Owner{AllocID: id, Category: schemas.Other, BeginSeq: at + 1,
		EndSeq: at + 2, Evidence: schemas.Lifetime})
	d := &in.Report.Devices[0]
	d.PeakSeq, d.PeakAllocatedBytes = at+1, 200+bytes
	d.TorchPeakAllocatedBytes, d.InstrumentedPeakSeq = nil, new(at+1)
	return in
}

// seqs returns pointers to all event numbers in the tables of a run.
func seqs(in *schemas.Tables) (out []*int64) {
	for i := range in.Allocations {
		out = append(out, &in.Allocations[i].AllocSeq, &in.Allocations[i].FreeRequestedSeq)
	}
	for i := range in.Owners {
		out = append(out, &in.Owners[i].BeginSeq, &in.Owners[i].EndSeq)
	}
	for i := range in.Phases {
		out = append(out, &in.Phases[i].BeginSeq, &in.Phases[i].EndSeq)
	}
	for i := range in.Steps {
		out = append(out, &in.Steps[i].BeginSeq, &in.Steps[i].EndSeq)
	}
	for i := range in.Gradients {
		out = append(out, &in.Gradients[i].Seq)
	}
	return out
}

// The kept gradients also count at a peak between the optimizer and the next forward pass. Freeing them lowers this
// peak.
func TestKeptGradientsBeforeForward(t *testing.T) {
	f := theFinding(t, inspected(beforeForward(1000)), KeptGradients)
	if f == nil || f.SavesBytes == nil || *f.Bytes != 100 || *f.SavesBytes != 100 ||
		factsOf[KeptGradientsFacts](t, f).AtPeakBytes != 100 {
		t.Errorf("%+v", f)
	}
}

// A zero_grad that keeps .grad may write to it between the optimizer and the forward pass. After this zero_grad, .grad
// is still held for nothing.
func TestKeptGradientsAfterZeroing(t *testing.T) {
	in := fixture.KeptRun(false)
	for i := range in.Steps {
		s := &in.Steps[i]
		in.Phases = append(in.Phases, schemas.Phase{Step: s.Step, Phase: schemas.PhaseOptimizer, BeginSeq: s.EndSeq - 1,
			EndSeq: s.EndSeq - 1})
		in.Gradients = append(in.Gradients, schemas.GradientWrite{Seq: s.EndSeq, Address: in.Gradients[0].Address})
	}
	slices.SortFunc(in.Gradients, func(a, b schemas.GradientWrite) int { return int(a.Seq - b.Seq) })
	if f := theFinding(t, inspected(in), KeptGradients); f == nil || f.SavesBytes == nil || *f.SavesBytes != 100 {
		t.Errorf("%+v", f)
	}
}
