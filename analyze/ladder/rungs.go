package ladder

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// devicePeak returns the ladder at the highest device used; nil if the GPU was not sampled.
func (g *gpu) devicePeak() *Moment {
	if len(g.samples) == 0 {
		return nil
	}
	r, plateau := g.highest()
	s := r.sample
	m := g.sampled(DevicePeak, s)
	if plateau > 1 {
		m.remark(Remark{Kind: RemarkPlateau, Samples: plateau})
	}
	switch {
	case r.states == nil: // torch's part cannot be separated from the rest
		m.outside(g, s, s.UsedBytes, HowSampled, RungReserved)
		m.remark(Remark{Kind: RemarkNotRecorded})
		return m
	case !r.settled:
		m.remark(Remark{Kind: RemarkUnsettled, MS: settleNS / 1e6})
	case !r.replayed:
		m.remark(counters(r.states))
	}
	m.divide(g, &r)
	return m
}

// sampled returns a moment at an NVML sample, with device used as its only rung so far.
func (g *gpu) sampled(at string, s *schemas.Sample) *Moment {
	m := &Moment{At: at, TimeNS: new(s.TimeNS), SampleOffsetNS: new(int64(0)), Rungs: []Rung{}, Notes: []string{}}
	m.Step, m.Phase = g.devices[0].whereAt(s.TimeNS)
	m.add(RungDeviceUsed, "", new(s.UsedBytes), HowSampled)
	return m
}

// divide adds the rungs within device used at a reading: memory outside torch, and torch's memory.
func (m *Moment) divide(g *gpu, r *reading) {
	m.outside(g, r.sample, r.outside(), HowSampled)
	if r.outside() < 0 {
		m.remark(Remark{Kind: RemarkReservedMore})
	}
	g.torch(m, r.states)
}

// recordedPeak returns the ladder at the highest sample of device used at which the events show the state of the
// allocators. recordedPeak returns nil if there is no such sample. Of equally high samples it takes the one with the
// most allocated, as at the device's peak.
func (g *gpu) recordedPeak() *Moment {
	var best reading
	most := int64(-1)
	for _, s := range g.samples {
		if best.sample != nil && s.UsedBytes < best.sample.UsedBytes {
			continue
		}
		r := g.read(s)
		if !r.settled || !r.replayed || r.reserved == 0 {
			continue
		}
		if held := g.allocated(&r); best.sample == nil || s.UsedBytes > best.sample.UsedBytes || held > most {
			best, most = r, held
		}
	}
	if best.sample == nil {
		return nil
	}
	m := g.sampled(RecordedPeak, best.sample)
	m.divide(g, &best)
	return m
}

// counters returns a remark on how near to the moment torch's counters were read.
func counters(states []*torchState) Remark {
	for _, st := range states {
		if st.edge != nil {
			return Remark{Kind: RemarkCountersNear, MS: edgeNS / 1e6}
		}
	}
	return Remark{Kind: RemarkCounters}
}

// allocatorPeak returns the ladder at the peak of one device's allocated, or nil for a run without events. The bytes
// outside torch come from the nearest settled sample. device used is the sum of these bytes and reserved.
func (g *gpu) allocatorPeak(d *allocator) *Moment {
	f, err := memory.FindMoment(d.in, d.p, memory.At{})
	if err != nil || len(d.ledger.Allocs) == 0 || d.levels == nil {
		return nil
	}
	seq := f.At.Event
	m := &Moment{At: AllocatorPeak, Device: new(d.p.String()), Rank: new(d.p.Rank), Step: f.At.Step,
		Phase: f.At.Phase, Rungs: []Rung{}, Notes: []string{}}
	if u := memory.UntaggedAt(d.in, d.p, f.At); u != nil {
		m.remark(Remark{Kind: RemarkUntagged, Untagged: u})
	}
	states := []*torchState{{reserved: d.reservedAfter(seq), how: HowReplayed, settled: true, seq: seq}}
	var near *reading
	if seq > 0 && seq <= int64(len(d.clock)) && d.in.Manifest.Source == schemas.Measured {
		ns := d.clock[seq-1]
		m.TimeNS = &ns
		near = g.near(m, ns)
	}
	if near != nil {
		states = g.statesWith(d, states[0], *m.TimeNS)
	}
	if near == nil || states == nil {
		if states == nil {
			m.remark(Remark{Kind: RemarkAlone, Device: d.p.String()})
			states = []*torchState{{reserved: d.reservedAfter(seq), how: HowReplayed, settled: true, seq: seq}}
		}
		m.add(RungDeviceUsed, "", nil, HowUnknown)
		m.add(together(RungOtherProcesses, RungDriver, RungContext, RungModules, RungNonTorch), RungDeviceUsed, nil,
			HowUnknown)
		(&gpu{devices: []*allocator{d}}).torch(m, states[:1])
		return m
	}
	var reserved int64
	for _, s := range states {
		reserved += s.reserved
	}
	m.SampleOffsetNS = new(near.sample.TimeNS - *m.TimeNS)
	m.add(RungDeviceUsed, "", new(near.outside()+reserved), HowSum)
	m.outside(g, near.sample, near.outside(), HowNearby)
	g.torch(m, states)
	return m
}

// near returns the settled sample nearest to a time, and adds a remark if the nearest sample on the time's other side
// has other bytes outside torch.
func (g *gpu) near(m *Moment, ns int64) *reading {
	before, after := g.nearest(ns)
	near, other := before, after
	if near == nil || other != nil && other.sample.TimeNS-ns < ns-near.sample.TimeNS {
		near, other = after, before
	}
	if near == nil {
		m.remark(Remark{Kind: RemarkNoSample})
		return nil
	}
	beside := func(kind string, r *reading) Remark {
		d := r.sample.TimeNS - ns
		return Remark{Kind: kind, MS: float64(max(d, -d)) / 1e6, After: d >= 0}
	}
	m.remark(beside(RemarkNearestSample, near))
	if other != nil && other.outside() != near.outside() {
		r := beside(RemarkOtherSide, other)
		r.Bytes = other.outside()
		m.remark(r)
	}
	return near
}

// statesWith returns d's given state together with the states of the GPU's other devices at a time. statesWith returns
// nil if one of the states is not known.
func (g *gpu) statesWith(d *allocator, own *torchState, ns int64) []*torchState {
	var out []*torchState
	for _, o := range g.devices {
		if o == d {
			out = append(out, own)
			continue
		}
		st := o.at(ns)
		if st == nil {
			return nil
		}
		out = append(out, st)
	}
	return out
}

// together returns the name of a rung that merges several parts whose bytes are known only as a sum.
func together(parts ...string) string { return strings.Join(parts, "+") }

// outside adds the rungs outside torch, as far as NVML distinguishes them. The rungs sum to bytes. The parts named in
// with are also unknown, and are merged with the context's rung.
func (m *Moment) outside(g *gpu, s *schemas.Sample, bytes int64, how string, with ...string) {
	m.MemoryAPI, m.OtherProcesses = new(int64(s.MemoryAPI)), new(int64(s.OtherProcesses))
	driver := []string{RungDriver}
	if s.MemoryAPI >= 2 {
		m.DriverReserveBytes = new(s.ReservedBytes)
	} else {
		driver = []string{RungDriverReserve, RungDriver}
	}
	mine := append([]string{RungContext, RungModules, RungNonTorch}, with...)
	uncharged, offset, ok := g.uncharged(s)
	ok = ok && uncharged <= bytes
	listed := slices.ContainsFunc(g.samples, func(o *schemas.Sample) bool {
		return o.ProcessBytes != nil && *o.ProcessBytes > 0
	})
	alone := s.OtherProcesses == 0 && listed
	if !listed {
		// If NVML's list of processes lacks the run's processes, as in a container, it does not show other processes
		// either.
		m.OtherProcesses = nil
	}
	if alone {
		m.add(RungOtherProcesses, RungDeviceUsed, new(int64(0)), how)
	} else {
		driver = append([]string{RungOtherProcesses}, driver...)
	}
	if !ok {
		m.add(together(append(driver, mine...)...), RungDeviceUsed, &bytes, HowDifference)
		return
	}
	if offset == 0 && how == HowSampled {
		m.add(together(driver...), RungDeviceUsed, &uncharged, HowSampled)
	} else {
		m.add(together(driver...), RungDeviceUsed, &uncharged, HowNearby)
	}
	m.add(together(mine...), RungDeviceUsed, new(bytes-uncharged), HowDifference)
}

// torch adds the rungs of torch's allocators. Each rung sums all devices of the GPU.
func (g *gpu) torch(m *Moment, states []*torchState) {
	var reserved, allocated, pending int64
	replayed, counted := true, true
	parts := make([]memory.CategoryBytes, memory.NCategories)
	for i, st := range states {
		d := g.devices[i]
		reserved += st.reserved
		replayed = replayed && st.how == HowReplayed
		if st.how != HowReplayed {
			if counted = counted && st.allocated != nil; counted {
				allocated += *st.allocated
			}
			continue
		}
		for k, a := range d.ledger.Allocs {
			switch {
			case a.LiveAt(st.seq):
				d.ledger.Count(parts, k, st.seq)
				allocated += a.BlockBytes
			case a.FreeRequestedSeq != 0 && a.FreeRequestedSeq <= st.seq && (a.FreeCompletedSeq == 0 ||
				a.FreeCompletedSeq > st.seq):
				pending += a.BlockBytes
			}
		}
		if len(states) == 1 {
			m.Event = new(st.seq)
		}
	}
	how := HowCounted
	if replayed {
		how = HowReplayed
	}
	m.add(RungReserved, RungDeviceUsed, &reserved, how)
	switch {
	case replayed:
		m.add(RungAllocated, RungReserved, &allocated, how)
		for i := range parts {
			if parts[i].Bytes != 0 {
				m.add(schemas.Categories[i], RungAllocated, new(parts[i].Bytes), how)
			}
		}
		m.add(RungPendingFree, RungReserved, &pending, how)
		m.add(RungCached, RungReserved, new(reserved-allocated-pending), HowDifference)
	case counted:
		m.add(RungAllocated, RungReserved, &allocated, how)
		m.add(together(RungPendingFree, RungCached), RungReserved, new(reserved-allocated), HowDifference)
	}
}
