package schemas

// Checkpoint is one row of checkpoints.parquet: torch's own counters of one device at one drain, and whether the
// replayed bytes equal them.
type Checkpoint struct {
	RunID  string `parquet:"run_id,dict"`   // the run's id, as in run.json
	Rank   int32  `parquet:"rank,dict"`     // the process's RANK, from 0
	Device int32  `parquet:"device,dict"`   // torch's ordinal of the device, from 0
	Drain  int64  `parquet:"drain,delta"`   // number of the drain, from 1
	Reason string `parquet:"reason,dict"`   // step, oom, exit, full, timer, alone, request, script, window, lost
	K      int64  `parquet:"k,delta"`       // the number of the mark, from 1
	Seq    int64  `parquet:"seq,delta"`     // events 1..Seq came before the checkpoint
	TimeNS int64  `parquet:"time_ns,delta"` // ns, Unix time

	// The next six columns are torch's counters, as torch.cuda.memory_stats gives them.
	AllocatedBytes     int64 `parquet:"allocated_bytes"`      // bytes in blocks
	AllocatedPeakBytes int64 `parquet:"allocated_peak_bytes"` // highest allocated since torch's counter was last reset
	ReservedBytes      int64 `parquet:"reserved_bytes"`       // bytes in segments
	ReservedPeakBytes  int64 `parquet:"reserved_peak_bytes"`  // highest reserved since torch's counter was last reset
	ActiveBytes        int64 `parquet:"active_bytes"`         // allocated bytes, and freed bytes that a stream still uses
	RequestedBytes     int64 `parquet:"requested_bytes"`      // bytes that were asked for: allocated without rounding

	// Recorded is true if the journal has the events up to this drain. If Recorded is false, as between windows, there
	// is nothing to replay. The replayed and the missing columns are then 0 and Agrees is false, but these values mean
	// nothing.
	Recorded bool `parquet:"recorded"`

	// The next three columns are the same bytes as replay computes them.
	ReplayedAllocatedBytes     int64 `parquet:"replayed_allocated_bytes"`      // the replayed value for AllocatedBytes
	ReplayedAllocatedPeakBytes int64 `parquet:"replayed_allocated_peak_bytes"` // the replayed value for AllocatedPeakBytes
	ReplayedReservedBytes      int64 `parquet:"replayed_reserved_bytes"`       // the replayed value for ReservedBytes

	// The missing columns are the events that torch counted since recording began, minus the events in the journal; 0 =
	// no event is lost.
	MissingAllocs         int64 `parquet:"missing_allocs"`          // number of events
	MissingFreeRequests   int64 `parquet:"missing_free_requests"`   // number of events
	MissingFreeCompletes  int64 `parquet:"missing_free_completes"`  // number of events
	MissingRequestedBytes int64 `parquet:"missing_requested_bytes"` // bytes that the missing allocations asked for

	DrainNS int64 `parquet:"drain_ns"` // ns of wall time that the drain took
	Agrees  bool  `parquet:"agrees"`   // replayed bytes equal torch's, and no event is missing
}

// ReasonOOM is the reason of the drain after a request that failed because memory was short.
const ReasonOOM = "oom"

// ReasonWindow is the reason of the drain that opens a window: such a drain has no events, only the allocator's own
// list of blocks.
const ReasonWindow = "window"

// ReasonLost is the reason of a drain that follows a drain in which other threads' events may have been lost. A drain
// with ReasonLost has no events, only the allocator's list of blocks, from which the replay continues.
const ReasonLost = "lost"

// Checkpoints is checkpoints.parquet.
var Checkpoints = Table[Checkpoint]{Name: "checkpoints", Version: 2}
