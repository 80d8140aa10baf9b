package ladder

import "github.com/dpsight/dpsight/analyze/memory"

// A Remark is a fact about a ladder's moment that the rungs do not show. Kind decides which of the other fields are
// set.
type Remark struct {
	Kind     string
	Samples  int              // of [RemarkPlateau]
	MS       float64          // from the moment to the sample; of [RemarkUnsettled] and [RemarkCountersNear], at most
	After    bool             // the sample lies after the moment
	Bytes    int64            // of [RemarkOtherSide]
	Device   string           // of [RemarkAlone]
	Untagged *memory.Untagged // of [RemarkUntagged]
}

// The kinds of remarks.
const (
	RemarkPlateau       = "plateau"        // several samples are as high as the peak
	RemarkNotRecorded   = "not_recorded"   // the peak lies in steps that were not recorded
	RemarkUnsettled     = "unsettled"      // a segment came or went near the sample
	RemarkCounters      = "counters"       // torch's part is by its counters, the same before and after
	RemarkCountersNear  = "counters_near"  // torch's part is by its counters near the sample
	RemarkReservedMore  = "reserved_more"  // torch reserved more than NVML has in use
	RemarkAlone         = "alone"          // the rungs show one device only
	RemarkNoSample      = "no_sample"      // no sample can be set beside the allocator
	RemarkNearestSample = "nearest_sample" // values outside torch come from a sample near the event
	RemarkOtherSide     = "other_side"     // at the sample on the event's other side it was something else
	RemarkUntagged      = "untagged"       // the moment is in a step without tags
)

// Unsampled is the reason why a GPU's memory outside torch is unknown. Why decides which of the other fields are set.
type Unsampled struct {
	Why    string // empty = there are samples
	Device string
	UUID   string
	GPUs   int // of [UnsampledWhich]
}

// The values of [Unsampled.Why]: why a GPU has no samples.
const (
	UnsampledPhantom  = "phantom"
	UnsampledImported = "imported"
	UnsampledNever    = "never"     // NVML was not asked
	UnsampledTwin     = "twin"      // several GPUs have the UUID
	UnsampledUnknown  = "unknown"   // NVML has no GPU with the UUID
	UnsampledWhich    = "which_gpu" // it is unknown which of the GPUs it is
)
