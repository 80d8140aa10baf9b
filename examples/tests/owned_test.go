package examples_test

import (
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// passing lists the categories whose blocks serve a single step.
var passing = map[schemas.Category]bool{schemas.Activations: true, schemas.HookActivations: true,
	schemas.StoredBackprops: true,
	schemas.ClipTemporaries: true, schemas.ActivationGradients: true, schemas.ForwardTemporaries: true,
	schemas.OptimizerTemporaries: true}

// unseen lists the sizes of large blocks that are known only by their phase. The only such block is the batch of the
// script vae's only validation pass: the pass comes after the last instrumented step, and no earlier block resembles
// the batch.
var unseen = map[string]int64{"accuracy-held-out-fixed-kinds/vae": 96 * 3 * 128 * 128 * 4}

// For every block of more than 1 MiB that is live at a recording's peak, dpsight knows the category by more than the
// phase of birth. A block that lives beyond the ends of two steps has no category whose blocks serve only one step.
func TestLargeBlocksAreKnown(t *testing.T) {
	const large = 1 << 20
	looked := 0
	for name, e := range recordings(t) {
		owners := map[int64][]*schemas.Owner{}
		for i := range e.in.Owners {
			o := &e.in.Owners[i]
			owners[o.AllocID] = append(owners[o.AllocID], o)
		}
		verdict := device(t, e)
		peak := verdict.PeakSeq
		if verdict.InstrumentedPeakSeq != nil {
			peak = *verdict.InstrumentedPeakSeq
		}
		for i := range e.in.Allocations {
			a := &e.in.Allocations[i]
			if a.RequestedBytes <= large {
				continue
			}
			if a.LiveAt(peak) {
				looked++
				if o := counted(owners[a.AllocID], peak); o.Evidence == schemas.ByPhase &&
					a.RequestedBytes != unseen[name] {
					t.Errorf("%s: %d bytes at the peak, born in %s, are %s by phase only", name, a.RequestedBytes,
						a.Phase, o.Category)
				}
			}
			if seq, ok := secondEnd(e.in.Steps, a); ok {
				looked++
				if o := counted(owners[a.AllocID], seq); passing[o.Category] {
					t.Errorf("%s: %d bytes born in %s of step %d are %s (%s) at the end of the next", name,
						a.RequestedBytes, a.Phase, a.Step,
						o.Category, o.Evidence)
				}
			}
		}
	}
	if looked < 10_000 {
		t.Errorf("only %d blocks were looked at", looked)
	}
}

// counted returns the owner under which a block counts just after an event.
func counted(owners []*schemas.Owner, seq int64) (first *schemas.Owner) {
	for _, o := range owners {
		if o.HoldsAt(seq) && (first == nil || schemas.Precedence(o.Category) < schemas.Precedence(first.Category)) {
			first = o
		}
	}
	return first
}

// secondEnd returns the last event of the second step at whose end a block is live.
func secondEnd(steps []schemas.Step, a *schemas.Allocation) (seq int64, ok bool) {
	ends := 0
	for _, s := range steps {
		if a.LiveAt(s.EndSeq) {
			if ends++; ends == 2 {
				return s.EndSeq, true
			}
		}
	}
	return 0, false
}
