package replay

import (
	"sort"
	"strings"

	"github.com/dpsight/dpsight/schemas/units"
)

// Alloc is the life of one block.
type Alloc struct {
	Address          uint64
	Requested        int64
	Block            int64 // bytes that the allocator counts; >= Requested
	Stream           uint64
	Pool             uint64 // private pool of the block; 0 = the default pool, or unknown
	AllocSeq         int64  // 0 = alive before recording began
	FreeRequestedSeq int64  // event that requested the free; 0 = never
	FreeCompletedSeq int64  // event that completed the free; 0 = never
	// Open is by how many bytes the block may be larger than Block. If Open is above 0, the block was allocated before
	// recording began, and the trace does not show its size.
	Open int64
}

// LiveAt reports whether the block counts as allocated just after event seq.
func (a *Alloc) LiveAt(seq int64) bool {
	return a.AllocSeq <= seq && (a.FreeRequestedSeq == 0 || a.FreeRequestedSeq > seq)
}

// ActiveAt reports whether the block is active just after event seq: allocated, or freed but still in use by a stream.
func (a *Alloc) ActiveAt(seq int64) bool {
	return a.AllocSeq <= seq && (a.FreeCompletedSeq == 0 || a.FreeCompletedSeq > seq)
}

// Result is the result of a replay. Every seq counts one device's events from 1; 0 is the state before the first
// event.
type Result struct {
	Events int64
	// Allocs has the lives of all blocks in order of AllocSeq: the untraced first, by address.
	Allocs []Alloc
	// Allocated[seq] is the number of bytes allocated just after event seq.
	Allocated []int64
	// Reserved has the bytes reserved after each event. Reserved has one value for each change, since only events of
	// segments change the reserved bytes.
	Reserved Steps
	// PeakAllocated and PeakReserved are the highest values since recording began. PeakSeq is the first event at
	// PeakAllocated.
	PeakAllocated, PeakSeq        int64
	PeakReserved, PeakReservedSeq int64
	// PeakHigh is an upper bound of the peak. PeakHigh equals PeakAllocated unless the size of some block is open. If
	// recording began late, PeakHigh is valid only if Rewound is true.
	PeakHigh                        int64
	Rewound                         bool
	UntracedBytes, UntracedReserved int64 // bytes in blocks and in segments that were there before recording
	// Checkpoints are the counters at the requested seqs.
	Checkpoints []Counters
	Anomalies   Anomalies
	// Final is the comparison of the replay with the allocator's own list; nil if there was no list.
	Final *Comparison

	pendingBefore []Alloc // blocks that were pending free before event 1
}

// Counters are the replayed values of the allocator's counters just after event Seq, in bytes. The peaks of Counters
// count since recording began.
type Counters struct {
	Seq                      int64
	Allocated, AllocatedPeak int64
	Reserved, ReservedPeak   int64
	Active, Requested        int64 // bytes; a block counts here until its free is completed
}

// Steps are the values of a quantity that changes at few events: Value[i] holds from event Seq[i] until just before
// Seq[i+1]. Seq[0] is 0.
type Steps struct {
	Seq   []int64
	Value []int64
}

// At returns the value just after event seq.
func (s *Steps) At(seq int64) int64 {
	i := sort.Search(len(s.Seq), func(i int) bool { return s.Seq[i] > seq })
	if i == 0 {
		return 0
	}
	return s.Value[i-1]
}

// PeakBetween returns the highest allocated just after any of the events from..to, and the first event at that height.
// PeakBetween clips seqs outside the recording. For an empty range it returns seq -1.
func (r *Result) PeakBetween(from, to int64) (bytes, seq int64) {
	from, to = max(from, 0), min(to, r.Events)
	if from > to {
		return 0, -1
	}
	bytes, seq = r.Allocated[from], from
	for i, v := range r.Allocated[from : to+1] {
		if v > bytes {
			bytes, seq = v, from+int64(i)
		}
	}
	return bytes, seq
}

// Anomalies counts the signs that a recording did not begin with the allocator's first use, that it lacks events, or
// that the allocator had other settings than declared.
type Anomalies struct {
	// The fields from UntracedBlocks to Contradictions are above 0 if recording began late.
	UntracedBlocks int64 // blocks that were alive before the first event
	PendingBefore  int64 // blocks whose free had been requested before the first event: never allocated here
	LateSegments   int64 // segments that were reserved before the first event
	LateBlocks     int64 // blocks allocated in such a segment
	LateSlack      int64 // blocks that may be larger than the replay counts: see [Alloc].Open
	Contradictions int64 // places where events cannot have led to the allocator's own list

	// The fields from LostAllocs to MalformedBlocks are above 0 if events are missing, or belong to another device.
	LostAllocs      int64 // frees of blocks that no event created, in memory that was reserved while recording
	LostFrees       int64 // allocs at the address of a used block, and second requests to free one
	LostSegments    int64 // segments reserved over known ones, or given back with blocks in use
	SizeMismatches  int64 // frees with a size that differs from the request
	Overlaps        int64 // allocs inside a used block
	TooSmall        int64 // allocs in a free block that cannot hold them
	MalformedEvents int64 // events with a size or an address that no device has, which are skipped
	MalformedBlocks int64 // blocks with such a size or address in the allocator's own list

	// SplitInside and SlackSplit are above 0 if the settings differ from the declared ones, or if CUDA graph trees
	// restored a pool.
	SplitInside int64 // blocks allocated inside a free block, not at its start
	SlackSplit  int64 // blocks allocated in what was taken for a block's slack
}

// Late reports whether recording began after the allocator was first used.
func (a *Anomalies) Late() bool {
	return a.UntracedBlocks+a.PendingBefore+a.LateSegments+a.LateBlocks > 0
}

// Lost returns the number of events that show that other events are missing.
func (a *Anomalies) Lost() int64 {
	return a.LostAllocs + a.LostFrees + a.LostSegments + a.SizeMismatches + a.Overlaps + a.TooSmall +
		a.MalformedEvents + a.MalformedBlocks + a.Contradictions
}

// Inexact reports whether the replay had to assume the size of some block.
func (a *Anomalies) Inexact() bool { return a.LateSlack+a.Lost()+a.SplitInside+a.SlackSplit > 0 }

// Reason describes the trace's anomalies in one sentence. Reason returns "" for a complete recording.
func (a *Anomalies) Reason() string {
	var parts []string
	say := func(n int64, one, many string) {
		if n > 0 {
			parts = append(parts, units.Plural(int(n), one, many))
		}
	}
	say(a.UntracedBlocks, "block alive before recording began", "blocks alive before recording began")
	say(a.PendingBefore, "block pending free before recording began", "blocks pending free before recording began")
	say(a.LateSegments, "segment reserved before recording began", "segments reserved before recording began")
	say(a.LateBlocks, "block allocated in such segments", "blocks allocated in such segments")
	say(a.LateSlack, "block of unknown size", "blocks of unknown size")
	say(a.LostAllocs, "free without an alloc", "frees without an alloc")
	say(a.LostFrees, "alloc or free of a block that an unseen free must have ended",
		"allocs or frees of a block that an unseen free must have ended")
	say(a.LostSegments, "segment that overlaps others or was given back in use",
		"segments that overlap others or were given back in use")
	say(a.SizeMismatches, "free of another size than was allocated", "frees of another size than was allocated")
	say(a.Overlaps, "alloc inside a used block", "allocs inside a used block")
	say(a.TooSmall, "alloc in a block too small for it", "allocs in a block too small for them")
	say(a.MalformedEvents, "malformed event", "malformed events")
	say(a.MalformedBlocks, "malformed block in the allocator's list", "malformed blocks in the allocator's list")
	say(a.Contradictions, "contradiction between the events and the allocator's list",
		"contradictions between the events and the allocator's list")
	say(a.SplitInside, "alloc inside a free block", "allocs inside a free block")
	say(a.SlackSplit, "alloc in another block's slack", "allocs in another block's slack")
	return strings.Join(parts, "; ")
}
