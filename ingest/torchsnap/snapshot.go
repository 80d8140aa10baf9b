package torchsnap

import "github.com/dpsight/dpsight/schemas"

// A Snapshot is one memory snapshot of torch, in columns.
type Snapshot struct {
	// Devices holds the allocator's events, index = device. TimeNS is time_us·1000. Mark is user_metadata if that is a
	// decimal number below 2^32, else 0. Pool is [PoolID] of pool_id. In eras without pool_id, Pool is 0 even for
	// private pools; only the segments then show the pool. An oom event has device_free as its address. Size is −1 if
	// an event without address (snapshot, oom, user_defined) has no size.
	Devices []schemas.EventColumns

	// Metadata has the distinct texts of user_metadata that are no marks; Metadata[0] is "". For a dictionary, the text
	// is compact JSON.
	Metadata []string
	// MetadataID has a column for each device: event i's text is Metadata[MetadataID[device][i]]. A device whose events
	// have no texts has a nil column; see [Snapshot.Text].
	MetadataID [][]uint32
	// Internal lists the events that the allocator made for itself (internal_metadata), by device and event.
	Internal []InternalEvent

	Segments    []Segment // segments of all devices, in torch's order
	Settings    Settings
	Annotations []Annotation
	Stacks      *Stacks // stacks of events, segments and blocks; ids from 1, 0 = none

	// Odd lists the kinds of values that were skipped because torch would not write them, each with a count if there
	// were several. An event that was skipped has the action [schemas.ActionUnknown], or Unread counts it.
	Odd []string
	// Unread counts, for each device, the entries in its list of events that are not events.
	Unread []int64

	Protocol int // protocol of the pickle
	// TraceKeys are the keys in the snapshot's trace events (host_traces included), sorted. TraceKeys show the
	// snapshot's era.
	TraceKeys []string
}

// HasTexts reports whether any event of a device may have a text; see [Snapshot.Text].
func (s *Snapshot) HasTexts(device int) bool {
	return device < len(s.MetadataID) && s.MetadataID[device] != nil
}

// Text returns the user_metadata of an event (index from 0) of a device, or "" if it is a mark or absent.
func (s *Snapshot) Text(device, event int) string {
	if !s.HasTexts(device) {
		return ""
	}
	return s.Metadata[s.MetadataID[device][event]]
}

// An InternalEvent is an event that the allocator made for itself and that is no request of the program, such as
// mallocWithAddress. Internal events come in pairs.
type InternalEvent struct {
	Device, Event int // ordinal of the device, and index of the event from 0
	Text          string
}

// A Segment is a stretch of device memory that the allocator requested from the driver.
type Segment struct {
	Device        int
	Address       uint64
	TotalSize     int64
	AllocatedSize int64 // −1 where absent
	ActiveSize    int64 // −1 where absent
	RequestedSize int64 // −1 in formats without it
	Stream        uint64
	Type          string // small or large
	Pool          uint64 // [PoolID] of segment_pool_id; 0 = the default pool, or a format without it
	Expandable    bool
	Stack         uint32
	Blocks        []Block // blocks in order of address, which cover the segment
}

// A Block is one block of a segment.
type Block struct {
	Address       uint64
	Size          int64
	RequestedSize int64  // −1 for inactive blocks, where torch leaves a stale value, and where unknown
	State         string // [schemas.BlockActive] or another state of a block
	Stack         uint32
}

// Settings are the allocator's settings that the snapshot reports.
type Settings struct {
	Present                    bool   // the snapshot has settings
	AllocConf                  string // PYTORCH_CUDA_ALLOC_CONF
	MaxSplitSize               int64  // bytes; −1 = no limit, also where absent
	LargeSegmentSize           int64  // bytes; 0 = absent
	GarbageCollectionThreshold float64
	ExpandableSegments         bool
	// RoundupPower2Divisions maps a size class in MiB (1, 2, 4, …) to its divisions. RoundupPower2Divisions leaves out
	// classes without divisions.
	RoundupPower2Divisions map[int64]int64
	// Other holds the settings that have no field of their own, as text.
	Other map[string]string
}

// An Annotation is one end of a record_function range.
type Annotation struct {
	Name   string
	Stage  string // the stage of the annotation: START, END
	Device int
	TimeNS int64 // ns, by the allocator's clock
}

// PoolID packs torch's pair of pool numbers, (captured, user-made), into one number. The pair (0, n) becomes n, so the
// default pool (0, 0) is 0.
func PoolID(first, second uint32) uint64 { return uint64(first)<<32 | uint64(second) }
