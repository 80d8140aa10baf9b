package confidence

import "github.com/dpsight/dpsight/schemas"

// GarbageRange returns the lowest and the highest peak allocated, depending on when Python's garbage collector runs.
// own is the run's own peak. If no further runs with other collections were made, both returned peaks are own.
func GarbageRange(f *schemas.Phantom, status string, own int64) (low, high int64) {
	low, high = own, own
	for _, c := range f.Collections {
		// A run that was stopped, or that ended with another status, did not run the same part of the script, so its
		// peak does not count.
		if c.Status == status && schemas.EndedByItself(status) {
			low, high = min(low, c.PeakAllocatedBytes), max(high, c.PeakAllocatedBytes)
		}
	}
	return low, high
}

// garbage adds doubts about memory that only Python's garbage collector frees.
func (j *judgement) garbage(m *schemas.Manifest, r *schemas.IngestReport) {
	f, g := m.Phantom, r.Prediction.Garbage
	if f.Garbage != "" {
		j.atMost(schemas.Close, Reason{Kind: GarbageForced, Name: f.Garbage})
		return
	}
	if g == nil {
		return
	}
	if ended := !schemas.EndedByItself(m.Status); ended || len(f.Collections) == 0 {
		if g.CollectedBytes > 0 {
			reason := Reason{Kind: GarbageCollected, Bytes: [2]int64{g.CollectedBytes}}
			if ended {
				reason.Name = m.Status
			}
			j.atMost(schemas.Close, reason)
		}
		return
	}
	var own int64
	for i := range r.Devices {
		own = max(own, r.Devices[i].PeakAllocatedBytes)
	}
	for _, c := range f.Collections {
		if c.Status != m.Status {
			j.atMost(schemas.Close, Reason{Kind: GarbageDecides, Name: c.When, Other: c.Status})
		}
	}
	if low, high := GarbageRange(f, m.Status, own); low != high {
		j.atMost(schemas.Close, Reason{Kind: GarbageMatters, Bytes: [2]int64{low, high}})
	}
}
