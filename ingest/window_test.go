package ingest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// The journal "windows" was recorded with collect/livetest/testdata/windows.py 206 on the phantom GPU, torch 2.11.0.
// The journal has two windows: the first six steps, and four steps from step 200 on.

// opensWindow reports whether a checkpoint belongs to the drain with which a later window begins.
func opensWindow(t *testing.T, f spool.Frame) bool {
	t.Helper()
	var c spool.Checkpoint
	if err := json.Unmarshal(f.Payload, &c); err != nil {
		t.Fatal(err)
	}
	return c.Reason == schemas.ReasonWindow
}

// The tables have the data that a replay across the gap between two windows needs. The data is an event for the gap,
// and the allocator's own list just after the gap. The sums of this list equal torch's counters.
func TestWindowTables(t *testing.T) {
	dir := folder(t, "windows")
	r := run(t, dir)
	if d := r.Devices[0]; d.Verdict != schemas.Exact || d.DifferingBlocks != 0 || r.Cost[0].Windows != 2 {
		t.Fatalf("%+v, %d windows", d, r.Cost[0].Windows)
	}
	gap, after, grown := int64(0), false, int64(0)
	for _, e := range rows(t, schemas.Events, dir) {
		if schemas.Action(e.Action) == schemas.ActionGap {
			if gap > 0 {
				t.Errorf("gaps at events %d and %d", gap, e.Seq)
			}
			gap, grown = e.Seq, e.Size
		}
		after = after || gap > 0 && e.Seq > gap
	}
	if gap == 0 || !after {
		t.Fatalf("gap at event %d, events after it: %t", gap, after)
	}
	var active, requested, reserved, last int64
	var segments []uint64
	for _, b := range rows(t, schemas.Segments, dir) {
		if b.At != schemas.ListWindow {
			last++
			continue
		}
		if b.Seq != gap {
			t.Errorf("a block of event %d, the gap is event %d", b.Seq, gap)
		}
		if b.State != schemas.BlockInactive {
			active, requested = active+b.BlockBytes, requested+b.RequestedBytes
		}
		if !slices.Contains(segments, b.SegmentAddress) {
			segments, reserved = append(segments, b.SegmentAddress), reserved+b.SegmentBytes
		}
	}
	rows := rows(t, schemas.Checkpoints, dir)
	i := slices.IndexFunc(rows, func(c schemas.Checkpoint) bool { return c.Reason == schemas.ReasonWindow })
	if c := rows[i]; active != c.ActiveBytes || requested != c.RequestedBytes || reserved != c.ReservedBytes ||
		c.Seq != gap || c.Recorded {
		t.Errorf("the list sums to %d active, %d requested, %d reserved: %+v", active, requested, reserved, c)
	}
	// The event of the gap has the change of reserved, so later values of reserved are right.
	before := int64(-1)
	for _, c := range rows[:i] {
		if c.Recorded {
			before = c.ReservedBytes
		}
	}
	if before < 0 || grown == 0 || grown != reserved-before {
		t.Errorf("the gap has %d bytes: %d are reserved after it, %d at the last recorded drain", grown, reserved,
			before)
	}
	if last == 0 {
		t.Error("the list of the last drain is gone")
	}
}

// If a process ended after the drain that opens a window, but before it wrote the drain's counters, values after the
// gap are unknown. Values before the gap stay exact.
func TestWindowCutAsItOpens(t *testing.T) {
	marks, frames := unpacked(t, "windows")
	all, err := spool.ScanFrames(frames)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(f spool.Frame) bool {
		return f.Type == spool.FrameCheckpoint && opensWindow(t, f)
	})
	cut := rewritten(t, frames, func(i int, f spool.Frame) []byte {
		if i >= at {
			return nil
		}
		return f.Payload
	})
	dir := live(t, 1<<30, marks, cut)
	r := run(t, dir)
	if d := r.Devices[0]; d.Verdict != schemas.Exact || strings.Contains(d.Reason, "unchecked") {
		t.Errorf("%+v", d)
	}
	for _, e := range rows(t, schemas.Events, dir) {
		if schemas.Action(e.Action) == schemas.ActionGap {
			t.Errorf("a gap at event %d without its counters", e.Seq)
		}
	}
	for _, b := range rows(t, schemas.Segments, dir) {
		if b.At == schemas.ListWindow {
			t.Fatal("a list of a window that did not open")
		}
	}
}

// If the peak lies outside of the recorded steps, a warning states torch's peak and the peak of the recorded steps.
func TestPeakOutsideTheRecordedSteps(t *testing.T) {
	r := newReport(&schemas.Manifest{RunID: "r"}, Options{})
	r.Devices = []schemas.DeviceVerdict{{Events: 1, Verdict: schemas.Exact, PeakAllocatedBytes: 999 << 20,
		TorchPeakAllocatedBytes: new(int64(28289<<20 + 1<<19))}}
	r.warnOfDevices()
	if want := "rank 0, device 0: torch's peak of 28,289.50 MiB lies outside the recorded steps (there it is 999.00 " +
		"MiB) and is not broken down"; !slices.Equal(r.Warnings, []string{want}) {
		t.Errorf("%q", r.Warnings)
	}
}
