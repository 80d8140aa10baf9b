package examples_test

import (
	"math"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

func timesOf(t *testing.T, folder string, each func(in schemas.Tables)) {
	t.Helper()
	found, _, err := store.Open(ingesttest.Store(t, folder)).Runs()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		tab, err := store.Load(r, schemas.WantTimes|schemas.WantModuleTimes)
		if err != nil {
			t.Fatal(err)
		}
		each(*tab)
	}
}

// The times by module and the cost of recording have the same times of an instrumented and of a bare step. All parts
// of the times by module sum to the bare step.
func TestOneInstrumentedStep(t *testing.T) {
	seen := 0
	for _, folder := range []string{"quick", plain, "mlp"} {
		timesOf(t, folder, func(in schemas.Tables) {
			cost := analyze.Cost(in)
			for _, d := range timing.ModuleTimes(in, timing.ModuleTimeBy{Dimension: grouping.DimensionClass}).Ranks {
				seen++
				if math.Abs(*d.InstrumentedStepMS-*cost.InstrumentedStepMS) > 1e-6 ||
					math.Abs(*d.StepMS-*cost.BareStepMS) > 1e-6 {
					t.Errorf("%s: steps of %v and %v ms by module, what recording cost says %v and %v",
						in.Manifest.Name, *d.InstrumentedStepMS, *d.StepMS, *cost.InstrumentedStepMS, *cost.BareStepMS)
				}
				sum := d.OutsideMS + *d.ResidueMS
				for i := range d.Rows {
					sum += d.Rows[i].MS
				}
				if math.Abs(sum-*d.StepMS) > 1e-6 {
					t.Errorf("%s: all sums to %v ms of a step of %v", in.Manifest.Name, sum, *d.StepMS)
				}
			}
		})
	}
	if seen < 8 {
		t.Errorf("only %d recordings have times of modules", seen)
	}
}

// A step that a CUDA graph captured did not run, so no analysis has a time for it.
func TestACapturedStepHasNoTime(t *testing.T) {
	seen := false
	timesOf(t, "accuracy-development", func(in schemas.Tables) {
		if in.Manifest.Name != "graph" {
			return
		}
		seen = true
		row, cost := analyze.ListRun(in), analyze.Cost(in)
		if row.StepMS != nil || len(row.Remarks) != 1 ||
			!slices.Equal(row.Remarks[0].Times.Steps, []int64{3}) {
			t.Errorf("a step takes %v ms: %+v", row.StepMS, row.Remarks)
		}
		if cost.InstrumentedStepMS != nil || len(cost.Remarks) != 1 {
			t.Errorf("an instrumented step takes %v ms: %+v", cost.InstrumentedStepMS, cost.Remarks)
		}
		for _, p := range analyze.Phases(in).Phases {
			if p.GPUMS != nil || p.StepPercent != nil {
				t.Errorf("%s takes %+v", p.Phase, p.GPUMS)
			}
		}
		if m := timing.ModuleTimes(in, timing.ModuleTimeBy{Dimension: grouping.DimensionModule}); len(m.Ranks) != 0 ||
			len(m.Remarks) != 2 {
			t.Errorf("%+v", m)
		}
	})
	if !seen {
		t.Error("no such recording")
	}
}
