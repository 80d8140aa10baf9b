package analyze

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

func TestCost(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end := start.Add(10 * time.Second)
	bare, inst, torch := int64(100e6), int64(103e6), int64(900)
	in := schemas.Tables{
		Manifest: &schemas.Manifest{Source: schemas.Measured, Start: start, End: &end,
			Collector: schemas.Collector{CPUNS: 150e6}},
		Report: &schemas.IngestReport{
			Devices: []schemas.DeviceVerdict{
				{Verdict: schemas.Exact, Events: 5, PeakAllocatedBytes: 700},
				{Device: 1, Verdict: schemas.Lossy, Events: 4, MissingEvents: 2, ResidueBytes: 8,
					PeakAllocatedBytes: 900, TorchPeakAllocatedBytes: &torch},
			},
			Cost: []schemas.InstrumentCost{{DrainNS: 20e6, RecordedNS: 2e9, BareStepNS: &bare,
				InstrumentedStepNS: &inst, BareSteps: 3, InstrumentedSteps: 4, RecordedSteps: 9, Windows: 2}},
		},
	}
	c := Cost(in)
	if *c.PeakBytes != 900 || *c.TorchPeakBytes != 900 || c.Verdict != schemas.Lossy || c.Events != 9 ||
		c.MissingEvents != 2 || c.ResidueBytes != 8 {
		t.Errorf("%+v", c)
	}
	if *c.BareStepMS != 100 || *c.InstrumentedStepMS != 103 || *c.DrainMS != 20 || *c.DrainShare != 0.01 ||
		*c.CollectorShare != 0.015 {
		t.Errorf("bare %v, instrumented %v, drains %v (%v), collector %v", *c.BareStepMS, *c.InstrumentedStepMS,
			*c.DrainMS, *c.DrainShare, *c.CollectorShare)
	}
	if *c.InstrumentMS != 3 || *c.InstrumentShare != 0.03 || c.BareSteps != 3 || c.InstrumentedSteps != 4 ||
		c.RecordedSteps != 9 || c.Windows != 2 || len(c.Warnings) != 0 {
		t.Errorf("%+v", c)
	}
	if c.CollectorSetupMS != nil || c.CollectorSealMS != nil {
		t.Errorf("what was not recorded: set-up %v, sealing %v", c.CollectorSetupMS, c.CollectorSealMS)
	}
	in.Manifest.Collector.SetupCPUNS, in.Manifest.Collector.SealCPUNS = new(int64(40e6)), new(int64(60e6))
	if c := Cost(in); *c.CollectorShare != 0.015 || *c.CollectorSetupMS != 40 || *c.CollectorSealMS != 60 {
		t.Errorf("collector %v, set-up %v ms, sealing %v ms", *c.CollectorShare, *c.CollectorSetupMS,
			*c.CollectorSealMS)
	}
	in.Report.Cost[0].InstrumentNS = new(int64(5e6))
	if c := Cost(in); *c.InstrumentMS != 5 || *c.InstrumentShare != 0.05 ||
		!slices.Equal(c.Warnings, []string{"batches vary: Δ is by time a sample, for a bare step of median size"}) {
		t.Errorf("%v ms (%v): %q", *c.InstrumentMS, *c.InstrumentShare, c.Warnings)
	}
	in.Report.Cost[0].InstrumentNS, inst = nil, 80e6
	if c := Cost(in); *c.InstrumentMS != -20 || len(c.Warnings) != 1 ||
		!strings.HasPrefix(c.Warnings[0], "instrumented steps took less time than bare ones") {
		t.Errorf("%v ms: %q", *c.InstrumentMS, c.Warnings)
	}
	if inst = 97e6; len(Cost(in).Warnings) != 0 { // as steps differ by themselves
		t.Errorf("%q", Cost(in).Warnings)
	}
	inst = 103e6
	for n, want := range map[int64]string{1: "1 step in no median: ", 3: "3 steps in no median: "} {
		in.Report.Cost[0].CapturedSteps = n
		if w := Cost(in).Warnings; len(w) != 1 || !strings.HasPrefix(w[0], want) {
			t.Errorf("%d captured steps: %q", n, w)
		}
	}
	in.Report.Cost[0].CapturedSteps = 0
	in.Report.Cost = append(in.Report.Cost, schemas.InstrumentCost{DrainNS: 10e6, RecordedNS: 100e6})
	if c := Cost(in); *c.DrainMS != 10 || *c.DrainShare != 0.1 || len(c.Warnings) != 1 {
		t.Errorf("the drains of one process in the time of another: %v (%v)", *c.DrainMS, *c.DrainShare)
	}
	in.Manifest.Source = schemas.Predicted
	if c := Cost(in); c.BareStepMS != nil || c.DrainMS != nil || c.CollectorShare != nil || c.PeakBytes == nil {
		t.Errorf("a prediction has times: %+v", c)
	}
	in.Report = nil
	if c := Cost(in); len(c.Warnings) != 1 {
		t.Errorf("%+v", c)
	}
}

// What recording moved is said of the recorded run, beside its bare twin.
func TestCostBesideTheBareTwin(t *testing.T) {
	run := func(name string, bare bool, steps int, allocated, reserved int64) CostRun {
		in := schemas.Tables{Manifest: &schemas.Manifest{RunID: name, Name: name, Bare: bare, Status: schemas.StatusOK,
			Source: schemas.Measured,
			Params: map[string]any{"method": "ghost", "num_iter": steps}},
			Report: &schemas.IngestReport{Devices: []schemas.DeviceVerdict{{TorchPeakAllocatedBytes: &allocated,
				TorchPeakReservedBytes: &reserved}}}}
		return Cost(in)
	}
	other := run("other", true, 3, 1<<20, 1<<20)
	other.experiment = "another"
	for _, c := range []struct {
		what string
		runs []CostRun
		want []string
	}{
		{"alike", []CostRun{run("full", false, 3, 4<<20, 8<<20), run("bare", true, 5, 4<<20, 8<<20)}, nil},
		{"another experiment", []CostRun{run("full", false, 3, 4<<20, 8<<20), other}, nil},
		{"reserved", []CostRun{run("full", false, 3, 4<<20, 9<<20), other, run("bare", true, 3, 4<<20, 8<<20)},
			[]string{"at its highest it reserved 1.00 MiB more than its bare twin bare (9.00 MiB, and 8.00 MiB), " +
				"with the same peak allocated: the difference is memory that the allocator cached, not what the run " +
				"holds"}},
		{"allocated", []CostRun{run("full", false, 3, 3<<20, 8<<20), run("bare", true, 3, 4<<20, 8<<20)},
			[]string{"at its peak it allocated 1.00 MiB less than its bare twin bare (3.00 MiB, and 4.00 MiB)"}},
		{"one of two", []CostRun{run("full", false, 3, 3<<20, 8<<20), run("bare", true, 3, 3<<20, 8<<20),
			run("bare2", true, 3, 4<<20, 8<<20), run("bare3", true, 3, 5<<20, 8<<20)},
			[]string{"at its peak it allocated 1.00 MiB less than its bare twin bare2 (3.00 MiB, and 4.00 MiB)"}},
	} {
		if got := NewCostDocument(c.runs...).Runs[0].Warnings; !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.what, got)
		}
		if again := NewCostDocument(NewCostDocument(c.runs...).Runs[1:]...); len(
			again.Runs[len(again.Runs)-1].Warnings) > 0 {
			t.Errorf("%s: the bare run has warnings", c.what)
		}
	}
}

// A bare step of a recorded run is held against the step of the bare run.
func TestCostOfABareStep(t *testing.T) {
	run := func(name string, bare bool, ns int64) CostRun {
		return Cost(schemas.Tables{Manifest: &schemas.Manifest{RunID: name, Name: name, Bare: bare,
			Status: schemas.StatusOK,
			Source: schemas.Measured,
			Params: map[string]any{"method": "ghost"}},
			Report: &schemas.IngestReport{Cost: []schemas.InstrumentCost{{BareStepNS: &ns, BareSteps: 3}}}})
	}
	doc := NewCostDocument(run("full", false, 102e6), run("full-bare", true, 100e6))
	if got := doc.Runs[0].BesideBareRun; got == nil || math.Abs(*got-0.02) > 1e-9 {
		t.Errorf("the recorded run's bare step takes %v more", got)
	}
	if doc.Runs[1].BesideBareRun != nil {
		t.Error("a bare run is held against itself")
	}
	// Of several bare repeats, of which the first may be the slowest, it is their median.
	doc = NewCostDocument(run("full", false, 120e6), run("full-bare", true, 160e6), run("full-bare", true, 100e6),
		run("full-bare", true, 96e6))
	if got := doc.Runs[0].BesideBareRun; got == nil || math.Abs(*got-0.2) > 1e-9 {
		t.Errorf("beside the median of three: %v", got)
	}
	if doc = NewCostDocument(run("full", false, 102e6)); doc.Runs[0].BesideBareRun != nil {
		t.Error("a run without a bare twin is held against something")
	}
}
