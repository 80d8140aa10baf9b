package schemas

// Checkpoint is one row of checkpoints.parquet: torch's own counters of one device at one drain, and whether replay agrees.
type Checkpoint struct {
	RunID  string `parquet:"run_id,dict"`
	Rank   int32  `parquet:"rank,dict"`
	Device int32  `parquet:"device,dict"`
	Drain  int64  `parquet:"drain,delta"` // from 1
	Reason string `parquet:"reason,dict"` // step, oom, exit, full, request, script, window
	K      int64  `parquet:"k,delta"`
	Seq    int64  `parquet:"seq,delta"` // events 1..Seq came before it
	TimeNS int64  `parquet:"time_ns,delta"`

	// torch.cuda.memory_stats
	AllocatedBytes     int64 `parquet:"allocated_bytes"`
	AllocatedPeakBytes int64 `parquet:"allocated_peak_bytes"`
	ReservedBytes      int64 `parquet:"reserved_bytes"`
	ReservedPeakBytes  int64 `parquet:"reserved_peak_bytes"`
	ActiveBytes        int64 `parquet:"active_bytes"`
	RequestedBytes     int64 `parquet:"requested_bytes"`

	// Recorded says that the events up to here are in the journal. Where they are not, as between windows, there is
	// nothing to replay: the columns from here on are 0 and false, and mean nothing.
	Recorded bool `parquet:"recorded"`

	// The same, replayed.
	ReplayedAllocatedBytes     int64 `parquet:"replayed_allocated_bytes"`
	ReplayedAllocatedPeakBytes int64 `parquet:"replayed_allocated_peak_bytes"`
	ReplayedReservedBytes      int64 `parquet:"replayed_reserved_bytes"`

	// Events torch counted since recording began less events in the journal; 0 = lossless.
	MissingAllocs         int64 `parquet:"missing_allocs"`
	MissingFreeRequests   int64 `parquet:"missing_free_requests"`
	MissingFreeCompletes  int64 `parquet:"missing_free_completes"`
	MissingRequestedBytes int64 `parquet:"missing_requested_bytes"`

	DrainNS int64 `parquet:"drain_ns"` // wall time the drain took
	Agrees  bool  `parquet:"agrees"`
}

// ReasonWindow is the reason of the drain that opens a window: it has no events, but the allocator's own list of blocks.
const ReasonWindow = "window"

// Checkpoints is checkpoints.parquet.
var Checkpoints = Table[Checkpoint]{Name: "checkpoints", Version: 2}
