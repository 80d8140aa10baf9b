package ladder

import "github.com/dpsight/dpsight/analyze/memory"

// A Remark is a fact about a ladder's moment that the rungs do not show. Kind decides which of the other fields are
// set.
type Remark struct {
	Kind     string
	Samples  int              // number of samples, for [RemarkPlateau]
	MS       float64          // time from the moment to the sample, for [RemarkUnsettled] and [RemarkCountersNear] at most
	After    bool             // the sample lies after the moment
	Bytes    int64            // bytes, for [RemarkOtherSide]
	Device   string           // device, for [RemarkAlone]
	Untagged *memory.Untagged // untagged bytes, for [RemarkUntagged]
}

// The kinds of remarks.
const (
	RemarkPlateau       = "plateau"        // several samples are as high as the peak
	RemarkNotRecorded   = "not_recorded"   // the peak lies in steps that were not recorded
	RemarkUnsettled     = "unsettled"      // a segment came or went near the sample
	RemarkCounters      = "counters"       // torch's part comes from its counters, which were the same before and after
	RemarkCountersNear  = "counters_near"  // torch's part comes from its counters near the sample
	RemarkReservedMore  = "reserved_more"  // torch reserved more than NVML has in use
	RemarkAlone         = "alone"          // the rungs show one device only
	RemarkNoSample      = "no_sample"      // no sample can be joined with the allocator
	RemarkNearestSample = "nearest_sample" // values outside torch come from a sample near the event
	RemarkOtherSide     = "other_side"     // at the sample on the other side of the event the value was different
	RemarkUntagged      = "untagged"       // the moment is in a step without tags
)

// Unsampled is the reason why a GPU's memory outside torch is unknown. Why decides which of the other fields are set.
type Unsampled struct {
	Why    string // why there are no samples; empty = there are
	Device string
	UUID   string
	GPUs   int // number of GPUs, for [UnsampledWhich]
}

// The values of [Unsampled.Why]: why a GPU has no samples.
const (
	UnsampledPhantom  = "phantom"
	UnsampledImported = "imported"
	UnsampledNever    = "never"     // NVML was not read
	UnsampledTwin     = "twin"      // several GPUs have the UUID
	UnsampledUnknown  = "unknown"   // NVML has no GPU with the UUID
	UnsampledWhich    = "which_gpu" // it is unknown which of the GPUs the device is
)
