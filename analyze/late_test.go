package analyze

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// If a run has its peak after the recorded steps, the peak comes from torch's counter and has no breakdown.
func TestLatePeak(t *testing.T) {
	late, plain := Summarize(fixture.LateInput(150)), Summarize(fixture.LateInput(100))
	if *late.PeakBytes != 150 || *late.PeakReservedBytes != 300 || late.BrokenDown() {
		t.Errorf("peak %d, reserved %d, broken down %v", *late.PeakBytes, *late.PeakReservedBytes, late.BrokenDown())
	}
	if !slices.Contains(late.Remarks, Remark{Kind: RemarkLatePeak, Bytes: 150, OtherBytes: 100}) {
		t.Errorf("%+v", late.Remarks)
	}
	if row := ListRun(fixture.LateInput(150)); *row.PeakBytes != 150 || *row.PeakReservedBytes != 300 {
		t.Errorf("the list has a peak of %d, reserved %d", *row.PeakBytes, *row.PeakReservedBytes)
	}
	lossy := fixture.LateInput(150)
	lossy.Report.Devices[0].Verdict = schemas.Lossy
	if r := Summarize(lossy).Remarks; !slices.Equal(r, []Remark{{Kind: RemarkMissedPeak, Bytes: 150, OtherBytes: 100}}) {
		t.Errorf("where events are missing the peak's place is not known: %+v", r)
	}
	// After the recorded steps, reserved memory may rise although allocated memory does not.
	grown := fixture.LateInput(100)
	grown.Report.Devices[0].TorchPeakReservedBytes = new(int64(700))
	if s, row := Summarize(grown), ListRun(grown); *s.PeakReservedBytes != 700 || *row.PeakReservedBytes != 700 ||
		!s.BrokenDown() || len(s.Remarks) != 0 {
		t.Errorf("reserved %d, in the list %d, %+v", *s.PeakReservedBytes, *row.PeakReservedBytes, s.Remarks)
	}
	// The highest peak may lie after the recorded steps, on another device than the device with the highest breakdown.
	other := fixture.LateInput(100)
	other.Report.Devices = append(other.Report.Devices, schemas.DeviceVerdict{Device: 1, Events: 2,
		PeakAllocatedBytes: 50, PeakReservedBytes: 60,
		TorchPeakAllocatedBytes: new(int64(900)), TorchPeakReservedBytes: new(int64(950))})
	if s := Summarize(other); *s.PeakBytes != 900 || *s.PeakReservedBytes != 950 || s.BrokenDown() {
		t.Errorf("peak %d, reserved %d, broken down %v", *s.PeakBytes, *s.PeakReservedBytes, s.BrokenDown())
	}
	if *plain.PeakBytes != 100 || !plain.BrokenDown() {
		t.Errorf("peak %d, broken down %v", *plain.PeakBytes, plain.BrokenDown())
	}
}

func TestUnrecordedStepIsRefused(t *testing.T) {
	step := int64(1)
	if _, err := memory.Breakdown(fixture.LateInput(100), memory.At{Step: &step}); err == nil ||
		!strings.Contains(err.Error(), "step 1 on cuda:0 was not recorded") {
		t.Error(err)
	}
}

// Phases have bytes even if the table of allocations was not loaded.
func TestPhasesHaveBytes(t *testing.T) {
	in := fixture.LateInput(100)
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
