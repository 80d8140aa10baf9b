package findings

import (
	"github.com/dpsight/dpsight/analyze/hostmemory"
)

// What the host's memory grows by over the later half of the steps is said from here on.
const (
	hostGrowthBytes        = 16 << 20 // in all
	hostGrowthBytesPerStep = 64 << 10
)

// HostGrowthFacts are the facts of a [HostGrowth] finding.
type HostGrowthFacts struct {
	Kind  hostmemory.Kind
	Trend hostmemory.Trend
	// Largest is the phase in which that memory grew most over the whole run; nil where none is known.
	Largest   *hostmemory.Phase
	LastBytes int64
}

// hostGrowth looks at the memory of each process on the host. Page-locked memory is told where both kinds grow: on some
// drivers it counts as resident.
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
