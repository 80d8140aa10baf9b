package grouping

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// If a user requests a moment by its phase, the phase's name stands for its whole family, since a method with two
// passes has no phase "backward". If a run lacks the moment, the result is an error.
func TestMomentOfAFamily(t *testing.T) {
	in := fixture.Hooked()
	in.Phases = append(in.Phases[:2:2], schemas.Phase{Phase: schemas.PhaseBackwardNorm, BeginSeq: 4, EndSeq: 5,
		PeakBytes: new(int64(1536)), PeakSeq: 5},
		schemas.Phase{Phase: schemas.PhaseBackwardGrad, BeginSeq: 5, EndSeq: 6, PeakBytes: new(int64(1024)), PeakSeq: 6})
	for phase, want := range map[string]string{schemas.PhaseBackward: schemas.PhaseBackwardNorm,
		schemas.PhaseBackwardGrad: schemas.PhaseBackwardGrad,
		"setup":                   schemas.PhaseSetupModel} {
		if run, err := memory.Breakdown(in, memory.At{Phase: phase}); err != nil || *run.Devices[0].At.Phase != want {
			t.Errorf("%s: %+v, %v, want %s", phase, run.Devices, err, want)
		}
	}
	var missing *memory.NoMomentError
	run, err := memory.Breakdown(in, memory.At{Phase: schemas.PhaseClip})
	if !errors.As(err, &missing) || missing.RunID != "run" ||
		!strings.HasPrefix(run.Missing, `no phase "clip" there on cuda:0; there are `) {
		t.Errorf("%q, %v", run.Missing, err)
	}
	by, err := BreakdownBy(in, memory.At{OOM: new(int64(1))}, By{Dimensions: []Dimension{DimensionPhase}})
	if !errors.As(err, &missing) || by.Missing != "cuda:0 did not run out of memory" {
		t.Errorf("%q, %v", by.Missing, err)
	}
}
