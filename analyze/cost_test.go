package analyze

import (
	"math"
	"slices"
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
		c.RecordedSteps != 9 || c.Windows != 2 || len(c.Remarks) != 0 {
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
		!slices.Equal(c.Remarks, []Remark{{Kind: RemarkBatchesVary}}) {
		t.Errorf("%v ms (%v): %+v", *c.InstrumentMS, *c.InstrumentShare, c.Remarks)
	}
	in.Report.Cost[0].InstrumentNS, inst = nil, 80e6
	if c := Cost(in); *c.InstrumentMS != -20 || !slices.Equal(c.Remarks, []Remark{{Kind: RemarkFasterSteps}}) {
		t.Errorf("%v ms: %+v", *c.InstrumentMS, c.Remarks)
	}
	if inst = 97e6; len(Cost(in).Remarks) != 0 { // steps without any instrumentation differ as much
		t.Errorf("%+v", Cost(in).Remarks)
	}
	inst = 103e6
	in.Report.Cost[0].CapturedSteps = 3
	if r := Cost(in).Remarks; !slices.Equal(r, []Remark{{Kind: RemarkUntimedSteps, N: 3}}) {
		t.Errorf("%+v", r)
	}
	in.Report.Cost[0].CapturedSteps = 0
	in.Report.Cost = append(in.Report.Cost, schemas.InstrumentCost{DrainNS: 10e6, RecordedNS: 100e6})
	if c := Cost(in); *c.DrainMS != 10 || *c.DrainShare != 0.1 ||
		!slices.Equal(c.Remarks, []Remark{{Kind: RemarkDrains, Share: 0.1}}) {
		t.Errorf("the drains of one process in the time of another: %v (%v)", *c.DrainMS, *c.DrainShare)
	}
	in.Manifest.Source = schemas.Predicted
	if c := Cost(in); c.BareStepMS != nil || c.DrainMS != nil || c.CollectorShare != nil || c.PeakBytes == nil {
		t.Errorf("a prediction has times: %+v", c)
	}
	in.Report = nil
	if c := Cost(in); !slices.Equal(c.Remarks, []Remark{{Kind: RemarkNotIngested}}) {
		t.Errorf("%+v", c)
	}
}

// The remarks on what recording changed belong to the recorded run, and not to its bare twin.
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
		want []Remark
	}{
		{"alike", []CostRun{run("full", false, 3, 4<<20, 8<<20), run("bare", true, 5, 4<<20, 8<<20)}, nil},
		{"another experiment", []CostRun{run("full", false, 3, 4<<20, 8<<20), other}, nil},
		{"reserved", []CostRun{run("full", false, 3, 4<<20, 9<<20), other, run("bare", true, 3, 4<<20, 8<<20)},
			[]Remark{{Kind: RemarkCachedDiff, Bytes: 9 << 20, OtherBytes: 8 << 20, Name: "bare"}}},
		{"both", []CostRun{run("full", false, 3, 5<<20, 9<<20), run("bare", true, 3, 4<<20, 8<<20)},
			[]Remark{{Kind: RemarkAllocatedDiff, Bytes: 5 << 20, OtherBytes: 4 << 20, Name: "bare"},
				{Kind: RemarkReservedDiff, Bytes: 9 << 20, OtherBytes: 8 << 20, Name: "bare"}}},
		{"allocated", []CostRun{run("full", false, 3, 3<<20, 8<<20), run("bare", true, 3, 4<<20, 8<<20)},
			[]Remark{{Kind: RemarkAllocatedDiff, Bytes: 3 << 20, OtherBytes: 4 << 20, Name: "bare"}}},
		{"one of two", []CostRun{run("full", false, 3, 3<<20, 8<<20), run("bare", true, 3, 3<<20, 8<<20),
			run("bare2", true, 3, 4<<20, 8<<20), run("bare3", true, 3, 5<<20, 8<<20)},
			[]Remark{{Kind: RemarkAllocatedDiff, Bytes: 3 << 20, OtherBytes: 4 << 20, Name: "bare2"}}},
	} {
		if got := NewCostDocument(c.runs...).Runs[0].Remarks; !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v", c.what, got)
		}
		if again := NewCostDocument(NewCostDocument(c.runs...).Runs[1:]...); len(
			again.Runs[len(again.Runs)-1].Remarks) > 0 {
			t.Errorf("%s: the bare run has warnings", c.what)
		}
	}
}

// The cost document compares the bare steps of a recorded run with the steps of the bare run.
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
	// If there are several bare repeats, their median step time counts, even if the first repeat is the slowest.
	doc = NewCostDocument(run("full", false, 120e6), run("full-bare", true, 160e6), run("full-bare", true, 100e6),
		run("full-bare", true, 96e6))
	if got := doc.Runs[0].BesideBareRun; got == nil || math.Abs(*got-0.2) > 1e-9 {
		t.Errorf("beside the median of three: %v", got)
	}
	if doc = NewCostDocument(run("full", false, 102e6)); doc.Runs[0].BesideBareRun != nil {
		t.Error("a run without a bare twin is held against something")
	}
}
