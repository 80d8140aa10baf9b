package livetest_test

import (
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// For every block that a library of differential privacy keeps, dpsight knows the owner by more than the phase of
// birth, in training and in the bare evaluation after it. The test uses small libraries that are built like fastDP and
// private-transformers.
func TestWhatLibrariesKeepHasAnOwner(t *testing.T) {
	python := testkit.Python(t)
	keeping, err := filepath.Abs("../agent/tests/cases/keeping.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode string
		rest bool
		born map[schemas.Category]string // a phase in which some block of the category was born
	}{
		{"fast", false, map[schemas.Category]string{schemas.HookActivations: schemas.PhaseEval,
			schemas.StoredBackprops: schemas.PhaseBackward, schemas.SummedGradients: schemas.PhaseBackward}},
		{"biases", true, map[schemas.Category]string{schemas.StoredBackprops: schemas.PhaseBackward}},
		{"samples", true, map[schemas.Category]string{schemas.PerSampleGradients: schemas.PhaseBackward,
			schemas.SummedGradients: schemas.PhaseClip}},
		{"ghost", true, map[schemas.Category]string{schemas.SummedGradients: schemas.PhaseBackwardGrad}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			testkit.Part(t, c.rest)
			t.Parallel()
			takeSlot(t)
			r := record(t, environment("DPSIGHT_WARMUP=2"), python, keeping, "cuda", c.mode)
			if r.manifest.Status != schemas.StatusOK {
				t.Fatalf("status %s (%s)", r.manifest.Status, r.manifest.Reason)
			}
			if steps, err := schemas.Steps.Read(r.dir); err != nil || len(steps) != 3 {
				t.Errorf("%d steps (%v)", len(steps), err)
			}
			expectOwners(t, r.dir, c.born)
		})
	}
}

// expectOwners fails if a block larger than a few numbers is known only by its phase, or if a category in born has
// no block from the given phase.
func expectOwners(t *testing.T, dir string, born map[schemas.Category]string) {
	t.Helper()
	const few = 512
	allocations, err := schemas.Allocations.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	owners, err := schemas.Owners.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[int64]*schemas.Allocation{}
	for i := range allocations {
		blocks[allocations[i].AllocID] = &allocations[i]
	}
	found := map[schemas.Category]bool{}
	for i := range owners {
		o := &owners[i]
		a := blocks[o.AllocID]
		if a.RequestedBytes <= few {
			continue
		}
		if o.Evidence == schemas.ByPhase {
			t.Errorf("%d bytes born in %s of step %d are %s by phase only", a.RequestedBytes, a.Phase, a.Step, o.Category)
		}
		found[o.Category] = found[o.Category] || a.Phase == born[o.Category]
	}
	for category, phase := range born {
		if !found[category] {
			t.Errorf("no block born in %s is one of %s", phase, category)
		}
	}
}
