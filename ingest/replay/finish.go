package replay

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// before is the FreeRequestedSeq of a block whose free was pending before event 1, or when a gap ended. A block whose
// free is pending does not count as live, only as active.
const before = int64(-1)

// Finish ends the replay. final is the allocator's own list after the last event, or nil. Live blocks in the list that
// the trace neither created nor freed become untraced. Finish also sets blocks' private pools from the list, and
// compares all other blocks ([Result.Final]). If the list is from an earlier event, Finish only compares it.
func (r *Replay) Finish(final []schemas.SegmentBlock) *Result {
	final, dropped := byAddress(final)
	r.anomalies.MalformedBlocks += dropped
	last := isLast(final, r.seq)
	r.settleEarlyFrees()
	if last {
		r.adopt(final)
	}
	res := &Result{Events: r.seq, Allocated: r.allocated, Reserved: r.reserved, Checkpoints: r.checkpoints,
		UntracedReserved: r.before.Reserved}
	r.shift(res)
	r.bound(res)
	res.Anomalies = r.anomalies
	r.lives(res)
	if last {
		namePools(res.Allocs, &r.heap, final)
	}
	if len(final) > 0 {
		h := &r.heap
		seq := r.seq
		if !last {
			h, seq = nil, final[0].Seq
		}
		res.Final = res.compare(final, h, seq)
	}
	return res
}

// isLast reports whether a list was taken after the last event. A list without a seq counts as taken then.
func isLast(list []schemas.SegmentBlock, seq int64) bool {
	return len(list) > 0 && (list[0].Seq == 0 || list[0].Seq >= seq)
}

// settleEarlyFrees decides what a completed free without a request to free means. In a trace that records these
// requests, it completes a free that was pending before event 1. In an older trace, it frees a live block.
func (r *Replay) settleEarlyFrees() {
	for _, f := range r.early {
		a := Alloc{Address: f.addr, Requested: f.size, Block: r.settings.round(f.size), Stream: f.stream,
			FreeRequestedSeq: before, FreeCompletedSeq: f.seq}
		if r.requests == 0 {
			a.FreeRequestedSeq = f.seq
			r.before.Allocated += a.Block
			r.corrections = append(r.corrections, correction{from: f.seq, to: r.seq + 1, allocated: -a.Block})
		}
		r.untraced = append(r.untraced, a)
	}
}

// adopt adds the blocks and segments from before recording that are in the allocator's own list and that the trace does
// not show.
func (r *Replay) adopt(final []schemas.SegmentBlock) {
	h := &r.heap
	for i := range final {
		b := &final[i]
		if i == 0 || b.SegmentAddress != final[i-1].SegmentAddress {
			if late := b.SegmentBytes - h.known(b.SegmentAddress, b.SegmentAddress+uint64(b.SegmentBytes)); late > 0 {
				r.reservedBefore(late)
			}
		}
		if b.State == schemas.BlockInactive {
			continue
		}
		if j := h.at.get(b.Address); j != none && h.blocks[j].life != free {
			a := r.life(h.blocks[j].life)
			if h.blocks[j].run == none && (b.RequestedBytes == 0 || a.Requested == b.RequestedBytes) &&
				a.Block != b.BlockBytes &&
				a.Requested <= b.BlockBytes {
				r.resize(&h.blocks[j], a, b.BlockBytes, r.seq+1)
			}
			continue
		}
		if r.explains(b.Address) {
			continue // the block's allocation is missing, which compare reports
		}
		r.before.Active += b.BlockBytes
		r.before.Requested += requested(b)
		a := Alloc{Address: b.Address, Requested: requested(b), Block: b.BlockBytes, Stream: b.Stream, Pool: b.Pool}
		if b.State == schemas.BlockPendingFree {
			a.FreeRequestedSeq = before
		} else {
			r.before.Allocated += b.BlockBytes
		}
		r.untraced = append(r.untraced, a)
	}
}

// known returns how many bytes of the range [lo, hi) lie in known runs.
func (h *heap) known(lo, hi uint64) (n int64) {
	for p := h.position(lo); p < len(h.order) && h.runs[h.order[p]].addr < hi; p++ {
		r := &h.runs[h.order[p]]
		n += int64(min(hi, r.end()) - max(lo, r.addr))
	}
	return n
}

// shift turns values relative to the state before event 1 into absolute values, and finds the peaks.
func (r *Replay) shift(res *Result) {
	active := r.correct(res)
	if d := r.before.Allocated; d != 0 {
		for i := range res.Allocated {
			res.Allocated[i] += d
		}
	}
	if d := r.before.Reserved; d != 0 {
		for i := range res.Reserved.Value {
			res.Reserved.Value[i] += d
		}
	}
	res.PeakAllocated, res.PeakSeq = r.now.AllocatedPeak+r.before.Allocated, r.peakSeq
	if len(r.corrections) > 0 {
		res.PeakAllocated, res.PeakSeq = res.PeakBetween(0, res.Events)
	}
	res.PeakReserved, res.PeakReservedSeq = r.now.ReservedPeak+r.before.Reserved, r.reservedPeakSeq
	for i := range res.Checkpoints {
		c := &res.Checkpoints[i]
		c.Allocated = res.Allocated[c.Seq]
		c.AllocatedPeak += r.before.Allocated
		if len(r.corrections) > 0 {
			c.AllocatedPeak, _ = res.PeakBetween(0, c.Seq)
		}
		c.Reserved += r.before.Reserved
		c.ReservedPeak += r.before.Reserved
		c.Active += r.before.Active + active[i]
		c.Requested += r.before.Requested
	}
}

// correct applies the corrections to the values after each event, and returns how many bytes they add to active at each
// checkpoint.
func (r *Replay) correct(res *Result) (active []int64) {
	active = make([]int64, len(res.Checkpoints))
	if len(r.corrections) == 0 {
		return active
	}
	type change struct{ seq, allocated, active int64 }
	changes := make([]change, 0, 2*len(r.corrections))
	for _, c := range r.corrections {
		changes = append(changes, change{c.from, c.allocated, c.active}, change{c.to, -c.allocated, -c.active})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.seq, b.seq) })
	var sum change
	k, p := 0, 0
	for seq := range res.Allocated {
		for k < len(changes) && changes[k].seq <= int64(seq) {
			sum.allocated += changes[k].allocated
			sum.active += changes[k].active
			k++
		}
		res.Allocated[seq] += sum.allocated
		for ; p < len(active) && res.Checkpoints[p].Seq == int64(seq); p++ {
			active[p] = sum.active
		}
	}
	return active
}

// lives sets the result's lives of blocks, the untraced first. lives leaves out blocks whose free was pending before
// event 1, since they were not allocated while recording.
func (r *Replay) lives(res *Result) {
	untraced := r.untraced[:0]
	for _, a := range r.untraced {
		if a.FreeRequestedSeq == before {
			res.pendingBefore = append(res.pendingBefore, a)
			if a.AllocSeq == 0 { // the block was not made in a gap
				res.Anomalies.PendingBefore++
			}
		} else {
			untraced = append(untraced, a)
			res.UntracedBytes += a.Block
		}
	}
	res.Anomalies.UntracedBlocks = int64(len(untraced))
	slices.SortFunc(untraced, func(a, b Alloc) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.FreeRequestedSeq, b.FreeRequestedSeq))
	})
	res.Allocs = slices.Insert(r.traced, 0, untraced...)
}

// namePools sets the private pool of blocks by their address, since traces of torch before 2.12 do not name it.
func namePools(allocs []Alloc, h *heap, final []schemas.SegmentBlock) {
	type private struct {
		lo, hi, pool uint64
		since        int64
	}
	var segments []private
	for i := range final {
		b := &final[i]
		if b.Pool == 0 || i > 0 && b.SegmentAddress == final[i-1].SegmentAddress {
			continue
		}
		s := private{lo: b.SegmentAddress, hi: b.SegmentAddress + uint64(b.SegmentBytes), pool: b.Pool}
		// an earlier segment at this address may have been another pool's
		if r := h.runAt(b.SegmentAddress); r != none {
			s.since = h.runs[r].since
		}
		segments = append(segments, s)
	}
	if len(segments) == 0 {
		return
	}
	for i := range allocs {
		a := &allocs[i]
		if a.Pool != 0 {
			continue
		}
		p, _ := slices.BinarySearchFunc(segments, a.Address, func(s private, addr uint64) int {
			if s.hi > addr {
				return 1
			}
			return -1
		})
		if p < len(segments) && segments[p].lo <= a.Address && a.AllocSeq >= segments[p].since {
			a.Pool = segments[p].pool
		}
	}
}
