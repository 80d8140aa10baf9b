package ladder

import (
	"cmp"
	"slices"
	"sort"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const (
	// settleNS is the time before and after a sample in which no segment may come or go, so that sample and segments
	// describe the same state. torch notes a segment's time after cudaMalloc, which can take many milliseconds, and
	// before cudaFree.
	settleNS = 50e6
	// edgeNS is how near to a step's begin or end a sample must be for torch's counters at that moment to describe the
	// sample's state.
	edgeNS = 25e6
)

// allocator is one rank's device, with the data from which the state of its memory at any time can be found.
type allocator struct {
	in     *schemas.Tables
	p      identity.Place
	ledger *memory.Ledger
	levels []memory.Level // levels of reserved; nil = not known
	held   []memory.Level // levels of allocated, after each event that changes it; see heldAfter
	clock  []int64        // times of events i+1, which never fall
	end    int64          // time of the last event, or of the process's end if that is later
	rises  []int64        // times at which reserved rose
	falls  []int64
	steps  []*schemas.Step
	gaps   bool // some steps were not recorded
	edges  []edge
}

// edge is a step's begin or end, with torch's counters at that moment.
type edge struct{ ns, reserved, allocated int64 }

// newAllocator returns the allocator of a device. A state that needs a table that was not loaded is unknown.
func newAllocator(in *schemas.Tables, p identity.Place, l *memory.Ledger) *allocator {
	d := &allocator{in: in, p: p, ledger: l, levels: memory.ReservedSteps(in, p)}
	for i := range in.Clocks {
		if c := &in.Clocks[i]; c.Rank == p.Rank && c.Device == p.Device {
			d.clock = slices.Clone(c.TimeNS)
		}
	}
	for i := 1; i < len(d.clock); i++ { // each drain converts the CPU's counter again, so times may fall
		d.clock[i] = max(d.clock[i], d.clock[i-1])
	}
	if n := len(d.clock); n > 0 {
		d.end = d.clock[n-1]
	}
	for i := range in.Processes {
		if r := &in.Processes[i]; r.Rank == p.Rank && r.Device == p.Device {
			d.end = max(d.end, r.EndNS)
		}
	}
	for i := 1; i < len(d.levels); i++ {
		k := d.levels[i].Seq - 1
		if k < 0 || k >= int64(len(d.clock)) {
			continue
		}
		if d.levels[i].Bytes > d.levels[i-1].Bytes {
			d.rises = append(d.rises, d.clock[k])
		} else {
			d.falls = append(d.falls, d.clock[k])
		}
	}
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Rank != p.Rank || s.Device != p.Device {
			continue
		}
		d.steps, d.gaps = append(d.steps, s), d.gaps || !s.Recorded
		if s.Recorded && len(d.clock) > 0 {
			d.end = max(d.end, s.EndNS)
		}
		for _, e := range []edge{
			{s.StartNS, schemas.OrZero(s.ReservedBegin), schemas.OrZero(s.AllocatedBegin)},
			{s.EndNS, schemas.OrZero(s.ReservedEnd), schemas.OrZero(s.AllocatedEnd)}} {
			if e.reserved > 0 { // 0 is a counter that was not read
				d.edges = append(d.edges, e)
			}
		}
	}
	slices.SortFunc(d.steps, func(a, b *schemas.Step) int { return cmp.Compare(a.StartNS, b.StartNS) })
	slices.SortStableFunc(d.edges, func(a, b edge) int { return cmp.Compare(a.ns, b.ns) })
	return d
}

// recorded reports whether the events around a time are in the journal. The journal has the events of set-up, and of
// each step that says so. The journal has events after the last step if every step was recorded.
func (d *allocator) recorded(ns int64) bool {
	if len(d.clock) == 0 || d.levels == nil {
		return false
	}
	k := sort.Search(len(d.steps), func(i int) bool { return d.steps[i].StartNS > ns }) - 1
	switch {
	case ns > d.end:
		return false
	case k < 0 || d.steps[k].Recorded && ns <= d.steps[k].EndNS:
		return true
	}
	return !d.gaps
}

// seqAt returns the last event that happened at or before a time.
func (d *allocator) seqAt(ns int64) int64 {
	return int64(sort.Search(len(d.clock), func(i int) bool { return d.clock[i] > ns }))
}

func (d *allocator) reservedAfter(seq int64) int64 {
	i := sort.Search(len(d.levels), func(i int) bool { return d.levels[i].Seq > seq })
	return d.levels[max(i-1, 0)].Bytes
}

// heldAfter returns the bytes allocated just after an event.
func (d *allocator) heldAfter(seq int64) int64 {
	if d.held == nil {
		d.held = []memory.Level{{}}
		for _, a := range d.ledger.Allocs {
			d.held = append(d.held, memory.Level{Seq: a.AllocSeq, Bytes: a.BlockBytes})
			if a.FreeRequestedSeq > 0 {
				d.held = append(d.held, memory.Level{Seq: a.FreeRequestedSeq, Bytes: -a.BlockBytes})
			}
		}
		slices.SortFunc(d.held, func(a, b memory.Level) int { return cmp.Compare(a.Seq, b.Seq) })
		for i := 1; i < len(d.held); i++ {
			d.held[i].Bytes += d.held[i-1].Bytes
		}
	}
	i := sort.Search(len(d.held), func(i int) bool { return d.held[i].Seq > seq })
	return d.held[max(i-1, 0)].Bytes
}

// settled reports whether no segment came or went near a time. If a segment came or went near that time, it is unknown
// whether NVML counted it.
func (d *allocator) settled(ns int64) bool {
	within := func(times []int64, from, to int64) bool { // the interval (from, to]
		i := sort.Search(len(times), func(i int) bool { return times[i] > from })
		return i < len(times) && times[i] <= to
	}
	return !within(d.rises, ns, ns+settleNS) && !within(d.falls, ns-settleNS, ns+settleNS)
}

// torchState is the known state of one device's allocator at a moment.
type torchState struct {
	reserved int64
	how      string
	settled  bool
	seq      int64 // number of the event, of a replayed moment only
	// For a state from torch's counters: the bytes allocated (nil = unknown), and the edge at which the counters were
	// read (nil = the counters at the edges before and after agree).
	allocated *int64
	edge      *edge
}

// at returns the allocator's state at a time, or nil if it is unknown.
func (d *allocator) at(ns int64) *torchState {
	if d.recorded(ns) {
		seq := d.seqAt(ns)
		return &torchState{reserved: d.reservedAfter(seq), how: HowReplayed, settled: d.settled(ns), seq: seq}
	}
	k := sort.Search(len(d.edges), func(i int) bool { return d.edges[i].ns > ns })
	var nearest *edge
	for _, i := range []int{k - 1, k} {
		if i >= 0 && i < len(d.edges) && magnitude(d.edges[i].ns-ns) <= edgeNS &&
			(nearest == nil || magnitude(d.edges[i].ns-ns) < magnitude(nearest.ns-ns)) {
			nearest = &d.edges[i]
		}
	}
	if k > 0 && k < len(d.edges) && d.edges[k-1].reserved == d.edges[k].reserved {
		return &torchState{reserved: d.edges[k].reserved, how: HowCounted, settled: true}
	}
	if nearest != nil {
		return &torchState{reserved: nearest.reserved, how: HowCounted, settled: true,
			allocated: identity.Known(nearest.allocated), edge: nearest}
	}
	return nil
}

// whereAt returns the step and phase that the host was in at a time.
func (d *allocator) whereAt(ns int64) (step *int64, phase *string) {
	for i := range d.in.Phases {
		f := &d.in.Phases[i]
		if f.Rank == d.p.Rank && f.Device == d.p.Device && f.StartNS <= ns && ns < f.EndNS {
			if f.Step >= 0 {
				step = new(f.Step)
			}
			return step, new(f.Phase)
		}
	}
	for _, s := range d.steps {
		if s.StartNS <= ns && ns < s.EndNS {
			return new(s.Step), nil
		}
	}
	return nil, nil
}

// reading is an NVML sample of a GPU together with the states of all allocators on that GPU.
type reading struct {
	sample *schemas.Sample
	states []*torchState // nil for an unknown state of a rank
	// settled is true if all states are known and no segment came or went near the sample. replayed is true if the
	// states come from events.
	settled, replayed bool
	reserved          int64
}

func (g *gpu) read(s *schemas.Sample) reading {
	r := reading{sample: s, settled: true, replayed: true}
	for _, d := range g.devices {
		st := d.at(s.TimeNS)
		if st == nil || st.edge != nil && !g.steady(s, st.edge.ns) {
			return reading{sample: s}
		}
		r.states = append(r.states, st)
		r.reserved += st.reserved
		r.settled = r.settled && st.settled
		r.replayed = r.replayed && st.how == HowReplayed
	}
	return r
}

// steady reports whether the samples just before and after a time have the same bytes in use as s.
func (g *gpu) steady(s *schemas.Sample, ns int64) bool {
	k := sort.Search(len(g.samples), func(i int) bool { return g.samples[i].TimeNS > ns })
	return k > 0 && k < len(g.samples) && g.samples[k-1].UsedBytes == s.UsedBytes &&
		g.samples[k].UsedBytes == s.UsedBytes
}

// allocated returns the bytes that all allocators on the GPU together had allocated; -1 if any allocator's state is
// unknown.
func (g *gpu) allocated(r *reading) (bytes int64) {
	if r.states == nil {
		return -1
	}
	for i, st := range r.states {
		switch {
		case st.how == HowReplayed:
			bytes += g.devices[i].heldAfter(st.seq)
		case st.allocated != nil:
			bytes += *st.allocated
		default:
			return -1
		}
	}
	return bytes
}

func (r *reading) outside() int64 { return r.sample.UsedBytes - r.reserved }

// highest chooses the sample that shows the device's peak. The peak is a plateau, because torch keeps what it reserves.
// highest prefers samples whose allocator state is known from events, then samples whose state is known from torch's
// counters. Among equally good samples, highest takes the one with the most allocated, since it shows best what fills
// the device, and the first of equals. Samples of the plateau may also lie between steps, where everything except the
// model is cached.
func (g *gpu) highest() (best reading, plateau int) {
	var top int64 = -1
	for _, s := range g.samples {
		top = max(top, s.UsedBytes)
	}
	rank := func(r *reading) int {
		switch {
		case r.states == nil:
			return 3
		case r.settled && r.replayed:
			return 0
		case r.settled:
			return 1
		}
		return 2
	}
	most := int64(-1)
	for _, s := range g.samples {
		if s.UsedBytes != top {
			continue
		}
		plateau++
		r := g.read(s)
		held := g.allocated(&r)
		if plateau == 1 || rank(&r) < rank(&best) || rank(&r) == rank(&best) && held > most {
			best, most = r, held
		}
	}
	return best, plateau
}

// nearest returns the nearest settled samples before and after a time; nil if there is none on that side.
func (g *gpu) nearest(ns int64) (before, after *reading) {
	k := sort.Search(len(g.samples), func(i int) bool { return g.samples[i].TimeNS > ns })
	for i := k - 1; i >= 0 && before == nil; i-- {
		if r := g.read(g.samples[i]); r.settled && r.outside() > 0 {
			before = &r
		}
	}
	for i := k; i < len(g.samples) && after == nil; i++ {
		if r := g.read(g.samples[i]); r.settled && r.outside() > 0 {
			after = &r
		}
	}
	return before, after
}

// uncharged returns how many bytes the GPU has in use beyond those that NVML charges to the run's processes. The two
// figures come from separate calls of NVML, so uncharged needs a sample whose neighbours have the same bytes in use.
// uncharged takes the nearest such sample with the same number of other processes.
func (g *gpu) uncharged(at *schemas.Sample) (bytes, offsetNS int64, ok bool) {
	for i, s := range g.samples {
		if s.ProcessBytes == nil || *s.ProcessBytes <= 0 || s.OtherProcesses != at.OtherProcesses || i == 0 ||
			i+1 == len(g.samples) {
			continue
		}
		if used := s.UsedBytes; g.samples[i-1].UsedBytes != used || g.samples[i+1].UsedBytes != used ||
			used < *s.ProcessBytes {
			continue
		}
		if d := s.TimeNS - at.TimeNS; !ok || magnitude(d) < magnitude(offsetNS) {
			bytes, offsetNS, ok = s.UsedBytes-*s.ProcessBytes, d, true
		}
	}
	return bytes, offsetNS, ok
}

// mostLevels is how many changes of the memory outside torch are listed. A run with more changes has them from other
// processes.
const mostLevels = 64

// outsideTorch lists the levels of memory outside torch while events were recorded.
func (g *gpu) outsideTorch() []OutsideTorch {
	out := []OutsideTorch{}
	for _, s := range g.samples {
		r := g.read(s)
		if !r.settled || !r.replayed || r.reserved == 0 {
			continue
		}
		if k := len(out) - 1; k >= 0 && out[k].Bytes == r.outside() {
			continue
		}
		if len(out) == mostLevels {
			break
		}
		l := OutsideTorch{TimeNS: s.TimeNS, Bytes: r.outside()}
		l.Step, l.Phase = g.devices[0].whereAt(s.TimeNS)
		out = append(out, l)
	}
	return out
}

func magnitude(n int64) int64 { return max(n, -n) }
