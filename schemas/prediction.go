package schemas

import "strings"

// Phantom (in run.json) describes the phantom GPU on which a predicted run ran, with the facts that decide how reliable
// the figures are.
type Phantom struct {
	// Checked is true if predictions for this profile were compared with recordings from a real device of that kind.
	Checked bool `json:"checked"`
	// Assumed are the properties of the profile that no source gives, sorted.
	Assumed []string `json:"assumed"`
	// MemoryBytes is how many bytes of the device one process can take. MemoryGiven is true if the user set
	// MemoryBytes; otherwise it comes from the profile.
	MemoryBytes int64 `json:"memory_bytes"` // of the device
	MemoryGiven bool  `json:"memory_given"`
	// Addresses is the policy by which the phantom GPU chose the addresses of segments. DefaultAddresses is the policy
	// that the profile names.
	Addresses        string `json:"addresses"`
	DefaultAddresses string `json:"default_addresses"`
	// ComputeCapability is the device's compute capability in CUDA's notation: "9.0".
	ComputeCapability string `json:"compute_capability"`
	// CheckedTorch is the version of torch whose predictions for this profile were compared; empty if no prediction
	// for this profile was compared.
	CheckedTorch string `json:"checked_torch,omitempty"`
	// Placements are earlier runs of the same experiment with other address policies. The range of the predicted peaks
	// covers this run and the runs in Placements.
	Placements []Placement `json:"placements,omitempty"`
	// Devices lists the devices on which processes held memory; absent from older runs.
	Devices []DeviceUse `json:"devices,omitempty"`
	// Garbage says when Python's garbage collector ran: [GarbageNever] or [GarbageAtOnce], or empty if Python chose the
	// moments.
	Garbage string `json:"garbage,omitempty"`
	// Decisions are the unknown reads that the phantom GPU answered differently than usual, because the script had
	// failed after the usual answer.
	Decisions []Decision `json:"decisions,omitempty"`
	// Collections are runs of the same experiment whose garbage collector ran at other moments. The range of the
	// predicted peak covers this run and the runs in Collections.
	Collections []Collection `json:"collections,omitempty"`
}

// The values of [Phantom.Garbage] for moments that Python does not choose.
const (
	GarbageNever  = "never"
	GarbageAtOnce = "at once"
)

// Decision is an unknown read that the phantom GPU answered differently than usual: true in place of false, or one in
// place of zero.
type Decision struct {
	// Place is file:line of the script. If the read lies in a function of torch, " in " and that function's line
	// follow.
	Place string `json:"place"`
	Error string `json:"error"`  // error with which the script failed after the usual answer
	RunID string `json:"run_id"` // id of the run that failed
}

// Line returns file:line of the script, without the line of torch's function.
func (d *Decision) Line() string {
	line, _, _ := strings.Cut(d.Place, " in ")
	return line
}

// Collection is a run of the same experiment in which Python's garbage was collected at other moments.
type Collection struct {
	When               string `json:"when"` // [GarbageNever] or [GarbageAtOnce]
	RunID              string `json:"run_id"`
	Status             string `json:"status"`
	PeakAllocatedBytes int64  `json:"peak_allocated_bytes"` // highest allocated
	PeakReservedBytes  int64  `json:"peak_reserved_bytes"`  // highest reserved
}

// Garbage is the device memory that only Python's cyclic garbage collector frees: tensors in reference cycles. The
// moments at which the collector runs depend on the number of objects, so equal runs may differ.
type Garbage struct {
	CollectedBytes int64 `json:"collected"` // bytes that collections freed
	LeftBytes      int64 `json:"left"`      // bytes that were garbage at the end, and not yet freed
}

// Any reports whether there were tensors in reference cycles, collected or left.
func (g Garbage) Any() bool { return g.CollectedBytes > 0 || g.LeftBytes > 0 }

// DeviceUse says how much memory of one device the processes of a predicted run held together.
type DeviceUse struct {
	// Device is the device's number in the machine, from 0. Device is not torch's ordinal if CUDA_VISIBLE_DEVICES is
	// set. If ranks were predicted in separate machines, the same number occurs in several rows.
	Device int `json:"device"`
	// Processes is the largest number of processes that held memory of the device at once.
	Processes     int   `json:"processes"`
	ReservedBytes int64 `json:"reserved_bytes"` // most bytes that the processes held at once
	TakenBytes    int64 `json:"taken_bytes"`    // most bytes with all contexts except the first
}

// Placement is a run of the same experiment with another address policy.
type Placement struct {
	Addresses          string `json:"addresses"`
	RunID              string `json:"run_id"`
	Status             string `json:"status"`
	PeakAllocatedBytes int64  `json:"peak_allocated_bytes"` // highest allocated
	PeakReservedBytes  int64  `json:"peak_reserved_bytes"`  // highest reserved
}

// Prediction (in ingest.json) lists the unknown values and estimates on which a predicted run depends, as the phantom
// GPU reported them at the run's end, for all processes together.
type Prediction struct {
	// Complete is false if some process ended before it reported, so its reads are unknown.
	Complete bool `json:"told"`
	// UnknownReads are the places in the script that read values which nothing had computed, including times between
	// CUDA events. An unknown read returns zeros, or slowly falling numbers for single floating-point values.
	UnknownReads []Counted `json:"unknown_reads"`
	// Guesses are the operators whose output got the largest possible size, since its size depends on unknown values.
	Guesses []Counted `json:"guesses"`
	// Assumptions are the operators, or other places, that checked whether unknown values are finite or valid. The
	// phantom GPU answered yes.
	Assumptions []Counted `json:"assumptions"`
	// AssumedAt are the places in the script that led to Assumptions; absent from reports of older versions.
	AssumedAt []Counted `json:"assumed_at"`
	// CopiedReads are the places in the script that read the result of a collective, or a value derived from one,
	// where this rank's value stood for the values of all ranks. CopiedReads is absent if there are none.
	CopiedReads []Counted `json:"copied_reads,omitempty"`
	// Notes say what the phantom GPU estimated, refused or left out, in one sentence each.
	Notes []string `json:"notes"`
	// Compiled is true if the script used torch.compile's code generator.
	Compiled bool `json:"compiled"`
	// Garbage sums up the garbage of all processes; null if the agent did not look for garbage.
	Garbage *Garbage `json:"garbage,omitempty"`
	// Ended says after which step the script was ended, and why; null if the script ended by itself.
	Ended *Ended `json:"ended,omitempty"`
	// Confidence is the confidence in the predicted peak, which dpsight determines after ingest; null until then.
	Confidence *Confidence `json:"confidence"`
	// Band is the range of the peaks over policies of addresses; null if only one policy was tried.
	Band *PlacementBand `json:"band"`
}

// Ended says that the prediction stopped the script between two steps, and why. What later steps take is not known.
type Ended struct {
	Step int64  `json:"step"` // number of steps that had ended
	Why  string `json:"why"`  // [EndedAsked], [EndedEvaluated] or [EndedLong]
	// Flat is the number of steps in which neither the highest allocated nor the highest reserved had risen.
	Flat    int64 `json:"flat"`
	Seconds int64 `json:"seconds"` // seconds since the first update
}

// The values of [Ended.Why].
const (
	EndedAsked     = "asked"     // the user asked for this number of steps
	EndedEvaluated = "evaluated" // memory had stopped rising, and an evaluation was seen
	EndedLong      = "long"      // memory had stopped rising, and no evaluation came for Seconds
)

// SuspectedRead is the text after a place, in the reason of a failed run, that says that a value read at this place may
// be the cause.
const SuspectedRead = " had read a value that the phantom GPU does not compute: this may be the cause"

// SuspectsRead reports whether the reason of a failed run has [SuspectedRead], or the words of older versions, in
// whatever case.
func SuspectsRead(reason string) bool {
	return strings.Contains(strings.ToLower(reason), " had read a value that ")
}

// Phrases by which readers recognise the kinds of [Prediction.Notes]. The phantom GPU and the agent write the notes.
const (
	NoteUnanswered = "cannot be answered without a device" // a function that needs a device fails
	NoteNoOps      = "ran as no-ops"                       // kernels of a library that is not torch's
	NoteEstimated  = "was estimated without a device"      // a size that only a device reports
	NoteKernelRead = "a kernel read from the device"
	NoteCopyLimit  = "a read of more than the copy limit"
)

// OldNoteFinite is part of a note that older versions wrote. Now [Prediction.Assumptions] has what the note said.
const OldNoteFinite = "were taken for finite"

// The levels of confidence in a predicted peak, the best first.
const (
	ExactExpected = "exact expected"
	Close         = "close"
	Indicative    = "indicative"
)

// Confidence says how certain the predicted peak allocated is, with the reasons. The level does not cover reserved
// memory, which also depends on where the driver places segments.
type Confidence struct {
	Level   string   `json:"level"` // [ExactExpected], [Close] or [Indicative]
	Reasons []string `json:"reasons"`
	// Unchecked lists what the device's profile determines and nobody has compared with a real device of that kind.
	Unchecked []string `json:"unchecked"`
	// KnownError states, as a sentence, how far off predictions with the same doubts were (docs/accuracy.md has the
	// table). KnownError is null unless the level is [Close] and some recording has the same doubts.
	KnownError *string `json:"known_error"`
}

// The kinds of doubt that make a prediction no better than [Close]. For most kinds, docs/accuracy.md shows how far off
// predictions with this doubt were.
const (
	DoubtReads   = "unknown reads"   // unknown values were read
	DoubtFinite  = "finite values"   // unknown values were assumed to be finite
	DoubtSizes   = "sizes by values" // an upper bound was used for a size that depends on values
	DoubtCuDNN   = "cuDNN's choices" // cuDNN's engines were chosen without a device, or its workspace was estimated
	DoubtRanks   = "copied ranks"    // the other ranks were copies of the one that ran
	DoubtCompile = "torch.compile"
	// no recording covers the device, the version of torch, the placement or a library, or batches are drawn again
	DoubtOther = "other"
)

// Doubts are the kinds of doubt, in the order in which tables have them.
var Doubts = []string{DoubtReads, DoubtFinite, DoubtSizes, DoubtCuDNN, DoubtRanks, DoubtCompile, DoubtOther}

// Counted is a name, such as the place of a read, and how often it occurred.
type Counted struct {
	Name  string `json:"name"`  // the name; for a read, file:line
	Count int64  `json:"count"` // how often it occurred
}

// PlacementBand has the lowest and the highest predicted peak of runs that differ only in the addresses of segments.
// Policies names the rules by which the phantom GPU chose these addresses.
type PlacementBand struct {
	Policies  []string `json:"policies"`
	Allocated [2]int64 `json:"allocated_bytes"` // lowest, highest
	Reserved  [2]int64 `json:"reserved_bytes"`  // lowest, highest
}
