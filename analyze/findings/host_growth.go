package findings

import (
	"github.com/dpsight/dpsight/analyze/hostmemory"
)

// The limits above which growth of host memory over the later half of the steps is reported.
const (
	hostGrowthBytes        = 16 << 20 // least growth in the whole run
	hostGrowthBytesPerStep = 64 << 10
)

// HostGrowthFacts are the facts of a [HostGrowth] finding.
type HostGrowthFacts struct {
	Kind  hostmemory.Kind
	Trend hostmemory.Trend
	// Largest is the phase in which the reported kind of host memory grew most over the whole run; nil if unknown.
	Largest   *hostmemory.Phase
	LastBytes int64
}

// hostGrowth checks the host memory of each process. If both resident and page-locked memory grow, hostGrowth reports
// only page-locked memory, since on some drivers it also counts as resident.
func (x *evidence) hostGrowth() (out []Finding) {
	run, err := hostmemory.Of(*x.in)
	if err != nil {
		return nil
	}
	for i := range run.Ranks {
		p := &run.Ranks[i]
		var told *Finding
		for kind, m := range p.Memories() {
			t := m.Trend
			if t == nil || t.BytesPerStep < hostGrowthBytesPerStep || t.BytesPerStep*t.Steps < hostGrowthBytes {
				continue
			}
			facts := HostGrowthFacts{Kind: kind, Trend: *t, LastBytes: m.LastBytes}
			f := Finding{ID: HostGrowth, Rank: &p.Rank}
			f.of(t.BytesPerStep*t.Steps, m.LastBytes, OfHostMemory)
			if len(m.Phases) > 0 && m.Phases[0].Bytes > 0 {
				facts.Largest, f.Phase = &m.Phases[0], m.Phases[0].Phase
			}
			f.Facts = facts
			told = &f
		}
		if told != nil {
			out = append(out, *told)
		}
	}
	return out
}
