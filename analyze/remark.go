package analyze

import (
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// A Remark is a caution about the figures of a run. Package report finds the words.
type Remark struct {
	Kind              RemarkKind
	Rank              *int32 // rank that the remark concerns; nil if the run has only one
	N                 int    // number of steps, devices or processes that the remark is on
	Bytes, OtherBytes int64  // the run's value, and the value that it is compared with
	MS                *float64
	StepMS            *timing.Interval
	Share             float64
	Name              string // name of another run, or of a file
	Status            string
	Hook              *schemas.FailedHook
	Times             *timing.Remark
	Err               error
}

// RemarkKind is the subject of a [Remark]. The kind decides which of the other fields are set.
type RemarkKind string

// Remarks on a run.
const (
	RemarkNotIngested RemarkKind = "not ingested" // the run has no tables
	RemarkNoBlocks    RemarkKind = "no blocks"    // Err is the reason why nothing is broken down
	RemarkNoPeak      RemarkKind = "no peak"      // Err is the reason why there is no moment to break down
	RemarkOfTimes     RemarkKind = "times"        // Times: a remark on step times
	RemarkEndedEarly  RemarkKind = "ended early"  // Status: how the run ended early
	RemarkHookFailed  RemarkKind = "hook failed"  // Hook: a hook of the agent that failed; Rank
	RemarkTableGone   RemarkKind = "table gone"   // Name: a missing file, without which the rest cannot be checked
	RemarkRecompute   RemarkKind = "recompute"    // Rank; MS for each step, nil if modules were not timed
	RemarkOneOfMany   RemarkKind = "repeats"      // N repeats that are shown; StepMS of all in the store
	RemarkOverRepeats RemarkKind = "over repeats" // StepMS replaces MS, which is the value of run Name
)

// Remarks on the peak. If the peak is above OtherBytes, the highest recorded moment, it has no breakdown.
const (
	RemarkLatePeak   RemarkKind = "late peak"   // Bytes, outside the recorded steps
	RemarkMissedPeak RemarkKind = "missed peak" // Bytes, where events are missing
	RemarkBounded    RemarkKind = "bounded"     // at least Bytes, at most OtherBytes
	RemarkOfFullest  RemarkKind = "fullest"     // values come from the fullest of N devices
	RemarkInTurn     RemarkKind = "in turn"     // N processes had a device one after the other
	// RemarkTogether: N processes had memory on one device at once, and the peak reserved is the highest sum over these
	// processes.
	RemarkTogether    RemarkKind = "together"
	RemarkSumReserved RemarkKind = "sum reserved" // N processes had a device at once; reserved is a sum
)

// Remarks on what recording cost.
const (
	RemarkBatchesVary   RemarkKind = "batches vary"   // Rank: batches differ in size
	RemarkUntimedSteps  RemarkKind = "untimed steps"  // Rank, N: nothing took time on the GPU in them
	RemarkFasterSteps   RemarkKind = "faster steps"   // the faster steps are those that are instrumented
	RemarkDrains        RemarkKind = "drains"         // Share of the recorded time, above [MostDraining]
	RemarkAllocatedDiff RemarkKind = "allocated diff" // Bytes at the peak, OtherBytes in the bare run Name
	RemarkReservedDiff  RemarkKind = "reserved diff"  // Bytes reserved here, OtherBytes in the bare run Name
	RemarkCachedDiff    RemarkKind = "cached diff"    // like "reserved diff", if both runs allocated as much
)

// timeRemarks returns the remarks on the times of a run.
func timeRemarks(of []timing.Remark) (out []Remark) {
	for i := range of {
		out = append(out, Remark{Kind: RemarkOfTimes, Times: &of[i]})
	}
	return out
}

// hookRemarks returns the remarks on hooks of the agent that failed.
func hookRemarks(of *schemas.IngestReport) (out []Remark) {
	if of == nil {
		return nil
	}
	for i := range of.Ranks {
		r := &of.Ranks[i]
		for k := range r.FailedHooks {
			out = append(out, Remark{Kind: RemarkHookFailed, Rank: oneOf(len(of.Ranks), r.Rank), Hook: &r.FailedHooks[k]})
		}
	}
	return out
}

// goneRemarks returns the remarks on tables that were taken away.
func goneRemarks(of *schemas.IngestReport) (out []Remark) {
	if of == nil {
		return nil
	}
	for _, name := range of.Gone {
		out = append(out, Remark{Kind: RemarkTableGone, Name: name})
	}
	return out
}

// boundedRemarks states the lower and upper bound of a peak.
func boundedRemarks(id *identity.Identity) []Remark {
	if !id.Bounded() {
		return nil
	}
	return []Remark{{Kind: RemarkBounded, Bytes: *id.PeakLowBytes, OtherBytes: *id.PeakHighBytes}}
}

// oneOf returns the rank that a remark is about, or nil if the run has only one rank.
func oneOf(ranks int, rank int32) *int32 {
	if ranks < 2 {
		return nil
	}
	return &rank
}
