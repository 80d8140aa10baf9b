package replay

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

type variant struct {
	name     string
	settings Settings
	model    func(*model)
	streams  uint64
}

var variants = []variant{
	{name: "default", streams: 1},
	{name: "streams", streams: 3},
	{name: "roundup", streams: 1, settings: Settings{RoundupPower2Divisions: [16]int64{8, 4, 2, 1, 16}},
		model: func(m *model) { m.divisions = [16]int64{8, 4, 2, 1, 16} }},
	{name: "max split", streams: 2, settings: Settings{MaxSplitSize: 32 << 20},
		model: func(m *model) { m.maxSplit = 32 << 20 }},
	{name: "expandable", streams: 1, settings: Settings{ExpandableSegments: true},
		model: func(m *model) { m.expandable = true }},
	{name: "expandable, streams", streams: 3, settings: Settings{ExpandableSegments: true},
		model: func(m *model) { m.expandable = true }},
	{name: "expandable, roundup", streams: 2, settings: Settings{ExpandableSegments: true,
		RoundupPower2Divisions: [16]int64{4, 4, 4, 4, 4, 4}},
		model: func(m *model) { m.expandable, m.divisions = true, [16]int64{4, 4, 4, 4, 4, 4} }},
}

// simulate runs the allocator's model. In the middle third of the run, allocations go to a private pool, as during the
// capture of a CUDA graph.
func (v *variant) simulate(seed uint64, n, live int, each func(*model)) *model {
	m := newModel()
	if v.model != nil {
		v.model(m)
	}
	rnd := rand.New(rand.NewPCG(seed, 7))
	step := 0
	m.run(rnd, n, live, v.streams, func() {
		if step++; step == n/3 {
			m.graph = 9
		} else if step == 2*n/3 {
			m.graph = 0
		}
		if each != nil {
			each(m)
		}
	})
	return m
}

func every(n int) []int64 {
	at := make([]int64, n+1)
	for i := range at {
		at[i] = int64(i)
	}
	return at
}

// The replay has the same blocks, counters and peaks after each event as the allocator's model. At the end it has the
// model's list of blocks.
func TestReplayEqualsModel(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			var splits, merges, slack, pools int
			for seed := range uint64(6) {
				m := v.simulate(seed, 2500, 60, func(m *model) { m.hidePools = seed%2 == 0 })
				res, err := Run(&m.trace, v.settings, nil, m.list(), every(m.trace.Len())...)
				if err != nil {
					t.Fatal(err)
				}
				if res.Anomalies != (Anomalies{}) {
					t.Errorf("seed %d: anomalies in a complete recording: %s", seed, res.Anomalies.Reason())
				}
				if !res.Final.Exact() || res.Final.Unchecked > 0 || res.Final.Blocks == 0 {
					t.Fatalf("seed %d: %+v", seed, res.Final)
				}
				if !reflect.DeepEqual(res.Checkpoints, m.history) {
					for i := range m.history {
						if res.Checkpoints[i] != m.history[i] {
							t.Fatalf("seed %d: after event %d: replayed %+v, want %+v", seed, i, res.Checkpoints[i],
								m.history[i])
						}
					}
				}
				checkResult(t, res, &m.trace)
				last := m.history[len(m.history)-1]
				if res.PeakAllocated != last.AllocatedPeak || res.PeakReserved != last.ReservedPeak {
					t.Errorf("seed %d: peaks %d and %d, want %d and %d", seed, res.PeakAllocated, res.PeakReserved,
						last.AllocatedPeak, last.ReservedPeak)
				}
				for _, a := range res.Allocs {
					if a.Pool != 0 {
						pools++
					}
				}
				splits += m.seen[0]
				merges += m.seen[1]
				slack += m.seen[2]
			}
			if splits == 0 || merges == 0 || pools == 0 || slack == 0 && !v.settings.ExpandableSegments {
				t.Errorf("the traces exercise too little: %d splits, %d merges, %d blocks with slack, %d in pools",
					splits, merges, slack, pools)
			}
		})
	}
}

// checkResult checks properties that the replay of any trace must have.
func checkResult(t *testing.T, res *Result, e *schemas.EventColumns) {
	t.Helper()
	n := int64(e.Len())
	if res.Events != n || int64(len(res.Allocated)) != n+1 {
		t.Fatalf("%d events, %d values for %d events", res.Events, len(res.Allocated), n)
	}
	delta := make([]int64, n+2)
	seq := int64(0)
	for i, a := range res.Allocs {
		if a.AllocSeq < seq || a.AllocSeq > n || a.Block < a.Requested || a.Requested < 0 {
			t.Fatalf("alloc %d out of order or of an impossible size: %+v", i, a)
		}
		seq = a.AllocSeq
		if a.FreeRequestedSeq != 0 && a.FreeRequestedSeq <= a.AllocSeq || a.FreeCompletedSeq != 0 &&
			a.FreeCompletedSeq < a.FreeRequestedSeq ||
			a.FreeCompletedSeq != 0 && a.FreeRequestedSeq == 0 {
			t.Fatalf("alloc %d ends before it begins: %+v", i, a)
		}
		delta[a.AllocSeq] += a.Block
		if a.FreeRequestedSeq != 0 {
			delta[a.FreeRequestedSeq] -= a.Block
		}
	}
	var live, peak, peakSeq int64 = 0, -1, 0
	for i, v := range res.Allocated {
		if live += delta[i]; v != live {
			t.Fatalf("allocated after event %d is %d, but live blocks hold %d", i, v, live)
		}
		if v > peak {
			peak, peakSeq = v, int64(i)
		}
	}
	if res.PeakAllocated != peak || res.PeakSeq != peakSeq {
		t.Fatalf("peak %d at event %d, want %d at %d", res.PeakAllocated, res.PeakSeq, peak, peakSeq)
	}
}

// If a trace is replayed in chunks of any size, the result is the same.
func TestChunksGiveTheSame(t *testing.T) {
	v := variants[5]
	m := v.simulate(3, 3000, 60, nil)
	want, err := Run(&m.trace, v.settings, nil, m.list())
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	r, err := New(v.settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < m.trace.Len(); {
		to := min(m.trace.Len(), from+rnd.IntN(700))
		if err := r.Apply(chunkOf(&m.trace, int64(from), int64(to))); err != nil {
			t.Fatal(err)
		}
		from = to
	}
	if got := r.Finish(m.list()); !reflect.DeepEqual(got, want) {
		t.Errorf("in chunks %+v, at once %+v", got.Final, want.Final)
	}
}

// tail returns the model's trace without its first n events.
func tail(m *model, n int) *schemas.EventColumns {
	return chunkOf(&m.trace, int64(n), int64(m.trace.Len()))
}

// If a recording began late but has the allocator's own list from that moment, its replay is exact.
func TestLateRecordingWithStart(t *testing.T) {
	for _, v := range variants {
		var start []schemas.SegmentBlock
		cut := 0
		step := 0
		m := v.simulate(11, 2500, 60, func(m *model) {
			if step++; step == 1200 {
				start, cut = m.list(), m.trace.Len()
			}
		})
		r, err := New(v.settings, start)
		if err != nil {
			t.Fatal(err)
		}
		e := tail(m, cut)
		for i := range e.Len() + 1 {
			r.Checkpoint()
			if i < e.Len() {
				if err := r.Apply(chunkOf(e, int64(i), int64(i+1))); err != nil {
					t.Fatal(err)
				}
			}
		}
		final := m.list()
		for i := range final {
			final[i].Seq -= int64(cut)
		}
		res := r.Finish(final)
		if !res.Final.Exact() || res.Final.Unchecked > 0 || res.Anomalies.Inexact() || !res.Anomalies.Late() {
			t.Fatalf("%s: %s: %+v", v.name, res.Anomalies.Reason(), res.Final)
		}
		checkResult(t, res, e)
		for i, c := range res.Checkpoints {
			want := m.history[cut+i]
			if c.Allocated != want.Allocated || c.Reserved != want.Reserved || c.Active != want.Active ||
				c.Requested != want.Requested {
				t.Fatalf("%s: after event %d: %+v, want %+v", v.name, i, c, want)
			}
		}
	}
}

// The replay can be compared with a list that the allocator made in the middle of the recording, for example at an OOM.
func TestCompareInTheMiddle(t *testing.T) {
	v := variants[1]
	var lists [][]schemas.SegmentBlock
	step := 0
	m := v.simulate(5, 2000, 60, func(m *model) {
		if step++; step%250 == 0 {
			lists = append(lists, m.list())
		}
	})
	res, err := Run(&m.trace, v.settings, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Final != nil {
		t.Errorf("compared with no list: %+v", res.Final)
	}
	for _, list := range lists {
		if c := compareUsed(res, list); !c.Exact() || c.Blocks != int64(len(list)) {
			t.Errorf("at event %d: %+v", list[0].Seq, c)
		}
	}
	// The comparison finds any changed block in a list.
	list := lists[len(lists)-1]
	for i := range list {
		if list[i].State == schemas.BlockInactive {
			continue
		}
		for name, change := range map[string]func(*schemas.SegmentBlock){
			"size":      func(b *schemas.SegmentBlock) { b.BlockBytes += 512 },
			"requested": func(b *schemas.SegmentBlock) { b.RequestedBytes++ },
			"address":   func(b *schemas.SegmentBlock) { b.Address += 512 },
			"state":     func(b *schemas.SegmentBlock) { b.State = schemas.BlockInactive },
		} {
			old := list[i]
			change(&list[i])
			if c := compareUsed(res, list); c.Exact() || c.Differing == 0 || len(c.Differences) == 0 {
				t.Errorf("a changed %s of block %d is not found", name, i)
			}
			list[i] = old
		}
	}
}

// If a recording lacks one event, the replay reports anomalies or a list that differs. Only if a free_requested event
// is lost, the replay goes on as if the recording were complete.
func TestLostEventsAreSeen(t *testing.T) {
	v := variants[0]
	m := v.simulate(2, 2500, 60, nil)
	rnd := rand.New(rand.NewPCG(4, 4))
	for _, action := range []schemas.Action{schemas.ActionAlloc, schemas.ActionFreeRequested,
		schemas.ActionFreeCompleted, schemas.ActionSegmentAlloc} {
		var places []int
		for i, a := range m.trace.Action {
			if a == action {
				places = append(places, i)
			}
		}
		for range 20 {
			var e schemas.EventColumns
			lost := places[rnd.IntN(len(places))]
			for i := range m.trace.Len() {
				if i != lost {
					e.Append(m.trace.Action[i], m.trace.Addr[i], m.trace.Size[i], m.trace.StreamOf(i), 0, 0, 0,
						m.trace.PoolOf(i))
				}
			}
			list := m.list()
			res, err := Run(&e, v.settings, nil, list)
			if err != nil {
				t.Fatal(err)
			}
			checkResult(t, res, &e)
			ok := res.Anomalies == (Anomalies{}) && res.Final.Exact()
			// If a free_requested event is lost, the free_completed event still frees the block. Only allocated then
			// falls an event late.
			if want := action == schemas.ActionFreeRequested; ok != want {
				t.Errorf("%v event %d lost: exact is %v: %s", action, lost, ok, fmt.Sprint(res.Anomalies.Reason()))
			}
		}
	}
}

// compareUsed compares the used blocks of a replay with a list that the allocator made after any event. The used blocks
// and the segments determine the free blocks, because adjacent free blocks merge.
func compareUsed(r *Result, list []schemas.SegmentBlock) *Comparison {
	rows, _ := byAddress(list)
	if len(rows) == 0 {
		return &Comparison{}
	}
	return r.compare(rows, nil, rows[0].Seq)
}

// chunkOf returns the events after event from, up to event to.
func chunkOf(e *schemas.EventColumns, from, to int64) *schemas.EventColumns {
	part := e.Part(int(from), int(to))
	return &part
}
