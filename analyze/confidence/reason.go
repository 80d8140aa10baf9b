package confidence

import "github.com/dpsight/dpsight/schemas"

// An Assessment is how sure a predicted peak is, and why. Report has the words.
type Assessment struct {
	Level     string // level of confidence, one of [Levels]
	Reasons   []Reason
	Unchecked []Unchecked // what the profile of a device determines and nobody has compared
	// Known are the errors of recorded predictions with the same doubts; nil if the level is not close, or if no
	// recording has these doubts.
	Known []KnownErrors
}

// A Reason is one fact behind a level. The comment beside each kind says which figures it has.
type Reason struct {
	Kind        Kind
	Name, Other string
	Names       []string
	Places      []schemas.Counted // places in the script, as file:line, and how often each occurred
	Count       int
	Bytes       [2]int64
	Ranks       [2]int32
	Device      int32
}

// Kind is what a reason is about.
type Kind string

// What speaks for a prediction.
const (
	NothingUnknown   Kind = "nothing unknown"   // the script read no unknown value
	NothingEstimated Kind = "nothing estimated" // no library was estimated or left out
	Compared         Kind = "compared"          // predictions agree with recordings of device Name under torch Other
)

// Reasons against a prediction: how the run ended.
const (
	OldVersion    Kind = "old version"    // the version of dpsight did not record what the script read
	AttachedLate  Kind = "attached"       // dpsight.attach() does not record what the script read
	EndedEarly    Kind = "ended early"    // the run ended early; Name is its status
	EndedBySteps  Kind = "ended-by-steps" // the prediction ended the script after step Count
	EventsMissing Kind = "events missing" // events of the recording are missing
	PeakBounded   Kind = "bounded"        // some blocks from before recording have no known size
	Unheard       Kind = "unheard"        // Count processes left no journal
	Unsaid        Kind = "unsaid"         // a process died before it reported what it had read
	Nothing       Kind = "nothing"        // the script took no device memory; Count processes left no journal
	CaughtOOM     Kind = "caught OOM"     // the script continued after a request had failed
	AbsorbedOOM   Kind = "absorbed OOM"   // torch itself recovered from a failed request
)

// Reasons against a prediction: what the run read, and what was estimated.
const (
	DrawnAnew      Kind = "drawn anew"       // each run has batches of other sizes
	UnknownRead    Kind = "unknown read"     // unknown values were read, at Places that no decision names
	Decided        Kind = "decided"          // the read at Name was answered the other way, after the error Other
	CopiedRead     Kind = "copied read"      // a value that depends on other ranks was read, at Places
	TakenForFinite Kind = "taken-for-finite" // unknown values were assumed to be finite, at Places, by the operators Names
	SizeByValues   Kind = "size-by-values"   // sizes of the results of Names; the largest possible size was assumed
	Noted          Kind = "noted"            // Name is a note, as the phantom GPU wrote it
	CodeGenerated  Kind = "code generated"   // torch.compile generated code
)

// What it ran on.
const (
	DeviceShared    Kind = "device shared"    // Count processes had memory of one device at once
	RanksTogether   Kind = "ranks together"   // the ranks Ranks shared Device, which NCCL refuses
	DeviceUnchecked Kind = "device unchecked" // no prediction was compared with a device called Name
	TorchUnknown    Kind = "torch unknown"    // predictions were compared under torch Other alone
	TorchUnchecked  Kind = "torch unchecked"  // no prediction was compared under torch Name; under Other some were
	OtherAddresses  Kind = "other addresses"  // addresses followed policy Name; the profile's policy is Other
	AddressesDecide Kind = "addresses decide" // with policy Name the run ended differently: Other is the status
	AddressesMatter Kind = "addresses matter" // Bytes: the lowest and the highest peak over address policies
)

// When Python's garbage was collected.
const (
	GarbageForced Kind = "garbage forced" // garbage was collected at the moments that Name tells
	// it freed Bytes[0], and there are no runs that bound the peak; Name is the status of a run that was ended
	GarbageCollected Kind = "garbage collected"
	GarbageDecides   Kind = "garbage decides" // collected at Name, the run ended differently: Other is the status
	GarbageMatters   Kind = "garbage matters" // Bytes: the lowest and the highest peak over moments of collection
)

// Unchecked is something that a device's profile decides and that was never compared with such a device.
type Unchecked struct {
	Kind  UncheckedKind
	Names []string
}

// UncheckedKind is what was not compared.
type UncheckedKind string

const (
	AttentionKernels  UncheckedKind = "attention kernels"
	CuDNNEngines      UncheckedKind = "cuDNN engines"
	CuBLASWorkspaces  UncheckedKind = "cuBLAS workspaces"
	SegmentAddresses  UncheckedKind = "segment addresses"
	BF16              UncheckedKind = "bf16"       // Names is the compute capability, which has no instructions for it
	PropertiesAssumed UncheckedKind = "properties" // Names: properties that no source gives
)
