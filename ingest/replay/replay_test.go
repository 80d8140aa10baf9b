package replay

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
)

type ev struct {
	a    schemas.Action
	addr uint64
	size int64
}

func columns(list ...ev) *schemas.EventColumns {
	var e schemas.EventColumns
	for _, v := range list {
		e.Append(v.a, v.addr, v.size, 0, 0, 0, 0, 0)
	}
	return &e
}

const (
	alloc       = schemas.ActionAlloc
	freeRequest = schemas.ActionFreeRequested
	completed   = schemas.ActionFreeCompleted
	segAlloc    = schemas.ActionSegmentAlloc
	segFree     = schemas.ActionSegmentFree
	segMap      = schemas.ActionSegmentMap
	segUnmap    = schemas.ActionSegmentUnmap
)

func mustRun(t *testing.T, s Settings, final []schemas.SegmentBlock, list ...ev) *Result {
	t.Helper()
	e := columns(list...)
	res, err := Run(e, s, nil, final, every(e.Len())...)
	if err != nil {
		t.Fatal(err)
	}
	checkResult(t, res, e)
	return res
}

func equal(t *testing.T, what string, got, want []int64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
}

// The expected sizes were computed by hand from torch's documentation of each setting.
func TestRound(t *testing.T) {
	var plain, four, mixed Settings
	for i := range four.RoundupPower2Divisions {
		four.RoundupPower2Divisions[i] = 4
	}
	mixed.RoundupPower2Divisions[0] = 1
	mixed.RoundupPower2Divisions[8] = 2 // 256 MiB to 512 MiB
	for _, c := range []struct {
		s       *Settings
		n, want int64
	}{
		{&plain, 0, 512}, {&plain, 1, 512}, {&plain, 512, 512}, {&plain, 513, 1024}, {&plain, 1200, 1536},
		{&plain, mib + 1, mib + 512},
		{&four, 1200, 1536}, // up to 512·4 the size is not divided
		{&four, 2048, 2048}, {&four, 2049, 2560}, {&four, 2560, 2560}, {&four, 2561, 3072}, {&four, 3585, 4096},
		{&four, 4096, 4096},
		{&four, 5 * mib, 5 * mib}, {&four, 5*mib + 1, 6 * mib}, {&four, 100 << 30, 112 << 30},
		{&mixed, 300 * mib, 384 * mib}, {&mixed, 400 * mib, 512 * mib}, {&mixed, 600 * mib, 600 * mib},
		{&mixed, 1000, 1024},
	} {
		if got := c.s.round(c.n); got != c.want {
			t.Errorf("%d bytes with divisions %v are rounded to %d, want %d", c.n, c.s.RoundupPower2Divisions, got,
				c.want)
		}
	}
}

func TestSetDivisions(t *testing.T) {
	var s, want Settings
	want.RoundupPower2Divisions[1], want.RoundupPower2Divisions[15] = 8, 4
	for mib, n := range map[int64]int64{1: 0, 2: 8, 32768: 4} {
		if err := s.SetDivisions(mib, n); err != nil {
			t.Error(err)
		}
	}
	for mib, n := range map[int64]int64{3: 2, 0: 2, -2: 2, 65536: 2, 2: -2} {
		if err := s.SetDivisions(mib, n); err == nil || !strings.HasPrefix(err.Error(), "allocator setting ") {
			t.Errorf("%d divisions for %d MiB: %v", n, mib, err)
		}
	}
	if s != want {
		t.Errorf("%+v", s)
	}
}

// If a remainder of exactly 1 MiB is left of a large block, it stays in the block as slack. A larger remainder is split
// off. A small block keeps less than 512 B as slack.
func TestSlack(t *testing.T) {
	const a, b, c = 0x7f0000000000, 0x7f1000000000, 0x7f2000000000
	res := mustRun(t, Settings{}, nil,
		ev{segAlloc, a, 20 * mib}, ev{alloc, a, 19 * mib},
		ev{segAlloc, b, 20 * mib}, ev{alloc, b, 19*mib - 512},
		ev{segAlloc, c, 2 * mib}, ev{alloc, c, 1000 * kib}, ev{alloc, c + 1000*1024, 1000 * kib})
	equal(t, "allocated", res.Allocated, []int64{0, 0, 20 * mib, 20 * mib, 39*mib - 512, 39*mib - 512,
		39*mib - 512 + 1000*kib, 39*mib - 512 + 2000*kib})
	if res.Anomalies != (Anomalies{}) {
		t.Error(res.Anomalies.Reason())
	}
}

// If another stream uses a freed block, allocated falls at the request to free, but active and requested fall only when
// the free completes. Until then, the block does not merge with its neighbours.
func TestPendingFree(t *testing.T) {
	const a = 0x7f0000000000
	res := mustRun(t, Settings{}, nil,
		ev{segAlloc, a, 2 * mib}, ev{alloc, a, 1000}, ev{alloc, a + 1024, 2000}, ev{freeRequest, a + 1024, 2000},
		ev{freeRequest, a, 1000}, ev{completed, a, 1000}, ev{alloc, a, 900}, ev{completed, a + 1024, 2000},
		ev{schemas.ActionOOM, 77, 5 << 40})
	var active, requested []int64
	for _, c := range res.Checkpoints {
		active = append(active, c.Active)
		requested = append(requested, c.Requested)
	}
	equal(t, "allocated", res.Allocated, []int64{0, 0, 1024, 3072, 1024, 0, 0, 1024, 1024, 1024})
	equal(t, "active", active, []int64{0, 0, 1024, 3072, 3072, 3072, 2048, 3072, 1024, 1024})
	equal(t, "requested", requested, []int64{0, 0, 1000, 3000, 3000, 3000, 2000, 2900, 900, 900})
	if bytes, seq := res.PeakBetween(4, 9); bytes != 1024 || seq != 4 {
		t.Errorf("peak of events 4 to 9 is %d at %d", bytes, seq)
	}
	if bytes, seq := res.PeakBetween(7, 3); bytes != 0 || seq != -1 {
		t.Errorf("peak of no events is %d at %d", bytes, seq)
	}
	want := Alloc{Address: a + 1024, Requested: 2000, Block: 2048, AllocSeq: 3, FreeRequestedSeq: 4,
		FreeCompletedSeq: 8}
	if got := res.Allocs[1]; got != want {
		t.Errorf("the block's life is %+v, want %+v", got, want)
	}
}

// If the middle of a mapped range is unmapped, two ranges remain. Mapping the middle again joins the two ranges and
// their free memory.
func TestUnmapTheMiddle(t *testing.T) {
	const a = 0x7f0000000000
	at := func(m int64) uint64 { return a + uint64(m*mib) }
	list := []ev{
		{segMap, a, 60 * mib}, {alloc, a, 10 * mib}, {alloc, at(10), 40 * mib}, {alloc, at(50), 10 * mib},
		{freeRequest, at(10), 40 * mib}, {completed, at(10), 40 * mib}, {segUnmap, at(20), 20 * mib},
		{alloc, at(10), 10 * mib}, {alloc, at(40), 10 * mib}, {freeRequest, at(40), 10 * mib},
		{completed, at(40), 10 * mib},
		{segMap, at(20), 20 * mib}, {alloc, at(20), 30 * mib},
	}
	res := mustRun(t, Settings{ExpandableSegments: true}, nil, list...)
	if res.Anomalies != (Anomalies{}) {
		t.Error(res.Anomalies.Reason())
	}
	if got := res.Reserved.At(7); got != 40*mib || res.PeakReserved != 60*mib || res.PeakReservedSeq != 1 ||
		res.Reserved.At(13) != 60*mib {
		t.Errorf("reserved %d after the unmap, peak %d at %d", got, res.PeakReserved, res.PeakReservedSeq)
	}
	if res.PeakAllocated != 60*mib || res.PeakSeq != 4 {
		t.Errorf("peak %d at %d", res.PeakAllocated, res.PeakSeq)
	}
}

// Older traces have no free_requested events, so a single event stands for a whole free.
func TestOldFrees(t *testing.T) {
	const a, b = 0x7f0000000000, 0x7f1000000000
	res := mustRun(t, Settings{}, nil, ev{segAlloc, a, 2 * mib}, ev{alloc, a, 1000}, ev{completed, a, 1000},
		ev{completed, b, 3000})
	equal(t, "allocated", res.Allocated, []int64{3072, 3072, 4096, 3072, 0})
	if n := res.Anomalies; n.UntracedBlocks != 1 || n.PendingBefore != 0 || n.Lost() != 0 || res.PeakAllocated != 4096 {
		t.Errorf("%+v, peak %d", n, res.PeakAllocated)
	}
	// In a trace with free_requested events, a free_completed event without one frees a block whose free was pending
	// before the first event. A block whose free was pending before the first event does not count as allocated in the
	// trace.
	res = mustRun(t, Settings{}, nil, ev{segAlloc, a, 2 * mib}, ev{alloc, a, 1000}, ev{freeRequest, a, 1000},
		ev{completed, a, 1000}, ev{completed, b, 3000})
	equal(t, "allocated", res.Allocated, []int64{0, 0, 1024, 0, 0, 0})
	if n := res.Anomalies; n.UntracedBlocks != 0 || n.PendingBefore != 1 || res.Checkpoints[4].Active != 3072 ||
		res.Checkpoints[5].Active != 0 {
		t.Errorf("%+v, %+v", n, res.Checkpoints)
	}
}

// CUDA graph trees restore a private pool by allocating each block with its exact size, whatever remains. If an
// allocation uses the remainder of a block, the remainder was no slack of that block, from the block's birth on.
func TestRestoredPool(t *testing.T) {
	const a = 0x7f0000000000
	res := mustRun(t, Settings{}, nil, ev{segAlloc, a, 20 * mib}, ev{alloc, a, 19*mib + 512*kib},
		ev{alloc, a + uint64(19*mib+512*kib), 512 * kib})
	equal(t, "allocated", res.Allocated, []int64{0, 0, 19*mib + 512*kib, 20 * mib})
	if n := res.Anomalies; n.SlackSplit != 1 || n.Lost() != 0 || res.Checkpoints[2].Active != 19*mib+512*kib {
		t.Errorf("%+v, %+v", n, res.Checkpoints)
	}
}

// If the trace does not name private pools, the replay takes the pool of a segment from the final list.
func TestPoolsBySegment(t *testing.T) {
	const a = 0x7f0000000000
	final := []schemas.SegmentBlock{
		{SegmentAddress: a, SegmentBytes: 2 * mib, Pool: 5, Address: a, BlockBytes: 512, RequestedBytes: 8,
			State: schemas.BlockActive},
		{SegmentAddress: a, SegmentBytes: 2 * mib, Pool: 5, Address: a + 512, BlockBytes: 2*mib - 512,
			State: schemas.BlockInactive}}
	res := mustRun(t, Settings{}, final, ev{segAlloc, a, 2 * mib}, ev{alloc, a, 4}, ev{freeRequest, a, 4},
		ev{completed, a, 4}, ev{segFree, a, 2 * mib},
		ev{segAlloc, a, 2 * mib}, ev{alloc, a, 8})
	if !res.Final.Exact() || res.Allocs[0].Pool != 0 || res.Allocs[1].Pool != 5 {
		t.Errorf("%+v, %+v", res.Final, res.Allocs)
	}
}

func TestCheck(t *testing.T) {
	v := variants[1]
	m := v.simulate(8, 1500, 60, nil)
	at := []int64{0, 400, 900, int64(m.trace.Len())}
	res, err := Run(&m.trace, v.settings, nil, nil, at...)
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range at {
		h := m.history[seq]
		good := schemas.Checkpoint{Seq: seq, AllocatedBytes: h.Allocated, AllocatedPeakBytes: h.AllocatedPeak,
			ReservedBytes:     h.Reserved,
			ReservedPeakBytes: h.ReservedPeak, ActiveBytes: h.Active, RequestedBytes: h.Requested}
		c := good
		if d, err := res.Check(&c, 0, Peaks{}); err != nil || !c.Agrees || d != (Residue{}) ||
			c.ReplayedAllocatedBytes != h.Allocated ||
			c.ReplayedAllocatedPeakBytes != h.AllocatedPeak || c.ReplayedReservedBytes != h.Reserved {
			t.Errorf("at event %d: %+v, %v, %+v", seq, d, err, c)
		}
		for _, field := range []*int64{&good.AllocatedBytes, &good.AllocatedPeakBytes, &good.ReservedBytes,
			&good.ReservedPeakBytes, &good.ActiveBytes, &good.RequestedBytes} {
			*field -= 512
			c := good
			if d, err := res.Check(&c, 0, Peaks{}); err != nil || c.Agrees || d == (Residue{}) {
				t.Errorf("at event %d: a counter that differs by 512 agrees: %+v, %v", seq, d, err)
			}
			*field += 512
		}
	}
	// The checkpoint's peaks count from the last reset of torch's peak counters.
	c := schemas.Checkpoint{Seq: 900}
	res.Check(&c, 401, Peaks{})
	var peak int64
	for _, h := range m.history[401:901] {
		peak = max(peak, h.Allocated)
	}
	if c.ReplayedAllocatedPeakBytes != peak {
		t.Errorf("peak since event 401 is %d, want %d", c.ReplayedAllocatedPeakBytes, peak)
	}
	if _, err := res.Check(&schemas.Checkpoint{Seq: 17}, 0, Peaks{}); err == nil {
		t.Error("a checkpoint at an event without counters was checked")
	}
}

func TestRefuses(t *testing.T) {
	const a = 0x7f0000000000
	e := columns(ev{segAlloc, a, 2 * mib})
	for _, at := range [][]int64{{2}, {1, 0}, {-1}} {
		if _, err := Run(e, Settings{}, nil, nil, at...); err == nil {
			t.Errorf("counters at events %v of 1", at)
		}
	}
	e.Size = nil
	if _, err := Run(e, Settings{}, nil, nil); err == nil {
		t.Error("columns of different length were replayed")
	}
	block := func(address uint64, bytes int64) schemas.SegmentBlock {
		return schemas.SegmentBlock{SegmentAddress: a, SegmentBytes: 2 * mib, Address: address, BlockBytes: bytes,
			State: schemas.BlockInactive}
	}
	other := schemas.SegmentBlock{SegmentAddress: a + 512, SegmentBytes: mib, Address: a + uint64(2*mib),
		BlockBytes: mib, State: schemas.BlockInactive}
	for name, start := range map[string][]schemas.SegmentBlock{
		"a gap":     {block(a, mib), block(a+uint64(mib)+512, mib-512)},
		"too short": {block(a, mib)},
		"too long":  {block(a, 3*mib)},
		"overlap":   {block(a, 2*mib), block(a+512, 512)},
		"outside":   {block(a, 2*mib), other},
		"no size":   {block(a, 0), block(a, 2*mib)},
		"negative":  {block(a, -512)},
		"requested too big": {{SegmentAddress: a, SegmentBytes: 512, Address: a, BlockBytes: 512, RequestedBytes: 513,
			State: schemas.BlockActive}},
	} {
		if _, err := New(Settings{}, start); err == nil || !strings.Contains(err.Error(), "before the first event") {
			t.Errorf("a list with %s: %v", name, err)
		}
	}
	if _, err := New(Settings{}, []schemas.SegmentBlock{block(a, mib), block(a+uint64(mib), mib)}); err != nil {
		t.Error(err)
	}
}
