package schemas

import "strings"

// Phantom (in run.json) is the device on which a predicted run ran: facts of the profile that decide how reliable
// the figures are.
type Phantom struct {
	// Checked is whether predictions for this profile were ever compared with recordings from such a device.
	Checked bool `json:"checked"`
	// Assumed are the properties of the profile that no source gives, sorted.
	Assumed []string `json:"assumed"`
	// MemoryBytes is what one process can take of the device. MemoryGiven says whether the user set it; otherwise
	// it is the profile's.
	MemoryBytes int64 `json:"memory_bytes"` // of the device
	MemoryGiven bool  `json:"memory_given"`
	// Addresses is the policy by which segments got their places; DefaultAddresses the profile's own.
	Addresses        string `json:"addresses"`
	DefaultAddresses string `json:"default_addresses"`
	// ComputeCapability is as CUDA counts it: "9.0".
	ComputeCapability string `json:"compute_capability"`
	// CheckedTorch is the version of torch whose predictions for this profile were compared; empty if none was.
	CheckedTorch string `json:"checked_torch,omitempty"`
	// Placements are earlier runs of the same experiment under other policies of addresses: with this run they are a
	// band.
	Placements []Placement `json:"placements,omitempty"`
	// Devices are the devices on which processes held memory; absent from older runs.
	Devices []DeviceUse `json:"devices,omitempty"`
	// Garbage is when Python's garbage collector ran: [GarbageNever] or [GarbageAtOnce], or empty where Python chose.
	Garbage string `json:"garbage,omitempty"`
	// Decisions are the reads of unknown values that got the other answer than usual, because the script failed
	// after the usual one.
	Decisions []Decision `json:"decisions,omitempty"`
	// Collections are runs of the same experiment with a collector that runs at other moments: with this run they are
	// the range of its peak.
	Collections []Collection `json:"collections,omitempty"`
}

// When Python's cyclic garbage collector runs, other than when Python chooses.
const (
	GarbageNever  = "never"
	GarbageAtOnce = "at once"
)

// Decision is a read that was answered the other way: as true in place of false, as one in place of zero.
type Decision struct {
	// Place is file:line of the script and, if a function of torch's reads, " in " and that function's line.
	Place string `json:"place"`
	Error string `json:"error"`  // which the script failed with after the usual answer
	RunID string `json:"run_id"` // of the run that failed
}

// Line is file:line of the script, without the function of torch's that reads.
func (d *Decision) Line() string {
	line, _, _ := strings.Cut(d.Place, " in ")
	return line
}

// Collection is a run whose garbage was collected at other moments.
type Collection struct {
	When               string `json:"when"` // [GarbageNever] or [GarbageAtOnce]
	RunID              string `json:"run_id"`
	Status             string `json:"status"`
	PeakAllocatedBytes int64  `json:"peak_allocated_bytes"` // highest allocated
	PeakReservedBytes  int64  `json:"peak_reserved_bytes"`  // highest reserved
}

// Garbage is what only Python's cyclic garbage collector frees of the device's memory: tensors in reference cycles.
// When it runs depends on how many objects there are, so equal runs may differ.
type Garbage struct {
	CollectedBytes int64 `json:"collected"` // that collections freed
	LeftBytes      int64 `json:"left"`      // that were garbage at the end, and not yet freed
}

// Any is whether there was some.
func (g Garbage) Any() bool { return g.CollectedBytes > 0 || g.LeftBytes > 0 }

// DeviceUse is what the processes of a predicted run held of one device together.
type DeviceUse struct {
	// Device is its place in the machine, from 0: not torch's ordinal where CUDA_VISIBLE_DEVICES is set. Ranks that
	// were predicted in machines of their own have a row each.
	Device int `json:"device"`
	// Processes is how many held memory of it at once, at most.
	Processes     int   `json:"processes"`
	ReservedBytes int64 `json:"reserved_bytes"` // that they held at once, at most
	TakenBytes    int64 `json:"taken_bytes"`    // the same, plus all contexts but the first
}

// Placement is a run under one policy of addresses.
type Placement struct {
	Addresses          string `json:"addresses"`
	RunID              string `json:"run_id"`
	Status             string `json:"status"`
	PeakAllocatedBytes int64  `json:"peak_allocated_bytes"` // highest allocated
	PeakReservedBytes  int64  `json:"peak_reserved_bytes"`  // highest reserved
}

// Prediction (in ingest.json) is what a predicted run depends on, as the phantom GPU reported at its end, for all
// processes together.
type Prediction struct {
	// Complete is false if some process ended before it reported, so its reads are unknown.
	Complete bool `json:"told"`
	// UnknownReads are the places in the script that read values which nothing had computed, including times
	// between CUDA events. Such reads return zeros, or slowly falling numbers for single floating-point values.
	UnknownReads []Counted `json:"unknown_reads"`
	// Guesses are the operators whose output size was an upper bound, since it depends on such values.
	Guesses []Counted `json:"guesses"`
	// Assumptions are the places, mostly operators, that checked whether unknown values are finite or valid. The
	// answer was yes.
	Assumptions []Counted `json:"assumptions"`
	// AssumedAt are the places in the script that asked so; absent from reports of older ingests.
	AssumedAt []Counted `json:"assumed_at"`
	// CopiedReads are the places in the script that read the result of a collective, or a value derived from one,
	// where this rank's value stood for all ranks'. Absent if there are none.
	CopiedReads []Counted `json:"copied_reads,omitempty"`
	// Notes are what the phantom GPU estimated, refused or left out, a sentence each.
	Notes []string `json:"notes"`
	// Compiled is whether the script used torch.compile's code generator.
	Compiled bool `json:"compiled"`
	// Garbage sums up all processes; null if the agent did not look.
	Garbage *Garbage `json:"garbage,omitempty"`
	// Ended says after which step the script was ended, and why; null if it ended by itself.
	Ended *Ended `json:"ended,omitempty"`
	// Confidence is the judgement on these facts, which is made after ingest; null until then.
	Confidence *Confidence `json:"confidence"`
	// Band is the range of the peaks over policies of addresses; null where only one was tried.
	Band *PlacementBand `json:"band"`
}

// Ended is the end that a prediction put to a script, between two steps: what later ones take is not known.
type Ended struct {
	Step    int64  `json:"step"`    // how many steps had ended
	Why     string `json:"why"`     // [EndedAsked], [EndedEvaluated] or [EndedLong]
	Flat    int64  `json:"flat"`    // steps in which neither the highest allocated nor the highest reserved had risen
	Seconds int64  `json:"seconds"` // since the first update
}

// Why a prediction ended a script.
const (
	EndedAsked     = "asked"     // so many steps were asked for
	EndedEvaluated = "evaluated" // what is held had stopped rising, and an evaluation was seen
	EndedLong      = "long"      // it had stopped rising, and for Seconds no evaluation came
)

// SuspectedRead follows a place in the reason of a failed run if a value read there may be the cause.
const SuspectedRead = " had read a value that nobody computed, which may be why"

// Parts of [Prediction.Notes] that tell the notes apart: the phantom GPU, and the agent, write them.
const (
	NoteUnanswered = "cannot be answered without a device" // a function fails
	NoteNoOps      = "ran as no-ops"                       // kernels of a library that is not torch's
	NoteEstimated  = "was estimated without a device"      // a size that only a device tells
	NoteKernelRead = "a kernel read from the device what no kernel had computed"
	NoteCopyLimit  = "a read of more than the copy limit"
)

// OldNoteFinite is part of a note that older versions wrote; [Prediction.Assumptions] say it.
const OldNoteFinite = "were taken for finite"

// The levels of confidence in a predicted peak, the best first.
const (
	ExactExpected = "exact expected"
	Close         = "close"
	Indicative    = "indicative"
)

// Confidence is how certain the predicted peak of allocated memory is, with the reasons. It does not cover reserved
// memory, which also depends on where the driver puts segments.
type Confidence struct {
	Level   string   `json:"level"` // [ExactExpected], [Close] or [Indicative]
	Reasons []string `json:"reasons"`
	// Unchecked is what the device's profile decides and was never compared with such a device.
	Unchecked []string `json:"unchecked"`
	// KnownError states, as a sentence, how far off predictions with the same doubts were (docs/accuracy.md has the
	// table). Null unless the level is [Close], and if no recording has these doubts.
	KnownError *string `json:"known_error"`
}

// The kinds of doubt that make a prediction no better than [Close]. Recordings say by kind how far off predictions
// were.
const (
	DoubtReads   = "unknown reads"   // unknown values were read
	DoubtFinite  = "finite values"   // such values were taken to be finite
	DoubtSizes   = "sizes by values" // an upper bound was used for a size that depends on values
	DoubtCuDNN   = "cuDNN's choices" // cuDNN's engines were chosen without a device, or its workspace was estimated
	DoubtRanks   = "copied ranks"    // the other ranks were copies of the one that ran
	DoubtCompile = "torch.compile"
	// a device, a torch, a placement or a library without a recording; batches that are drawn again
	DoubtOther = "other"
)

// Doubts are the kinds of doubt, in the order in which tables have them.
var Doubts = []string{DoubtReads, DoubtFinite, DoubtSizes, DoubtCuDNN, DoubtRanks, DoubtCompile, DoubtOther}

// Counted is how often something happened.
type Counted struct {
	Name  string `json:"name"`  // of a read: file:line
	Count int64  `json:"count"` // times
}

// PlacementBand is the range of the peaks over that many address policies.
type PlacementBand struct {
	Policies  []string `json:"policies"`
	Allocated [2]int64 `json:"allocated_bytes"` // lowest, highest
	Reserved  [2]int64 `json:"reserved_bytes"`  // lowest, highest
}
