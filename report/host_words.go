package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/hostmemory"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/units"
)

// hostKindWords names a kind of host memory.
func hostKindWords(kind hostmemory.Kind) string {
	switch kind {
	case hostmemory.Resident:
		return "resident"
	case hostmemory.Pinned:
		return "page-locked"
	}
	return ""
}

// hostWords say by how much, and in which phases, a run's processes grow.
func hostWords(r *hostmemory.Run) string {
	switch {
	case r.NotIngested:
		return notIngested
	case len(r.Ranks) == 0:
		return "no host memory was recorded: an older dpsight made the run, or no process used a device"
	}
	for i := range r.Ranks {
		for kind, m := range r.Ranks[i].Memories() {
			if m.Trend == nil || len(m.Phases) == 0 {
				continue
			}
			return fmt.Sprintf("rank %d: %s memory grows until the end, by %s a step over the last %s; most of it in %s",
				r.Ranks[i].Rank, hostKindWords(kind), table.Size(m.Trend.BytesPerStep),
				units.Plural(int(m.Trend.Steps), "step", "steps"), m.Phases[0].Phase)
		}
	}
	return ""
}
