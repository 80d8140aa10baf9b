package schemas

import (
	"slices"
	"testing"
)

// The highest level of reserved that DeriveReserved finds in a device's events equals the peak of reserved in the
// ingest report.
func TestDeriveReserved(t *testing.T) {
	event := func(device int32, seq int64, a Action, size int64) Event {
		return Event{RunID: "r", Device: device, Seq: seq, Action: int32(a), Size: size}
	}
	events := []Event{event(0, 1, ActionSegmentAlloc, 20), event(0, 2, ActionAlloc, 7), event(0, 3, ActionSegmentMap, 10),
		event(1, 1, ActionSegmentAlloc, 5), event(0, 4, ActionSegmentFree, 20), event(0, 5, ActionGap, -10),
		event(0, 6, ActionSegmentUnmap, 0), event(2, 1, ActionAlloc, 3), event(3, 1, ActionSegmentAlloc, 9)}
	verdicts := []DeviceVerdict{{Device: 0, PeakReservedBytes: 32}, {Device: 1, PeakReservedBytes: 5},
		{Device: 2, PeakReservedBytes: 4}}
	want := []ReservedLevel{{"r", 0, 0, 0, 2}, {"r", 0, 0, 1, 22}, {"r", 0, 0, 3, 32}, {"r", 0, 0, 4, 12},
		{"r", 0, 0, 5, 2}, {"r", 0, 0, 6, 2}, {"r", 0, 1, 0, 0}, {"r", 0, 1, 1, 5}}
	if got := DeriveReserved(events, verdicts); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
