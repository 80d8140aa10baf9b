package schemas

// The values of [SegmentBlock.State]: the state of a block in the allocator's own list.
const (
	BlockActive      = "active_allocated"
	BlockPendingFree = "active_pending_free"
	BlockInactive    = "inactive"
)

// ListMoment says when the allocator's list was taken that a block is from.
type ListMoment string

// The values of [ListMoment]: a recording keeps these lists.
const (
	ListLast   ListMoment = "last"   // at the last drain
	ListOOM    ListMoment = "oom"    // when a request failed for want of memory
	ListWindow ListMoment = "window" // where a later window of recorded steps opens
)

// SegmentBlock is one row of segments.parquet: one block of the allocator's own list. The lists were taken at the
// last drain, at an out-of-memory error, and where a later window of recorded steps opens. Without the lists of later
// windows, events after the gap between two windows could not be replayed from the tables.
type SegmentBlock struct {
	RunID          string     `parquet:"run_id,dict"`           // the run's id, as in run.json
	Rank           int32      `parquet:"rank,dict"`             // the process's RANK, from 0
	Device         int32      `parquet:"device,dict"`           // torch's ordinal of the device, from 0
	Seq            int64      `parquet:"seq,delta"`             // events 1..Seq came before the list
	At             ListMoment `parquet:"at,dict"`               // when the list was taken
	SegmentAddress uint64     `parquet:"segment_address,dict"`  // address of the segment on the device
	SegmentBytes   int64      `parquet:"segment_bytes,dict"`    // bytes of the whole segment
	SegmentType    string     `parquet:"segment_type,dict"`     // the kind of segment: small, large
	Stream         uint64     `parquet:"stream,dict"`           // CUDA stream handle; 0 = the default stream
	Pool           uint64     `parquet:"pool_id,dict,optional"` // private pool; null = the default one, or unknown
	Expandable     bool       `parquet:"expandable"`            // the segment can grow
	Address        uint64     `parquet:"address"`               // address of the block on the device
	BlockBytes     int64      `parquet:"block_bytes"`           // bytes of the block, as the allocator counts them
	// bytes that the block's owner asked for; null for inactive blocks, for which torch reports a stale value
	RequestedBytes int64  `parquet:"requested_bytes,optional"`
	State          string `parquet:"state,dict"` // [BlockActive], [BlockPendingFree] or [BlockInactive]
}

// Segments is segments.parquet.
var Segments = Table[SegmentBlock]{Name: "segments", Version: 1}
