package ladder

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// card describes a GPU of the test. The test chooses how much memory is in use outside torch. The reserved memory
// follows from the events of the ranks.
type card struct {
	uuid                   string
	index                  int32
	other, driver, context int64
	reserve                int64 // memory that the driver reserves for itself
	processes              int32
	api                    int32
	charged                bool // NVML shows how much memory each process has
}

const tick = 10_000_000

// simulate returns a run of several ranks on the second of two GPUs. The run has random events, and samples of both
// GPUs.
func simulate(r *rand.Rand, c card, ranks int) schemas.Tables {
	in := schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Status: schemas.StatusOK, Source: schemas.Measured,
		GPUs: []schemas.GPU{{Index: 0, Name: "first", UUID: "GPU-A"}, {Index: int(c.index), Name: "second",
			UUID: c.uuid, TotalBytes: 1 << 40}}}, Report: &schemas.IngestReport{}}
	const start = int64(1_795_000_000_000_000_000)
	type stamp struct{ ns, bytes int64 }
	var growth []stamp // changes of the reserved bytes of all ranks
	end := int64(0)
	for rank := range int32(ranks) {
		in.Processes = append(in.Processes, schemas.Process{Rank: rank, Device: rank, UUID: c.uuid})
		now := start
		var seq, id, live, reserved, peak, peakSeq int64
		var clock []int64
		event := func(action schemas.Action, size int64) {
			seq++
			now += r.Int64N(120_000_000)
			clock = append(clock, now)
			if action == schemas.ActionSegmentAlloc || action == schemas.ActionSegmentFree {
				in.Events = append(in.Events, schemas.Event{Rank: rank, Device: rank, Seq: seq, Action: int32(action),
					Size: size})
				if action == schemas.ActionSegmentFree {
					size = -size
				}
				// NVML counts a new segment shortly before cudaMalloc returns.
				growth = append(growth, stamp{now - r.Int64N(40_000_000), size})
			}
		}
		var alive []int
		pending := int64(0)
		for range 40 {
			if len(alive) > 0 && r.IntN(3) == 0 {
				k := r.IntN(len(alive))
				a := &in.Allocations[alive[k]]
				event(schemas.ActionFreeRequested, a.RequestedBytes)
				a.FreeRequestedSeq = seq
				live -= a.BlockBytes
				if r.IntN(2) == 0 {
					event(schemas.ActionFreeCompleted, a.RequestedBytes)
					a.FreeCompletedSeq = seq
				} else {
					pending += a.BlockBytes // a stream uses the block until the run ends
				}
				alive = slices.Delete(alive, k, k+1)
				continue
			}
			id++
			a := schemas.Allocation{Rank: rank, Device: rank, AllocID: id, RequestedBytes: 1 + r.Int64N(1<<24)}
			a.BlockBytes = (a.RequestedBytes + 511) / 512 * 512
			for live+pending+a.BlockBytes > reserved {
				reserved += 16 << 20
				event(schemas.ActionSegmentAlloc, 16<<20)
			}
			event(schemas.ActionAlloc, a.RequestedBytes)
			a.AllocSeq = seq
			live += a.BlockBytes
			if live > peak {
				peak, peakSeq = live, seq
			}
			alive = append(alive, len(in.Allocations))
			in.Allocations = append(in.Allocations, a)
			in.Owners = append(in.Owners, schemas.Owner{Rank: rank, Device: rank, AllocID: id,
				Category: schemas.Categories[r.IntN(len(schemas.Categories))], BeginSeq: seq, Evidence: schemas.Tagged})
		}
		now += 300_000_000
		event(schemas.ActionAnnotate, 0)
		end = max(end, now)
		in.Clocks = append(in.Clocks, schemas.EventClock{Rank: rank, Device: rank, TimeNS: clock})
		in.Report.Devices = append(in.Report.Devices, schemas.DeviceVerdict{Rank: rank, Device: rank,
			Verdict: schemas.Exact, Events: seq, PeakSeq: peakSeq,
			PeakAllocatedBytes: peak, InstrumentedPeakSeq: &peakSeq, PeakReservedBytes: reserved})
	}
	in.Reserved = schemas.DeriveReserved(in.Events, in.Report.Devices)
	for i := range in.Processes {
		in.Processes[i].EndNS = end
	}
	for ns := start - 5*tick; ns <= end; ns += tick {
		ours := c.context
		for _, g := range growth {
			if g.ns <= ns {
				ours += g.bytes
			}
		}
		s := schemas.Sample{Device: c.index, TimeNS: ns, UsedBytes: c.other + c.driver + ours, MemoryAPI: c.api,
			OtherProcesses: c.processes}
		if c.api == 2 {
			s.ReservedBytes = c.reserve
		} else {
			s.UsedBytes += c.reserve
		}
		if c.charged && ns/tick%5 == 0 {
			s.ProcessBytes = &ours
		}
		in.Samples = append(in.Samples, schemas.Sample{Device: 0, TimeNS: ns, UsedBytes: 1 << 50, MemoryAPI: c.api}, s)
	}
	return in
}

// checkRungs checks that every rung with parts is the sum of its parts. checkRungs returns the bytes of each rung by
// the rung's name.
func checkRungs(t *testing.T, m *Moment) map[string]int64 {
	t.Helper()
	bytes, sums := map[string]int64{}, map[string]int64{}
	for _, r := range m.Rungs {
		if r.Bytes == nil {
			t.Fatalf("%s: nothing is known of %s", m.At, r.Rung)
		}
		if _, twice := bytes[r.Rung]; twice || *r.Bytes < 0 {
			t.Fatalf("%s: %s is there twice, or has %d bytes", m.At, r.Rung, *r.Bytes)
		}
		bytes[r.Rung] = *r.Bytes
		if r.In == nil {
			continue
		}
		if _, ok := bytes[*r.In]; !ok {
			t.Fatalf("%s: %s comes before %s, which it is in", m.At, r.Rung, *r.In)
		}
		sums[*r.In] += *r.Bytes
	}
	for rung, sum := range sums {
		if sum != bytes[rung] {
			t.Errorf("%s: %s has %d bytes, the rungs in it %d", m.At, rung, bytes[rung], sum)
		}
	}
	return bytes
}

// On each GPU every rung is the exact sum of its parts. The memory outside torch is the amount that the test chose.
func TestLadderRungsSum(t *testing.T) {
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 5))
		c := card{uuid: "GPU-B", index: 3, driver: 9 << 20, context: 700<<20 + r.Int64N(1<<20), reserve: 600 << 20,
			api: 1 + r.Int32N(2), charged: r.IntN(3) > 0}
		if r.IntN(2) == 0 {
			c.other, c.processes = 5<<30, 1
		}
		in := simulate(r, c, 1+r.IntN(2))
		run, err := Of(in)
		if err != nil || len(run.GPUs) != 1 || len(run.GPUs[0].Moments) != 1+len(in.Report.Devices) ||
			len(run.Warnings)+len(run.Unsampled) > 0 {
			t.Fatalf("seed %d: %+v, %v", seed, run, err)
		}
		g := &run.GPUs[0]
		if *g.Index != 3 || *g.GPU != "second" {
			t.Fatalf("seed %d: the wrong GPU: %+v", seed, g)
		}
		outside := c.other + c.driver + c.context
		driver, mine := RungDriver, "context+modules+non_torch"
		if c.api == 1 {
			outside += c.reserve
			driver = "driver_reserve+driver"
		}
		switch {
		// if NVML does not list the recorded process, it does not list other processes either
		case c.processes > 0 || !c.charged:
			driver = "other_processes+" + driver
		}
		if !c.charged {
			driver, mine = "", driver+"+"+mine
		}
		for i := range g.Moments {
			m := &g.Moments[i]
			bytes := checkRungs(t, m)
			if got := bytes[RungDeviceUsed] - bytes[RungReserved]; got != outside {
				t.Errorf("seed %d, %s: %d bytes outside torch, want %d\n%+v", seed, m.At, got, outside, m)
			}
			want := c.context
			if !c.charged {
				want = outside
			}
			if got, ok := bytes[mine]; !ok || got != want {
				t.Errorf("seed %d, %s: %s has %d, want %d: %v", seed, m.At, mine, got, want, bytes)
			}
			if _, ok := bytes[driver]; driver != "" && !ok {
				t.Errorf("seed %d, %s: no rung %s in %v", seed, m.At, driver, bytes)
			}
			if m.At == AllocatorPeak && len(in.Report.Devices) == 1 &&
				bytes[RungAllocated] != in.Report.Devices[0].PeakAllocatedBytes {
				t.Errorf("seed %d: allocated at the peak %d, want %d", seed, bytes[RungAllocated],
					in.Report.Devices[0].PeakAllocatedBytes)
			}
		}
		top := int64(0)
		for _, s := range in.Samples {
			if s.Device == 3 {
				top = max(top, s.UsedBytes)
			}
		}
		if m := &g.Moments[0]; m.At != DevicePeak || *m.Rung(RungDeviceUsed).Bytes != top {
			t.Errorf("seed %d: the device's peak is %+v, want %d", seed, m.Rung(RungDeviceUsed), top)
		}
		if len(g.OutsideTorch) != 1 || g.OutsideTorch[0].Bytes != outside {
			t.Errorf("seed %d: outside torch %+v", seed, g.OutsideTorch)
		}
	}
}

// torch keeps the memory that it reserved, so the highest memory of a device lasts for many samples. The peak of the
// device is the sample among these with the most allocated bytes.
func TestLadderOfAPlateau(t *testing.T) {
	for seed := range uint64(40) {
		in := simulate(rand.New(rand.NewPCG(seed, 11)), card{uuid: "GPU-B", index: 1, driver: 9 << 20,
			context: 700 << 20, api: 2}, 1)
		run, err := Of(in)
		if err != nil {
			t.Fatal(err)
		}
		m := run.GPUs[0].Moments[0]
		d := newAllocator(&in, identity.Place{}, memory.NewLedgers(&in).Of(identity.Place{}))
		var top, most int64
		for _, s := range in.Samples {
			if s.Device == 1 {
				top = max(top, s.UsedBytes)
			}
		}
		for _, s := range in.Samples {
			if st := d.at(s.TimeNS); s.Device == 1 && s.UsedBytes == top && st != nil && st.settled {
				plain := plainBreakdown(d.ledger, st.seq)
				most = max(most, plain.AllocatedBytes)
			}
		}
		if got := checkRungs(t, &m)[RungAllocated]; m.At != DevicePeak || most == 0 || got != most {
			t.Errorf("seed %d: %s with %d bytes allocated, and %d at the most that was sampled at that height", seed,
				m.At, got, most)
		}
	}
}

// If a stream still uses a block, the block counts neither as allocated nor as free.
func TestLadderPendingFree(t *testing.T) {
	in := simulate(rand.New(rand.NewPCG(4, 4)), card{uuid: "GPU-B", index: 1, context: 1 << 20, api: 2, charged: true},
		1)
	run, err := Of(in)
	if err != nil {
		t.Fatal(err)
	}
	m := &run.GPUs[0].Moments[1]
	var want int64
	for _, a := range in.Allocations {
		if a.FreeRequestedSeq != 0 && a.FreeRequestedSeq <= *m.Event && a.FreeCompletedSeq == 0 {
			want += a.BlockBytes
		}
	}
	if got := *m.Rung(RungPendingFree).Bytes; got < want || want == 0 {
		t.Errorf("pending free %d, at least %d are pending to the end", got, want)
	}
}

// If a value of the ladder is unknown, it is null, and a remark gives the reason.
func TestLadderOfWhatIsNotKnown(t *testing.T) {
	base := func() schemas.Tables {
		return simulate(rand.New(rand.NewPCG(7, 7)), card{uuid: "GPU-B", index: 1, context: 1 << 20, api: 2,
			charged: true}, 1)
	}
	for _, c := range []struct {
		name   string
		want   Unsampled
		change func(*schemas.Tables)
	}{
		{"predicted", Unsampled{Why: UnsampledPhantom}, func(in *schemas.Tables) { in.Manifest.Source = schemas.Predicted }},
		{"imported", Unsampled{Why: UnsampledImported}, func(in *schemas.Tables) { in.Manifest.Source = schemas.Imported }},
		{"no samples", Unsampled{Why: UnsampledNever, Device: "cuda:0"}, func(in *schemas.Tables) { in.Samples = nil }},
		{"a MIG instance", Unsampled{Why: UnsampledUnknown, Device: "cuda:0", UUID: "MIG-1"}, func(in *schemas.Tables) {
			in.Processes[0].UUID = "MIG-1"
		}},
		{"which of two", Unsampled{Why: UnsampledWhich, Device: "cuda:0", GPUs: 2}, func(in *schemas.Tables) {
			in.Processes = nil
		}},
		{"twins", Unsampled{Why: UnsampledTwin, Device: "cuda:0", UUID: "GPU-B"}, func(in *schemas.Tables) {
			in.Manifest.GPUs[0].UUID = "GPU-B"
		}},
	} {
		in := base()
		c.change(&in)
		run, err := Of(in)
		if err != nil || len(run.GPUs) != 1 || len(run.GPUs[0].Moments) != 1 ||
			!slices.Equal(run.Unsampled, []Unsampled{c.want}) {
			t.Errorf("%s: %+v, %v", c.name, run, err)
			continue
		}
		m := &run.GPUs[0].Moments[0]
		if used := m.Rung(RungDeviceUsed); used == nil || used.Bytes != nil || used.How != HowUnknown {
			t.Errorf("%s: device used is %+v", c.name, used)
		}
		known := &Moment{At: m.At}
		for _, r := range m.Rungs[2:] {
			if r.Rung == RungReserved {
				r.In = nil
			}
			known.Rungs = append(known.Rungs, r)
		}
		if bytes := checkRungs(t, known); bytes[RungAllocated] != in.Report.Devices[0].PeakAllocatedBytes {
			t.Errorf("%s: %v", c.name, bytes)
		}
	}
	in := base()
	in.Report.Devices, in.Allocations = nil, nil
	if run, err := Of(in); err == nil || len(run.GPUs) != 0 {
		t.Errorf("a run without a GPU: %+v, %v", run, err)
	}
}

// For steps without events, the ladder uses torch's counters at the ends of the step, if they leave only one possible
// value. Otherwise it does not separate torch's memory from the rest.
func TestLadderOfStepsThatWereNotRecorded(t *testing.T) {
	bare := func(reservedEnd int64, used func(ns int64) int64) schemas.Tables {
		in := schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Status: schemas.StatusOK, Source: schemas.Measured,
			Bare: true, GPUs: []schemas.GPU{{Name: "one"}}},
			Report: &schemas.IngestReport{Devices: []schemas.DeviceVerdict{{Verdict: schemas.Unverifiable}}}}
		in.Steps = []schemas.Step{{StartNS: 0, EndNS: 100 * tick, ReservedBegin: new(int64(1000)),
			AllocatedBegin: new(int64(400)), ReservedEnd: new(reservedEnd), AllocatedEnd: new(int64(500))}}
		for ns := int64(-10 * tick); ns <= 110*tick; ns += tick {
			in.Samples = append(in.Samples, schemas.Sample{TimeNS: ns, UsedBytes: used(ns), MemoryAPI: 2})
		}
		return in
	}
	of := func(in schemas.Tables) *Moment {
		run, err := Of(in)
		if err != nil || len(run.GPUs) != 1 || len(run.GPUs[0].Moments) != 1 {
			t.Fatalf("%+v, %v", run, err)
		}
		return &run.GPUs[0].Moments[0]
	}
	flat := of(bare(1000, func(ns int64) int64 {
		if ns == 50*tick {
			return 1701
		}
		return 1700
	}))
	if b := checkRungs(t, flat); b[RungReserved] != 1000 || b[RungDeviceUsed] != 1701 ||
		flat.Rung(RungAllocated) != nil || flat.Rung(RungReserved).How != HowCounted {
		t.Errorf("counters agree: %v", b)
	}
	grown := of(bare(3000, func(ns int64) int64 {
		if ns >= 30*tick {
			return 3700
		}
		return 1700
	}))
	if b := checkRungs(t, grown); b[RungReserved] != 3000 || b[RungAllocated] != 500 ||
		b["pending_free+cached"] != 2500 || *grown.TimeNS < 97*tick {
		t.Errorf("a plateau that lasts to the step's end: %v at %d", b, *grown.TimeNS)
	}
	// The device's memory rises between the counter and the sample. The cause may be a segment that torch reserved and
	// released in this time.
	for _, at := range []int64{1, 99} {
		early := of(bare(3000, func(ns int64) int64 {
			if ns == at*tick {
				return 9000
			}
			return 1700
		}))
		if b := checkRungs(t, early); len(b) != 2 {
			t.Errorf("a peak beside a step's end that differs: %v", b)
		}
	}
	spike := of(bare(1500, func(ns int64) int64 {
		if ns == 50*tick {
			return 9000
		}
		return 1700
	}))
	if b := checkRungs(t, spike); len(b) != 2 ||
		b["other_processes+driver+context+modules+non_torch+reserved"] != 9000 || len(spike.Remarks) != 1 ||
		spike.Remarks[0].Kind != RemarkNotRecorded {
		t.Errorf("a peak between counters that differ: %v, %+v", b, spike.Remarks)
	}
}

// plainBreakdown returns a breakdown without the maxima of the categories. Computing the maxima would need a sweep over
// the whole run.
func plainBreakdown(l *memory.Ledger, seq int64) memory.DeviceBreakdown {
	d := memory.DeviceBreakdown{At: memory.Moment{Event: seq},
		Categories: make([]memory.CategoryBytes, memory.NCategories)}
	for i, a := range l.Allocs {
		if a.LiveAt(seq) {
			l.Count(d.Categories, i, seq)
		}
	}
	for i := range d.Categories {
		d.Categories[i].Category = schemas.Categories[i]
		d.AllocatedBytes += d.Categories[i].Bytes
	}
	return d
}
