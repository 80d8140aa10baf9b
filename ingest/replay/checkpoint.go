package replay

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// Residue has the replayed values minus torch's counters, in bytes.
type Residue struct {
	Allocated, AllocatedPeak int64
	Reserved, ReservedPeak   int64
	Active, Requested        int64
}

// Peaks are torch's own peak counters, in bytes.
type Peaks struct{ Allocated, Reserved int64 }

// Check compares the replay with torch's counters at a checkpoint, and sets the checkpoint's replayed values and
// Agrees. Agrees is true if all counters are equal, to the byte. The checkpoint's seq must be one that was passed to
// [Run], or at which [Replay.Checkpoint] was called. torch's peak counters count from their last reset, just after
// event peaksSince (0 if they were not reset). torch's peak counters also cover times without recording, whose peaks
// are in unseen.
func (r *Result) Check(c *schemas.Checkpoint, peaksSince int64, unseen Peaks) (Residue, error) {
	i, ok := slices.BinarySearchFunc(r.Checkpoints, c.Seq, func(c Counters, seq int64) int {
		return int(min(max(c.Seq-seq, -1), 1))
	})
	if !ok {
		return Residue{}, fmt.Errorf("checkpoint at event %d: the replay kept no counters there", c.Seq)
	}
	n := r.Checkpoints[i]
	if peaksSince > 0 {
		n.AllocatedPeak, _ = r.PeakBetween(peaksSince, c.Seq)
		n.ReservedPeak = r.Reserved.PeakBetween(peaksSince, c.Seq)
	}
	c.ReplayedAllocatedBytes = n.Allocated
	c.ReplayedAllocatedPeakBytes = n.AllocatedPeak
	c.ReplayedReservedBytes = n.Reserved
	n.AllocatedPeak, n.ReservedPeak = max(n.AllocatedPeak, unseen.Allocated), max(n.ReservedPeak, unseen.Reserved)
	d := Residue{
		Allocated: n.Allocated - c.AllocatedBytes, AllocatedPeak: n.AllocatedPeak - c.AllocatedPeakBytes,
		Reserved: n.Reserved - c.ReservedBytes, ReservedPeak: n.ReservedPeak - c.ReservedPeakBytes,
		Active: n.Active - c.ActiveBytes, Requested: n.Requested - c.RequestedBytes,
	}
	c.Agrees = d == Residue{}
	return d, nil
}

// PeakBetween returns the highest value just after any of the events from from to to.
func (s *Steps) PeakBetween(from, to int64) int64 {
	peak := s.At(from)
	for i, seq := range s.Seq {
		if seq > from && seq <= to {
			peak = max(peak, s.Value[i])
		}
	}
	return peak
}
