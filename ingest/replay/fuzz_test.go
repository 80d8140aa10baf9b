package replay

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// decode turns any bytes into events, lists and settings. The events' addresses lie in a small range, so blocks often
// overlap.
func decode(data []byte) (e schemas.EventColumns, start, final []schemas.SegmentBlock, s Settings) {
	if len(data) > 0 {
		s.ExpandableSegments = data[0]&1 != 0
		s.MaxSplitSize = int64(data[0]&2) << 23
		if data[0]&4 != 0 {
			s.RoundupPower2Divisions = [16]int64{4, 2, 8, 3, 1 << 40}
		}
		data = data[1:]
	}
	for len(data) >= 6 {
		kind, addr, size := data[0], uint64(data[1])<<18|uint64(data[2])<<9, int64(binary.LittleEndian.Uint16(data[3:]))
		stream := uint64(data[5] & 1)
		switch data[5] >> 4 {
		case 0:
			size <<= 9
		case 1:
			size <<= 12
		case 2:
			size <<= 18
		case 3:
			size, addr = -size, addr<<40
		case 4:
			addr = addr / 4 << 20
			size = size % 32 << 20
		}
		b := schemas.SegmentBlock{SegmentAddress: addr &^ (1<<21 - 1), SegmentBytes: 2 << 20, Address: addr,
			BlockBytes:     size,
			RequestedBytes: size, State: []string{schemas.BlockActive, schemas.BlockInactive,
				schemas.BlockPendingFree}[data[5]%3],
			Expandable: data[5]&2 != 0, Stream: stream, Pool: uint64(data[5]&4) * 3}
		switch {
		case kind < 240:
			e.Append(schemas.Action(kind%13), addr, size, stream, 0, 0, 0, uint64(data[5]&8))
		case kind < 244: // a block that fills its segment, so the list can be right
			b.SegmentAddress, b.SegmentBytes = b.Address, b.BlockBytes
			start = append(start, b)
		default:
			final = append(final, b)
		}
		data = data[6:]
	}
	return e, start, final, s
}

// For any events, the replay gives a consistent result and does not panic.
func FuzzReplay(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		data := make([]byte, 200*(n+1))
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, start, final, settings := decode(data)
		survive(t, &e, start, final, settings)
	})
}

// survive replays events that may be inconsistent, and checks that the parts of the result agree with each other.
func survive(t *testing.T, e *schemas.EventColumns, start, final []schemas.SegmentBlock, settings Settings) {
	t.Helper()
	r, err := New(settings, start)
	if err != nil {
		if r, err = New(settings, nil); err != nil {
			t.Fatal(err)
		}
	}
	half := int64(e.Len() / 2)
	if err := r.Apply(chunkOf(e, 0, half)); err != nil {
		t.Fatal(err)
	}
	r.Checkpoint()
	checkHeap(t, &r.heap)
	if err := r.Apply(chunkOf(e, half, int64(e.Len()))); err != nil {
		t.Fatal(err)
	}
	r.Checkpoint()
	checkHeap(t, &r.heap)
	res := r.Finish(final)
	checkResult(t, res, e)
	for _, c := range res.Checkpoints {
		var active, requested int64
		res.eachActive(c.Seq, func(a *Alloc) { active += a.Block; requested += a.Requested })
		if c.Active != active || c.Requested != requested || c.Allocated != res.Allocated[c.Seq] ||
			c.Reserved != res.Reserved.At(c.Seq) {
			t.Fatalf("counters %+v, but active blocks hold %d for %d", c, active, requested)
		}
		if peak, _ := res.PeakBetween(0, c.Seq); peak != c.AllocatedPeak ||
			res.Reserved.PeakBetween(0, c.Seq) != c.ReservedPeak {
			t.Fatalf("peaks of %+v are not the highest values: %d", c, peak)
		}
	}
	if int64(len(res.Allocs)) > int64(e.Len()+len(start)+len(final)) {
		t.Fatalf("%d blocks of %d events", len(res.Allocs), e.Len())
	}
	res.Anomalies.Reason()
	compareUsed(res, final)
}

// TestDamagedTraces damages the traces of the allocator's model. TestDamagedTraces drops, doubles, swaps or changes
// events, and uses wrong settings.
func TestDamagedTraces(t *testing.T) {
	for seed := range uint64(60) {
		v := variants[seed%uint64(len(variants))]
		m := v.simulate(seed, 1200, 60, nil)
		rnd := rand.New(rand.NewPCG(seed, 5))
		rate := 2 + rnd.IntN(400)
		var e schemas.EventColumns
		for i := 0; i < m.trace.Len(); i++ {
			j, addr, size, action := i, m.trace.Addr[i], m.trace.Size[i], m.trace.Action[i]
			if rnd.IntN(rate) == 0 {
				switch rnd.IntN(6) {
				case 0:
					continue
				case 1:
					j = rnd.IntN(m.trace.Len())
					addr, size, action = m.trace.Addr[j], m.trace.Size[j], m.trace.Action[j]
				case 2:
					addr += 512 * uint64(rnd.IntN(100))
				case 3:
					size = rnd.Int64N(1 << (1 + rnd.IntN(46)))
				case 4:
					action = schemas.Action(rnd.IntN(12))
				case 5:
					i--
				}
			}
			e.Append(action, addr, size, m.trace.StreamOf(j), 0, 0, 0, m.trace.PoolOf(j))
		}
		survive(t, &e, nil, m.list(), variants[rnd.IntN(len(variants))].settings)
	}
}

// checkHeap checks that the indices of the replay's heap agree with each other.
func checkHeap(t *testing.T, h *heap) {
	t.Helper()
	end := uint64(0)
	for _, r := range h.order {
		run := &h.runs[r]
		if run.addr < end || run.size <= 0 {
			t.Fatalf("run at %#x, size %d, overlaps the one before, which ends at %#x", run.addr, run.size, end)
		}
		end = run.end()
		at, prev := run.addr, none
		for i := run.head; i != none; i = h.blocks[i].next {
			b := &h.blocks[i]
			if b.addr < at || b.end() > end || b.size <= 0 || b.prev != prev || b.run != r {
				t.Fatalf("block %+v in run %+v, after %#x", b, run, at)
			}
			if h.at.get(b.addr) == none {
				t.Fatalf("block at %#x has no entry", b.addr)
			}
			at, prev = b.end(), i
		}
		if run.tail != prev {
			t.Fatalf("run at %#x: tail %d, last block %d", run.addr, run.tail, prev)
		}
	}
}

// TestAddrMap compares addrMap with Go's map. TestAddrMap also deletes entries, which moves others across the end of
// the table.
func TestAddrMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 9))
	m, want := newAddrMap(), map[uint64]int32{}
	for i := range 400000 {
		a := (1 + rnd.Uint64N(3000)) * 512
		if i > 200000 {
			a = (1 + rnd.Uint64N(60000)) * 512
		}
		switch rnd.IntN(3) {
		case 0:
			m.put(a, int32(i))
			want[a] = int32(i)
		case 1:
			m.delete(a)
			delete(want, a)
		}
		if got, ok := want[a]; m.n != len(want) || ok && m.get(a) != got || !ok && m.get(a) != none {
			t.Fatalf("step %d: %d entries, want %d; %#x is %d, want %d", i, m.n, len(want), a, m.get(a), got)
		}
	}
	for a, v := range want {
		if m.get(a) != v {
			t.Fatalf("%#x is %d, want %d", a, m.get(a), v)
		}
	}
	if m.get(0) != none {
		t.Error("address 0 has a block")
	}
}
