package timeline

import (
	"math/rand/v2"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// mainTimeline returns the timeline of the device with the highest peak, and the breakdown of that peak.
func mainTimeline(in schemas.Tables) (*Timeline, *memory.DeviceBreakdown) {
	run, _ := memory.Breakdown(in, memory.At{})
	var main *memory.DeviceBreakdown
	for i := range run.Devices {
		if d := &run.Devices[i]; main == nil || d.AllocatedBytes > main.AllocatedBytes {
			main = d
		}
	}
	if main == nil {
		return nil, nil
	}
	p := memory.PlaceOf(&in, main)
	return TimelineOf(&in, p, memory.NewLedger(&in, p), main.At, main.AllocatedBytes), main
}

// A timeline keeps the lowest and the highest bytes of a run, for any number of columns. All moments of a column lie
// between the column's lowest and highest. The highest of all columns is the peak, and its categories sum to it.
func TestTimelineKeepsExtremes(t *testing.T) {
	for seed := range uint64(40) {
		in, _ := fixture.RandomRun(rand.New(rand.NewPCG(seed, 9)))
		tl, peak := mainTimeline(in)
		if tl == nil {
			t.Fatalf("seed %d: no timeline", seed)
		}
		l := memory.NewLedger(&in, memory.PlaceOf(&in, peak))
		last := int64(0)
		var highest int64
		tl.columns(func(c *TimelineColumn) {
			if c.BeginSeq != last {
				t.Fatalf("seed %d: a column begins at %d, the one before ends at %d", seed, c.BeginSeq, last)
			}
			low, high := int64(1)<<62, int64(-1)
			for seq := c.BeginSeq + 1; seq <= c.EndSeq; seq++ {
				var live int64
				for _, a := range l.Allocs {
					if a.LiveAt(seq) {
						live += a.BlockBytes
					}
				}
				low, high = min(low, live), max(high, live)
			}
			if c.LowBytes != low || c.HighBytes != high {
				t.Fatalf("seed %d: column (%d, %d] has %d to %d, want %d to %d", seed, c.BeginSeq, c.EndSeq, c.LowBytes,
					c.HighBytes, low, high)
			}
			var sum int64
			for i, b := range c.Parts {
				sum += b
				if i != memory.SlackPlace && i != memory.CategoryPlace(schemas.Other) &&
					b != l.BytesAt(schemas.Categories[i], c.HighSeq) {
					t.Fatalf("seed %d: %s has %d at %d", seed, schemas.Categories[i], b, c.HighSeq)
				}
			}
			if sum != c.HighBytes {
				t.Fatalf("seed %d: parts sum to %d of %d", seed, sum, c.HighBytes)
			}
			last, highest = c.EndSeq, max(highest, c.HighBytes)
		})
		if highest != peak.AllocatedBytes || tl.PeakBytes != highest {
			t.Errorf("seed %d: the timeline reaches %d, the peak is %d", seed, highest, peak.AllocatedBytes)
		}
	}
}

// ReservedBytes is the highest reserved in a column, from the events of segments. ReservedBytes includes a spike that
// begins and ends within the column.
func TestTimelineReserved(t *testing.T) {
	in := fixture.LateInput(100)
	in.Report.Devices[0].Events, in.Report.Devices[0].PeakReservedBytes = 1000, 700
	in.Events = []schemas.Event{{Seq: 1, Action: int32(schemas.ActionSegmentAlloc), Size: 200},
		{Seq: 500, Action: int32(schemas.ActionSegmentAlloc), Size: 500},
		{Seq: 501, Action: int32(schemas.ActionSegmentFree), Size: 500}}
	in.Reserved = schemas.DeriveReserved(in.Events, in.Report.Devices)
	var highest, end int64
	tl, _ := mainTimeline(in)
	tl.columns(func(c *TimelineColumn) {
		highest, end = max(highest, c.ReservedBytes), c.ReservedBytes
		if c.ReservedBytes < 200 {
			t.Errorf("(%d, %d]: reserved %d", c.BeginSeq, c.EndSeq, c.ReservedBytes)
		}
	})
	if highest != 700 || end != 200 {
		t.Errorf("reserved reaches %d and ends at %d", highest, end)
	}
	in.Events, in.Reserved = nil, nil
	tl, _ = mainTimeline(in)
	tl.columns(func(c *TimelineColumn) {
		if c.ReservedBytes != -1 {
			t.Errorf("reserved is %d without a segment event", c.ReservedBytes)
		}
	})
}

// If an empty inner phase interrupts an outer phase, the outer phase stays one segment. If a timeline has very many
// phases, its segments outside the peak's step are whole steps.
func TestTimelineSegments(t *testing.T) {
	in := fixture.LateInput(100)
	in.Phases = []schemas.Phase{{Phase: "clip", BeginSeq: 0, EndSeq: 1}, {Phase: "zero_grad", BeginSeq: 1, EndSeq: 1},
		{Phase: "clip", BeginSeq: 1, EndSeq: 2}}
	tl, _ := mainTimeline(in)
	if got := tl.Segments; len(got) != 1 || got[0].Phase != "clip" || got[0].EndSeq != 2 {
		t.Errorf("%+v", got)
	}
	// If the steps of a run have no phases, each step is a segment. In this run the peak lies in the first step.
	in = fixture.LateInput(100)
	in.Report.Devices[0].Events, in.Phases = 6, nil
	in.Steps = []schemas.Step{{Step: 0, Recorded: true, BeginSeq: 0, EndSeq: 2}, {Step: 1, Recorded: true, BeginSeq: 3,
		EndSeq: 6}}
	plain, _ := mainTimeline(in)
	if got := plain.Segments; len(got) != 3 || *got[0].Step != 0 || got[1].Step != nil || *got[2].Step != 1 ||
		!plain.InPeakStep(&got[0]) || plain.InPeakStep(&got[2]) {
		t.Errorf("%+v", got)
	}
	in.Report.Devices[0].Events = 4000
	in.Steps, in.Phases = nil, nil
	for step := range int64(1000) {
		in.Steps = append(in.Steps, schemas.Step{Step: step, Recorded: true, BeginSeq: 4 * step, EndSeq: 4*step + 4})
		in.Phases = append(in.Phases, schemas.Phase{Step: step, Phase: "forward", BeginSeq: 4 * step,
			EndSeq: 4*step + 2},
			schemas.Phase{Step: step, Phase: "backward", BeginSeq: 4*step + 2, EndSeq: 4*step + 4})
	}
	tl, _ = mainTimeline(in)
	got := tl.Segments
	if len(got) != 1001 || got[0].Phase != "forward" || got[1].Phase != "backward" || got[2].Phase != "" ||
		*got[2].Step != 1 {
		t.Errorf("%d segments, the first %+v", len(got), got[:3])
	}
}
