package memory

// A Remark is a caution about the figures of a breakdown. Package report finds the words.
type Remark struct {
	Kind     RemarkKind
	Device   string // "cuda:0"; empty if the remark concerns the whole run
	Text     string
	Err      error
	Failed   *FailedRequest
	Untagged *Untagged
	// PhaseOnlyBytes, AllocatedBytes and Instead belong to [RemarkUntagged]: the bytes known only by phase, all
	// allocated bytes, and the nearest moment in a step with tags. Instead is nil if no step has tags.
	PhaseOnlyBytes, AllocatedBytes int64
	Instead                        *At
	Conservation                   *Conservation
}

// RemarkKind is the subject of a [Remark]. The kind decides which of the other fields are set.
type RemarkKind string

const (
	RemarkGone       RemarkKind = "gone"        // Text: a table that somebody removed
	RemarkOfIngest   RemarkKind = "ingest"      // Text: a warning of ingest
	RemarkDied       RemarkKind = "died"        // Failed: the run died of this request, and its peak came earlier
	RemarkNoMoment   RemarkKind = "no moment"   // Err: a device does not have the moment, and another device does
	RemarkFailedHere RemarkKind = "failed here" // Device, Failed: the moment is the failed request's
	RemarkLossy      RemarkKind = "lossy"       // Device, Conservation: events are missing or disagree
	RemarkSumDiffers RemarkKind = "sum differs" // Device, Conservation: the categories' sum is not replay's figure
	RemarkUntagged   RemarkKind = "untagged"    // Untagged: the moment is in a step without tags
)
