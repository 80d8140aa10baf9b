package livetest_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// expectConserved checks that a run's tables agree with each other. The verdict of every device with events is exact.
// Every block has an owner at every moment of its life, so the categories sum to allocated. The blocks' sum equals
// torch's own count at every drain, and the sum's maximum is the peak.
func expectConserved(t *testing.T, dir string, report *schemas.IngestReport) {
	t.Helper()
	allocations, err := schemas.Allocations.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	owners, err := schemas.Owners.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	checkpoints, err := schemas.Checkpoints.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Devices {
		if v.Events == 0 {
			continue
		}
		if v.Verdict != schemas.Exact || v.ResidueBytes != 0 || v.MissingEvents != 0 || v.DifferingBlocks != 0 {
			t.Errorf("rank %d, device %d: %s (%s), residue %d, %d events missing, %d blocks differ", v.Rank, v.Device,
				v.Verdict, v.Reason,
				v.ResidueBytes, v.MissingEvents, v.DifferingBlocks)
		}
		if v.UnboundTags != 0 {
			t.Errorf("rank %d, device %d: %d tags name no block", v.Rank, v.Device, v.UnboundTags)
		}
		var mine []schemas.Allocation
		for _, a := range allocations {
			if a.Rank == v.Rank && a.Device == v.Device {
				mine = append(mine, a)
			}
		}
		held := map[int64][]schemas.Owner{}
		for _, o := range owners {
			if o.Rank == v.Rank && o.Device == v.Device {
				held[o.AllocID] = append(held[o.AllocID], o)
			}
		}
		expectOwned(t, v, mine, held)
		peak, peakSeq := highest(mine, v.Events)
		if peak != v.PeakAllocatedBytes || peakSeq != v.PeakSeq {
			t.Errorf("rank %d, device %d: the blocks reach %d bytes at event %d, the report says %d at %d", v.Rank,
				v.Device, peak, peakSeq,
				v.PeakAllocatedBytes, v.PeakSeq)
		}
		for _, c := range checkpoints {
			if c.Rank != v.Rank || c.Device != v.Device {
				continue
			}
			if sum := allocatedAt(mine, c.Seq); !c.Agrees || sum != c.AllocatedBytes {
				t.Errorf("rank %d, device %d, drain %d (%s): the blocks sum to %d bytes, torch counts %d (agrees: %t)",
					c.Rank, c.Device, c.Drain,
					c.Reason, sum, c.AllocatedBytes, c.Agrees)
			}
		}
	}
}

// expectOwned checks that the owners of each block cover the block's life without a gap.
func expectOwned(t *testing.T, v schemas.DeviceVerdict, allocations []schemas.Allocation,
	owners map[int64][]schemas.Owner) {
	t.Helper()
	bad := 0
	for _, a := range allocations {
		end := v.Events + 1
		if a.FreeRequestedSeq != 0 {
			end = a.FreeRequestedSeq
		}
		spans := owners[a.AllocID]
		slices.SortFunc(spans, func(x, y schemas.Owner) int { return cmp.Compare(x.BeginSeq, y.BeginSeq) })
		covered := a.AllocSeq
		for _, o := range spans {
			if o.BeginSeq > covered {
				break
			}
			if o.EndSeq == 0 {
				covered = end
			} else {
				covered = max(covered, o.EndSeq)
			}
		}
		if covered < end || a.BlockBytes < a.RequestedBytes {
			if bad++; bad <= 3 {
				t.Errorf("rank %d, device %d: block %d (%d of %d bytes, events %d to %d, %s) is owned up to %d only",
					v.Rank, v.Device, a.AllocID,
					a.RequestedBytes, a.BlockBytes, a.AllocSeq, end, a.Phase, covered)
			}
		}
	}
	if bad > 3 {
		t.Errorf("and %d more blocks", bad-3)
	}
}

func allocatedAt(allocations []schemas.Allocation, seq int64) (sum int64) {
	for i := range allocations {
		if allocations[i].LiveAt(seq) {
			sum += allocations[i].BlockBytes
		}
	}
	return sum
}

// highest returns the highest sum of the blocks' bytes, and the first event after which the blocks sum to it.
func highest(allocations []schemas.Allocation, events int64) (peak, seq int64) {
	change := make([]int64, events+2)
	for i := range allocations {
		a := &allocations[i]
		change[a.AllocSeq] += a.BlockBytes
		if a.FreeRequestedSeq != 0 {
			change[a.FreeRequestedSeq] -= a.BlockBytes
		}
	}
	now := int64(0)
	for i, c := range change {
		if now += c; now > peak {
			peak, seq = now, int64(i)
		}
	}
	return peak, seq
}
