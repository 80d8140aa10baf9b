package torchsnap

import "github.com/dpsight/dpsight/ingest/pickle"

// The words of a snapshot that this package knows. The decoder interns them first and in this order, so that a word's
// constant is its id.
const (
	_ uint32 = iota
	// The keys of a trace event come first. The keys of a trace event are below 32, since they are also bits of a set.
	// Keys up to kStream are required.
	kAction
	kAddr
	kDeviceFree
	kSize
	kStream
	kTimeUS
	kFrames
	kUserMetadata
	kPoolID
	kInternalMetadata
	kCompileContext
	lastEventKey = kCompileContext
)

const (
	// keys of a frame
	kName uint32 = iota + lastEventKey + 1
	kFilename
	kLine
	// keys of a segment
	kDevice
	kAddress
	kTotalSize
	kAllocatedSize
	kActiveSize
	kRequestedSize
	kSegmentType
	kSegmentPoolID
	kIsExpandable
	kBlocks
	// keys of a block and of its history
	kState
	kHistory
	kRealSize
	// keys of an annotation
	kStage
	// keys of the snapshot
	kSegments
	kDeviceTraces
	kAllocatorSettings
	kExternalAnnotations
	// keys of the settings
	kAllocConf
	kMaxSplitSize
	kLargeSegmentSize
	kGarbageCollection
	kExpandable
	kRoundup
	lastKey = kRoundup
)

var words = [...]string{
	kAction: "action", kAddr: "addr", kDeviceFree: "device_free", kSize: "size", kStream: "stream", kTimeUS: "time_us",
	kFrames: "frames", kUserMetadata: "user_metadata", kPoolID: "pool_id", kInternalMetadata: "internal_metadata",
	kCompileContext: "compile_context",
	kName:           "name", kFilename: "filename", kLine: "line",
	kDevice: "device", kAddress: "address", kTotalSize: "total_size", kAllocatedSize: "allocated_size",
	kActiveSize:    "active_size",
	kRequestedSize: "requested_size", kSegmentType: "segment_type", kSegmentPoolID: "segment_pool_id",
	kIsExpandable: "is_expandable", kBlocks: "blocks",
	kState: "state", kHistory: "history", kRealSize: "real_size",
	kStage:    "stage",
	kSegments: "segments", kDeviceTraces: "device_traces", kAllocatorSettings: "allocator_settings",
	kExternalAnnotations: "external_annotations",
	kAllocConf:           "PYTORCH_CUDA_ALLOC_CONF", kMaxSplitSize: "max_split_size",
	kLargeSegmentSize:  "large_segment_size",
	kGarbageCollection: "garbage_collection_threshold", kExpandable: "expandable_segments",
	kRoundup: "roundup_power2_divisions",
}

// The tags of the containers that the builder makes.
const (
	tagBad     uint8 = iota + 1 // an error that counts only if the container is used
	tagEvent                    // a row of events
	tagTrace                    // a list of events
	tagFrame                    // a frame id
	tagStack                    // a stack id
	tagFrames                   // a list of frames that came in several batches
	tagSegment                  // a segment; the following index a table of their own
	tagBlock
	tagHistory
	tagAnnotation
	tagSnapshot
	tagList // any other list
	tagDict // any other dictionary
	tagPair // a tuple of two integers below 2^32, as PoolID
	tagTuple
)

var tagNames = [...]string{"nothing", "something broken", "a trace event", "a list of trace events", "a frame",
	"a list of frames", "a list of frames",
	"a segment", "a block", "a history entry", "an annotation", "a snapshot", "a list", "a dict", "a pair", "a tuple"}

// kindOf returns the kind of a dictionary that has a key. kindOf returns 0 if several kinds have the key.
func kindOf(key uint32) uint8 {
	switch key {
	case kAction:
		return tagEvent
	case kFilename:
		return tagFrame
	case kTotalSize, kBlocks, kSegmentType:
		return tagSegment
	case kState:
		return tagBlock
	case kRealSize:
		return tagHistory
	case kStage:
		return tagAnnotation
	case kSegments, kDeviceTraces:
		return tagSnapshot
	}
	return 0
}

// describe returns a description of v for errors.
func describe(v pickle.Value) string {
	if tag := v.Ref().Tag; tag != 0 {
		return tagNames[tag]
	}
	switch v.Kind() {
	case pickle.None:
		return "None"
	case pickle.Int, pickle.Uint:
		return "an int"
	case pickle.BigInt:
		return "an int of more than 64 bits"
	case pickle.List, pickle.Dict, pickle.Tuple:
		return "an empty " + v.Kind().String()
	}
	return "a " + v.Kind().String()
}
