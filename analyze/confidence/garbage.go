package confidence

import (
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

// GarbageRange is the range of the peak allocated over the moments at which Python's garbage may be collected, with own
// the run's own peak; it is one point where nobody made the runs that bound it.
func GarbageRange(f *schemas.Phantom, status string, own int64) (low, high int64) {
	low, high = own, own
	for _, c := range f.Collections {
		if c.Status == status { // the peak of a run that ended otherwise is of another stretch of the script
			low, high = min(low, c.PeakAllocatedBytes), max(high, c.PeakAllocatedBytes)
		}
	}
	return low, high
}

// garbage judges what only Python's garbage collector frees.
func (j *judgement) garbage(m *schemas.Manifest, r *schemas.IngestReport) {
	f, g := m.Phantom, r.Prediction.Garbage
	if f.Garbage != "" {
		j.atMost(schemas.Close, "Python's garbage was collected %s, and not when Python does it", f.Garbage)
		return
	}
	if g == nil {
		return
	}
	if len(f.Collections) == 0 {
		if g.CollectedBytes > 0 {
			j.atMost(schemas.Close, "%s were freed by Python's garbage collector, whose moments vary: dpsight predict "+
				"without --vary gives the range of the peak", prose.MiB(g.CollectedBytes))
		}
		return
	}
	var own int64
	for i := range r.Devices {
		own = max(own, r.Devices[i].PeakAllocatedBytes)
	}
	for _, c := range f.Collections {
		if c.Status != m.Status {
			j.atMost(schemas.Close, "where Python's garbage is collected %s the run ended otherwise: %s", c.When, c.Status)
		}
	}
	if low, high := GarbageRange(f, m.Status, own); low != high {
		j.atMost(schemas.Close, "when Python's garbage collector runs moves the peak allocated: from %s where garbage is "+
			"collected at once to %s where it never is", prose.MiB(low), prose.MiB(high))
	}
}
