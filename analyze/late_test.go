package analyze

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// lateInput has one block of 100 bytes in its recorded steps, and a higher peak that only torch counted.
func lateInput(torch int64) Input {
	reserved := 2 * torch
	return Input{
		Manifest: &schemas.Manifest{RunID: "late", Status: schemas.StatusOK, Source: schemas.Measured},
		Report: &schemas.IngestReport{Devices: []schemas.DeviceVerdict{{Events: 2, PeakSeq: 1,
			PeakAllocatedBytes: 100, PeakReservedBytes: 100, TorchPeakAllocatedBytes: &torch,
			TorchPeakReservedBytes: &reserved}}},
		Allocations: []schemas.Allocation{{AllocID: 1, RequestedBytes: 100, BlockBytes: 100, AllocSeq: 1,
			FreeRequestedSeq: 2, FreeCompletedSeq: 2}},
		Owners: []schemas.Owner{{AllocID: 1, Category: schemas.Activations, BeginSeq: 1, EndSeq: 2,
			Evidence: schemas.Tagged}},
		Steps: []schemas.Step{{Step: 0, Recorded: true, Instrumented: true, BeginSeq: 0, EndSeq: 2},
			{Step: 1, BeginSeq: 2, EndSeq: 2}},
		Phases: []schemas.Phase{{Step: 0, Phase: "forward", BeginSeq: 0, EndSeq: 2, PeakBytes: 100, PeakSeq: 1},
			{Step: 1, Phase: "forward", BeginSeq: 2, EndSeq: 2}},
	}
}

// A peak after the recorded steps is torch's; no category is made to explain it.
func TestLatePeak(t *testing.T) {
	late, plain := Summarize(lateInput(150)), Summarize(lateInput(100))
	if *late.PeakBytes != 150 || *late.PeakReservedBytes != 300 || late.BrokenDown() {
		t.Errorf("peak %d, reserved %d, broken down %v", *late.PeakBytes, *late.PeakReservedBytes, late.BrokenDown())
	}
	if !strings.Contains(strings.Join(late.Warnings, "\n"), "outside the recorded steps") {
		t.Errorf("warnings %q", late.Warnings)
	}
	if row := ListRun(lateInput(150)); *row.PeakBytes != 150 || *row.PeakReservedBytes != 300 {
		t.Errorf("the list has a peak of %d, reserved %d", *row.PeakBytes, *row.PeakReservedBytes)
	}
	lossy := lateInput(150)
	lossy.Report.Devices[0].Verdict = schemas.Lossy
	if w := strings.Join(Summarize(lossy).Warnings, "\n"); strings.Contains(w, "outside the recorded steps") ||
		!strings.Contains(w, "some are missing") {
		t.Errorf("where events are missing the peak's place is not known: %q", w)
	}
	// What was reserved may rise after the recorded steps though no more was allocated than in them.
	grown := lateInput(100)
	grown.Report.Devices[0].TorchPeakReservedBytes = ptr(int64(700))
	if s, row := Summarize(grown), ListRun(grown); *s.PeakReservedBytes != 700 || *row.PeakReservedBytes != 700 ||
		!s.BrokenDown() || len(s.Warnings) != 0 {
		t.Errorf("reserved %d, in the list %d, warnings %q", *s.PeakReservedBytes, *row.PeakReservedBytes, s.Warnings)
	}
	// On another device than the one whose breakdown is the highest.
	other := lateInput(100)
	other.Report.Devices = append(other.Report.Devices, schemas.DeviceVerdict{Device: 1, Events: 2,
		PeakAllocatedBytes: 50, PeakReservedBytes: 60,
		TorchPeakAllocatedBytes: ptr(int64(900)), TorchPeakReservedBytes: ptr(int64(950))})
	if s := Summarize(other); *s.PeakBytes != 900 || *s.PeakReservedBytes != 950 || s.BrokenDown() {
		t.Errorf("peak %d, reserved %d, broken down %v", *s.PeakBytes, *s.PeakReservedBytes, s.BrokenDown())
	}
	if *plain.PeakBytes != 100 || !plain.BrokenDown() {
		t.Errorf("peak %d, broken down %v", *plain.PeakBytes, plain.BrokenDown())
	}
	o := overheads(plain, []Summary{late, plain})
	if *o.Runs[0].PeakDeltaBytes != 50 || len(o.Runs[0].Categories) != 0 || len(o.Runs[1].Categories) == 0 {
		t.Errorf("%+v", o.Runs)
	}
}

// Nothing is told of what is held at a peak that is not broken down.
func TestLatePeakIsNotExplained(t *testing.T) {
	in := lateInput(100)
	in.Owners = append(in.Owners, schemas.Owner{AllocID: 1, Category: schemas.HookActivations, BeginSeq: 1, EndSeq: 2,
		Evidence: schemas.Tagged})
	held := func(in Input) string {
		doc, err := Explain(Dissect(in), Dissect(lateInput(100)))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(doc.Sentences, "\n")
	}
	const hooks = "that DP hooks hold for backward"
	if text := held(in); !strings.Contains(text, hooks) {
		t.Errorf("%s", text)
	}
	in.Report.Devices[0].TorchPeakAllocatedBytes = new(int64(150))
	if text := held(in); !strings.Contains(text, "there is no breakdown of the peak") || strings.Contains(text, hooks) {
		t.Errorf("%s", text)
	}
}

func TestUnrecordedStepIsRefused(t *testing.T) {
	step := int64(1)
	if _, err := Breakdown(lateInput(100), At{Step: &step}); err == nil ||
		!strings.Contains(err.Error(), "step 1 on cuda:0 was not recorded") {
		t.Error(err)
	}
}

// Phases have bytes without the allocations being loaded.
func TestPhasesHaveBytes(t *testing.T) {
	in := lateInput(100)
	in.Allocations, in.Owners = nil, nil
	for _, p := range Phases(in).Phases {
		if p.PeakBytes == nil || *p.PeakBytes != 100 {
			t.Errorf("%+v", p)
		}
	}
	in.Report.Devices[0].Events = 0
	for _, p := range Phases(in).Phases {
		if p.PeakBytes != nil {
			t.Errorf("a run without events has bytes: %+v", p)
		}
	}
}
