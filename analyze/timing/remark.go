package timing

import "github.com/dpsight/dpsight/schemas"

// A Remark is a caveat about times. Package report finds the words.
type Remark struct {
	Kind                   RemarkKind
	Steps                  []int64 // captured steps in order, for [RemarkCaptured]
	StepMS, InstrumentedMS float64 // median bare and median instrumented step, for [RemarkIdling]
}

// RemarkKind is the subject of a [Remark].
type RemarkKind int

// RemarkOnlyInstrumented and RemarkCaptured concern step times, the others module times. The kinds from
// RemarkNotIngested to the last say why a run has no module times.
const (
	RemarkOnlyInstrumented   RemarkKind = iota + 1 // times come from instrumented steps, because there are no bare ones
	RemarkCaptured                                 // a CUDA graph captured the steps in Steps, so they have no time
	RemarkNoInstrumented                           // there is no instrumented step after warm-up
	RemarkUnscaled                                 // there is no bare step to scale to
	RemarkIdling                                   // instrumented steps take so much longer that the GPU idles in them
	RemarkNotIngested                              // the run is not ingested
	RemarkPredicted                                // the run was predicted, and nothing was computed
	RemarkBareRun                                  // a bare run instruments no step
	RemarkModulesNotRecorded                       // the recording has no times of modules
)

// capturedRemarks returns the remark on steps without a time, if there are any.
func capturedRemarks(steps []int64) []Remark {
	if len(steps) == 0 {
		return nil
	}
	return []Remark{{Kind: RemarkCaptured, Steps: steps}}
}

// NoEnergy says why a run whose GPU was sampled has no energy. NoEnergy is empty for runs that have an energy or
// whose GPU was not sampled.
type NoEnergy string

const (
	EnergyNotRead    NoEnergy = "not read"    // the counter gave no reading
	EnergyTooShort   NoEnergy = "too short"   // a series of timed steps takes less than [LeastEnergySeconds]
	EnergyNotCovered NoEnergy = "not covered" // readings of the counter do not cover the timed steps
)

// LeastEnergySeconds is how long an unbroken series of timed steps must take for the run to have an energy, since the
// energy counter is read only about once a second.
const LeastEnergySeconds = 5

// noModuleTimes returns the reason why a run has no times by module, or 0 if it has them.
func noModuleTimes(in *schemas.Tables) RemarkKind {
	switch {
	case in.Report == nil:
		return RemarkNotIngested
	case in.Manifest.Source == schemas.Predicted:
		return RemarkPredicted
	case in.Manifest.Bare:
		return RemarkBareRun
	case len(in.ModuleTimes) == 0:
		return RemarkModulesNotRecorded
	}
	return 0
}

// HasModuleTimes reports whether a run has times by module.
func HasModuleTimes(in *schemas.Tables) bool { return noModuleTimes(in) == 0 }
