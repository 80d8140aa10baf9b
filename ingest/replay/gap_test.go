package replay

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// gapped is a trace of the allocator's model with gaps. from[i] is the event of the whole trace after which the model's
// values equal the values after event i of the trace with gaps.
type gapped struct {
	trace schemas.EventColumns
	gaps  []Gap
	from  []int
	final []schemas.SegmentBlock
	model *model
}

// simulateGaps leaves out two thirds of a run's events, in pieces of the given number of steps.
func (v *variant) simulateGaps(seed uint64, piece int) *gapped {
	g := &gapped{from: []int{0}}
	recorded, step, at := true, 0, 0
	var opened []struct {
		at   int
		list []schemas.SegmentBlock
	}
	var closed []int
	g.model = v.simulate(seed, 2400, 60, func(m *model) {
		step++
		if now := (step/piece)%3 == 0; now != recorded {
			if recorded = now; now {
				opened = append(opened, struct {
					at   int
					list []schemas.SegmentBlock
				}{m.trace.Len(), m.list()})
			} else {
				closed = append(closed, m.trace.Len())
			}
		}
	})
	end := g.model.trace.Len()
	if !recorded {
		end = closed[len(closed)-1]
		closed = closed[:len(closed)-1]
	} else {
		g.final = g.model.list()
	}
	part := func(to int) {
		events := g.model.trace.Part(at, to)
		events.Pool = nil
		g.trace.AppendAll(&events)
		for ; at < to; at++ {
			g.from = append(g.from, at+1)
		}
	}
	for i, c := range closed {
		part(c)
		at = opened[i].at
		g.trace.Append(schemas.ActionGap, 0, 0, 0, 0, 0, 0, 0)
		g.gaps = append(g.gaps, Gap{Seq: int64(g.trace.Len()), List: opened[i].list})
		g.from = append(g.from, at)
	}
	part(end)
	for i := range g.final {
		g.final[i].Seq = int64(g.trace.Len())
	}
	return g
}

// If the allocator's own list follows each gap, the replay's counters after the gaps are exact, and so are all blocks
// at the end.
func TestGaps(t *testing.T) {
	for _, v := range variants {
		for _, piece := range []int{1, 7, 100, 350} {
			g := v.simulateGaps(21, piece)
			if len(g.gaps) == 0 {
				t.Fatalf("%s, %d: no gap", v.name, piece)
			}
			res, err := Run(&g.trace, v.settings, g.gaps, g.final, every(g.trace.Len())...)
			if err != nil {
				t.Fatal(err)
			}
			if res.Anomalies.Inexact() || res.Anomalies.Late() || g.final != nil &&
				(!res.Final.Exact() || res.Final.Unchecked > 0) {
				t.Fatalf("%s, %d: %s: %+v", v.name, piece, res.Anomalies.Reason(), res.Final)
			}
			checkResult(t, res, &g.trace)
			for i, c := range res.Checkpoints {
				want := g.model.history[g.from[i]]
				if c.Allocated != want.Allocated || c.Reserved != want.Reserved || c.Active != want.Active ||
					c.Requested != want.Requested {
					t.Fatalf("%s, %d: after event %d: %+v, want %+v", v.name, piece, i, c, want)
				}
			}
		}
	}
}

// If the block stays over a gap, it is one allocation. A different block at the same address after the gap is another
// allocation.
func TestGapKeepsLives(t *testing.T) {
	a := uint64(1) << 32
	var e schemas.EventColumns
	e.Append(schemas.ActionSegmentAlloc, a, 2*mib, 0, 0, 0, 0, 0)
	e.Append(schemas.ActionAlloc, a, 1000, 0, 0, 0, 0, 0)      // this block stays over the gap
	e.Append(schemas.ActionAlloc, a+1024, 600, 0, 0, 0, 0, 0)  // a block of another size takes its place in the gap
	e.Append(schemas.ActionAlloc, a+2048, 2000, 0, 0, 0, 0, 0) // this block is freed in the gap
	e.Append(schemas.ActionGap, 0, 0, 0, 0, 0, 0, 0)
	e.Append(schemas.ActionFreeRequested, a, 1000, 0, 0, 0, 0, 0)
	e.Append(schemas.ActionFreeCompleted, a, 1000, 0, 0, 0, 0, 0)
	used := func(at uint64, block, requested int64) schemas.SegmentBlock {
		return schemas.SegmentBlock{SegmentAddress: a, SegmentBytes: 2 * mib, SegmentType: "small", Address: at,
			BlockBytes: block, RequestedBytes: requested, State: schemas.BlockActive}
	}
	rest := schemas.SegmentBlock{SegmentAddress: a, SegmentBytes: 2 * mib, SegmentType: "small", Address: a + 2048,
		BlockBytes: 2*mib - 2048, State: schemas.BlockInactive}
	list := []schemas.SegmentBlock{used(a, 1024, 1000), used(a+1024, 1024, 700), rest}
	res, err := Run(&e, Settings{}, []Gap{{5, list}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	type life struct{ alloc, free int64 }
	var got []life
	for _, l := range res.Allocs {
		got = append(got, life{l.AllocSeq, l.FreeRequestedSeq})
	}
	want := []life{{2, 6}, {3, 5}, {4, 5}, {5, 0}}
	if len(got) != len(want) {
		t.Fatalf("lives %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("life %d: %v, want %v", i, got[i], want[i])
		}
	}
	if res.Allocated[5] != 2048 || res.Allocated[7] != 1024 {
		t.Errorf("allocated %v", res.Allocated)
	}
	list[1].Address += 512
	if _, err := Run(&e, Settings{}, []Gap{{5, list}}, nil); err == nil ||
		!strings.Contains(err.Error(), "gap at event 5") {
		t.Errorf("a list with a hole: %v", err)
	}
	if _, err := Run(&e, Settings{}, []Gap{{9, nil}}, nil); err == nil {
		t.Error("a gap beyond the last event")
	}
}
