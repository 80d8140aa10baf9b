package replay

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// maxBytes and maxAddr keep sums from overflowing: no device has a block of 16 TiB or more than 2^57 addresses.
const (
	maxBytes = 1 << 44
	maxAddr  = 1 << 57
)

// Replay is a replay in progress. A caller passes events in order, in one or several chunks. [Replay.Finish] returns
// the result.
type Replay struct {
	settings Settings
	heap     heap
	seq      int64
	mapped   bool // the trace has shown an expandable segment
	pools    bool // events name private pools, as torch 2.12 and later record them

	// now and the fields up to reserved are relative to the state before event 1. If a block turns out later to have
	// been live before event 1, it is added at the end, since it shifts all values, peaks included, by the same amount.
	now                      Counters
	peakSeq, reservedPeakSeq int64
	before                   Counters
	allocated                []int64
	reserved                 Steps
	traced, untraced         []Alloc
	checkpoints              []Counters
	corrections              []correction
	early                    []earlyFree
	requests                 int64               // number of free_requested events
	gone                     map[uint64]struct{} // addresses of orphans that have been freed
	open                     map[int32]int64     // for each life: how much larger a block from before event 1 may be
	anomalies                Anomalies
}

// correction is a change to the values after events from up to, but not including, to. A correction became known after
// event from.
type correction struct {
	from, to          int64
	allocated, active int64
}

// earlyFree is a completed free of a block for which the trace has neither an alloc nor a request to free.
type earlyFree struct {
	addr   uint64
	size   int64
	stream uint64
	seq    int64
}

// New begins a replay. start is the allocator's own list before event 1, if it was taken. With start, the replay of a
// recording that began late is exact. Without start, the replay begins with an empty allocator, which is right if
// recording began before the allocator's first use.
func New(settings Settings, start []schemas.SegmentBlock) (*Replay, error) {
	r := &Replay{settings: settings, heap: newHeap(), allocated: []int64{0}, gone: map[uint64]struct{}{},
		open: map[int32]int64{}}
	r.reserved = Steps{Seq: []int64{0}, Value: []int64{0}}
	if err := r.seed(start); err != nil {
		return nil, err
	}
	return r, nil
}

// Run replays a whole recording of one device. gaps are the times without recording, in order; each has its event among
// events. final is the allocator's own list after the last event, or nil. at lists, in order, the seqs for which
// [Result.Checkpoints] will have counters.
func Run(events *schemas.EventColumns, settings Settings, gaps []Gap, final []schemas.SegmentBlock,
	at ...int64) (*Result, error) {
	if err := sameLength(events); err != nil {
		return nil, err
	}
	r, err := New(settings, nil)
	if err != nil {
		return nil, err
	}
	if err := r.through(events, gaps, at); err != nil {
		return nil, err
	}
	res := r.Finish(final)
	if len(gaps) > 0 || !res.Anomalies.Late() || !isLast(final, r.seq) {
		return res, nil
	}
	late, err := replayLate(events, settings, final, at)
	if err != nil {
		res.Anomalies.Contradictions++
		return res, nil
	}
	return late, nil
}

// through applies all events, and keeps the counters at the given seqs.
func (r *Replay) through(events *schemas.EventColumns, gaps []Gap, at []int64) (err error) {
	n := 0
	for _, a := range events.Action {
		if a == schemas.ActionAlloc {
			n++
		}
	}
	r.traced = make([]Alloc, 0, n)
	r.allocated = append(make([]int64, 0, events.Len()+1), r.allocated...)
	for _, seq := range at {
		if seq < r.seq || seq > int64(events.Len()) {
			return fmt.Errorf("counters wanted at event %d: not in order, or beyond the last of %d events", seq,
				events.Len())
		}
		if gaps, err = r.until(events, gaps, seq); err != nil {
			return err
		}
		r.Checkpoint()
	}
	if gaps, err = r.until(events, gaps, int64(events.Len())); err != nil {
		return err
	}
	if len(gaps) > 0 {
		return fmt.Errorf("a gap at event %d: not in order, or beyond the last of %d events", gaps[0].Seq,
			events.Len())
	}
	return nil
}

// until applies events up to seq, and returns the gaps after seq.
func (r *Replay) until(events *schemas.EventColumns, gaps []Gap, seq int64) ([]Gap, error) {
	for len(gaps) > 0 && gaps[0].Seq > r.seq && gaps[0].Seq <= seq {
		if err := r.apply(events, gaps[0].Seq-1); err != nil {
			return nil, err
		}
		if err := r.Resume(gaps[0].List); err != nil {
			return nil, err
		}
		gaps = gaps[1:]
	}
	return gaps, r.apply(events, seq)
}

// apply applies the events that have not been applied yet, up to seq.
func (r *Replay) apply(events *schemas.EventColumns, seq int64) error {
	part := events.Part(int(r.seq), int(seq))
	return r.Apply(&part)
}

// Checkpoint keeps the counters just after the events applied so far, for [Result.Checkpoints].
func (r *Replay) Checkpoint() {
	r.checkpoints = append(r.checkpoints, r.Now())
}

// Now returns the counters just after the events applied so far.
func (r *Replay) Now() Counters {
	c := r.now
	c.Seq = r.seq
	return c
}

// sameLength returns an error if the columns of events have different lengths.
func sameLength(e *schemas.EventColumns) error {
	n := len(e.Action)
	if len(e.Addr) != n || len(e.Size) != n || len(e.Stream) != n && len(e.Stream) != 0 ||
		len(e.Pool) != n && len(e.Pool) != 0 {
		return fmt.Errorf("event columns differ in length: %d actions, %d addresses, %d sizes, %d streams, %d pools",
			n, len(e.Addr), len(e.Size), len(e.Stream), len(e.Pool))
	}
	return nil
}

// Apply replays the next events. Apply reads only the events' actions, addresses, sizes, streams and pools.
func (r *Replay) Apply(e *schemas.EventColumns) error {
	if err := sameLength(e); err != nil {
		return err
	}
	r.allocated = slices.Grow(r.allocated, e.Len())
	for i, action := range e.Action {
		r.seq++
		addr, size, stream, pool := e.Addr[i], e.Size[i], e.StreamOf(i), e.PoolOf(i)
		r.pools = r.pools || pool != 0
		if action >= schemas.ActionAlloc && action <= schemas.ActionSegmentUnmap && malformed(addr, size) {
			r.anomalies.MalformedEvents++
			r.allocated = append(r.allocated, r.now.Allocated)
			continue
		}
		switch action {
		case schemas.ActionAlloc:
			r.alloc(addr, size, stream, pool)
		case schemas.ActionFreeRequested:
			r.requests++
			r.freeRequested(addr, size, stream)
		case schemas.ActionFreeCompleted:
			r.freeCompleted(addr, size, stream)
		case schemas.ActionSegmentAlloc:
			r.segmentAdded(addr, size, false, stream, pool)
		case schemas.ActionSegmentMap:
			r.mapped = true
			r.segmentAdded(addr, size, true, stream, pool)
		case schemas.ActionSegmentFree, schemas.ActionSegmentUnmap:
			r.segmentRemoved(addr, size)
		}
		r.allocated = append(r.allocated, r.now.Allocated)
	}
	return nil
}

func malformed(addr uint64, size int64) bool {
	return addr == 0 || addr > maxAddr || size < 0 || size > maxBytes
}

// life returns the life with index i: in traced for indexes from 0 up, in untraced for indexes from -2 down.
func (r *Replay) life(i int32) *Alloc {
	if i >= 0 {
		return &r.traced[i]
	}
	return &r.untraced[-2-i]
}

func (r *Replay) freeRequested(addr uint64, size int64, stream uint64) {
	i := r.heap.at.get(addr)
	if i == none || r.heap.blocks[i].life == free {
		if r.explains(addr) {
			r.anomalies.LostAllocs++
			return
		}
		i = r.foundUntraced(addr, size, stream)
	}
	b := &r.heap.blocks[i]
	if b.pending {
		r.anomalies.LostFrees++
		return
	}
	a := r.life(b.life)
	if a.Requested != size {
		r.anomalies.SizeMismatches++
	}
	b.pending = true
	a.FreeRequestedSeq = r.seq
	r.now.Allocated -= a.Block
}

func (r *Replay) freeCompleted(addr uint64, size int64, stream uint64) {
	i := r.heap.at.get(addr)
	if i == none || r.heap.blocks[i].life == free {
		if r.explains(addr) {
			r.anomalies.LostAllocs++
			return
		}
		// The free was requested before recording began. Traces too old to have free_requested events are corrected at
		// the end.
		n := r.settings.round(size)
		r.early = append(r.early, earlyFree{addr: addr, size: size, stream: stream, seq: r.seq})
		r.before.Active += n
		r.before.Requested += size
		r.now.Active -= n
		r.now.Requested -= size
		r.gone[addr] = struct{}{}
		return
	}
	if a := r.life(r.heap.blocks[i].life); a.Requested != size && !r.heap.blocks[i].pending {
		r.anomalies.SizeMismatches++
	}
	r.end(i)
	if r.heap.blocks[i].run == none {
		r.gone[addr] = struct{}{}
	}
	r.heap.release(i)
}

// end ends the life of a used block. The caller must release the block itself.
func (r *Replay) end(i int32) {
	b := &r.heap.blocks[i]
	a := r.life(b.life)
	if !b.pending {
		a.FreeRequestedSeq = r.seq
		r.now.Allocated -= a.Block
	}
	a.FreeCompletedSeq = r.seq
	r.now.Active -= a.Block
	r.now.Requested -= a.Requested
}

// explains reports whether the replay knows which block is at addr, so that an unknown block there cannot be older than
// the recording.
func (r *Replay) explains(addr uint64) bool {
	if r.heap.runAt(addr) != none {
		return true
	}
	_, ok := r.gone[addr]
	return ok
}

// foundUntraced adds a block that was live before recording began.
func (r *Replay) foundUntraced(addr uint64, size int64, stream uint64) int32 {
	n := r.settings.round(size)
	r.before.Allocated += n
	r.before.Active += n
	r.before.Requested += size
	r.untraced = append(r.untraced, Alloc{Address: addr, Requested: size, Block: n, Stream: stream})
	return r.heap.add(block{addr: addr, size: n, prev: none, next: none, run: none, life: int32(-1 - len(r.untraced))})
}

func (r *Replay) segmentAdded(addr uint64, size int64, expandable bool, stream, pool uint64) {
	if size == 0 {
		r.anomalies.MalformedEvents++
		return
	}
	if known, _ := r.heap.unreserve(addr, size); known > 0 { // the known segment's segment_free was lost
		r.anomalies.LostSegments++
		r.reserve(-known)
	}
	if i := r.heap.at.get(addr); i != none { // the block is an orphan
		r.anomalies.LostFrees++
		r.end(i)
		r.heap.release(i)
	}
	r.heap.reserve(run{addr: addr, size: size, stream: stream, pool: pool, expandable: expandable, since: r.seq})
	r.reserve(size)
}

func (r *Replay) segmentRemoved(addr uint64, size int64) {
	if size == 0 {
		r.anomalies.MalformedEvents++
		return
	}
	known, used := r.heap.unreserve(addr, size)
	if used > 0 {
		r.anomalies.LostSegments++
	}
	if known < size {
		r.reservedBefore(size - known)
	}
	r.reserve(-size)
}

// reserve adds d to the reserved bytes; d is negative if memory was released.
func (r *Replay) reserve(d int64) {
	r.now.Reserved += d
	if r.now.Reserved > r.now.ReservedPeak {
		r.now.ReservedPeak, r.reservedPeakSeq = r.now.Reserved, r.seq
	}
	s := &r.reserved
	if last := len(s.Seq) - 1; s.Seq[last] == r.seq {
		s.Value[last] = r.now.Reserved
		return
	}
	s.Seq = append(s.Seq, r.seq)
	s.Value = append(s.Value, r.now.Reserved)
}
