package memory

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

func TestLayoutTellsGapsFromIdleSegments(t *testing.T) {
	in := fixture.Pieces(3, 1, 4*64<<20)
	in.Allocations[1].BlockBytes = 16 << 20 // the block is smaller than its segment
	p := identity.Place{}
	lay := LayoutAt(&in, p, NewLedger(&in, p), in.Report.Devices[0].Events)
	if lay == nil || lay.Idle != 64<<20 || lay.Gaps != 48<<20 || lay.Largest != 64<<20 ||
		lay.Reserved != lay.allocated+lay.Free() {
		t.Errorf("%+v", lay)
	}
	in.Allocations[0].FreeCompletedSeq = 0 // the program freed this block, and a stream still uses it
	if lay = LayoutAt(&in, p, NewLedger(&in, p), in.Report.Devices[0].Events); lay == nil || lay.pending != 64<<20 ||
		lay.Idle != 0 {
		t.Errorf("%+v", lay)
	}
	in.Events = in.Events[1:] // the first block now lies in no known segment
	if lay = LayoutAt(&in, p, NewLedger(&in, p), in.Report.Devices[0].Events); lay != nil {
		t.Errorf("%+v", lay)
	}
	mapped := schemas.Tables{Events: []schemas.Event{{Seq: 1, Action: int32(schemas.ActionSegmentMap), Addr: 100,
		Size: 20},
		{Seq: 2, Action: int32(schemas.ActionSegmentMap), Addr: 120, Size: 20},
		{Seq: 3, Action: int32(schemas.ActionSegmentUnmap), Addr: 110, Size: 10}}}
	if got := segmentsAt(&mapped, p, 2); !slices.Equal(got, []extent{{100, 140}}) {
		t.Errorf("%v", got)
	}
	if got := segmentsAt(&mapped, p, 3); !slices.Equal(got, []extent{{100, 110}, {120, 140}}) {
		t.Errorf("%v", got)
	}
}

// After a gap, the segments come from the list with which the window opened. Later events of the window change them.
func TestSegmentsAfterGap(t *testing.T) {
	in, p := fixture.Windowed(), identity.Place{}
	later := in.Segments[3] // a further window opens with this list
	later.Seq, later.SegmentAddress, later.Address = 9, 12000, 12000
	in.Segments = append(in.Segments, later)
	if got := segmentsAt(&in, p, 5); !slices.Equal(got, []extent{{0, 2000}, {4000, 4300}, {7300, 8600}}) {
		t.Errorf("%v", got)
	}
	lay := LayoutAt(&in, p, NewLedger(&in, p), 5)
	if lay == nil || lay.Reserved != 3600 || lay.allocated != 1800 || lay.Gaps != 1800 || lay.Largest != 1000 {
		t.Errorf("%+v", lay)
	}
	if got := segmentsAt(&in, p, 2); !slices.Equal(got, []extent{{0, 2000}}) {
		t.Errorf("before the gap: %v", got)
	}
	in.Segments = nil
	if LayoutAt(&in, p, NewLedger(&in, p), 5) != nil {
		t.Error("a layout without the list")
	}
}

// If a zero_grad lies in a time without events, it must not count as beginning at event 0.
func TestZeroGradBetweenWindows(t *testing.T) {
	in := fixture.Windowed()
	for i := range in.Phases {
		if f := &in.Phases[i]; f.Step > 0 && f.Phase == schemas.PhaseBetween {
			f.Phase = schemas.PhaseZeroGrad
		}
	}
	if got := zeroed(&in, identity.Place{}); len(got) != 0 {
		t.Errorf("zero_grad at %v", got)
	}
}
