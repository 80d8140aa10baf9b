package analyze

import (
	"errors"
	"fmt"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// Summary is what comparisons and reports need of one run: a megabyte at most, nearly all of it the timeline, so that a
// report over many runs holds the tables of one at a time.
type Summary struct {
	Identity
	Started   time.Time
	Suite     string // name; empty = none
	Trial     bool   // a run of a search of predict --vary
	SuiteID   string
	Key       string // of the experiment's content in its suite; empty = not of a suite
	GPU       string // name of the first; empty = unknown
	Breakdown BreakdownRun
	Phases    PhasesRun
	Timeline  *Timeline // nil for a run without allocator events
	Cost      CostRun
	// Failed are requests that failed for want of memory, FailedMore how many more there were.
	Failed     []FailedRequest
	FailedMore int

	// PeakBytes and PeakReservedBytes are the highest of the busiest device over the whole run: replayed, or torch's
	// counter for a bare run and where that is above what the recorded steps show. PeakDeviceBytes is NVML's.
	PeakBytes         *int64
	PeakReservedBytes *int64
	PeakDeviceBytes   *int64
	Allocations       *int64 // on the busiest device, while events were recorded; null where none were
	// KeptGradientBytes is what gradients hold when the last step's first forward ends: 0 where zero_grad frees them.
	// Null where no step says.
	KeptGradientBytes *int64
	// Kept is what keeping them costs; nil where they are freed, or where the recording cannot say.
	Kept *KeptGradients

	StepMS          *Interval // null for predicted runs
	SamplesPerS     *float64
	TokensPerS      *float64
	JoulesPerStep   *float64
	JoulesPerSample *float64
	// NoEnergy says why a run whose GPU was sampled has no energy; else it is empty.
	NoEnergy string
	Warnings []string

	phaseTimes  map[string]phaseTime
	facts       []Fact
	doubts      []string // kinds of what speaks against a predicted peak; see [doubts]
	poisson     bool     // batches are drawn by Poisson sampling
	script      string   // that the command runs, empty where none can be seen
	arguments   string   // see [tellCommands]
	throttled   throttle
	devicesUsed int
	// reservedAlone is the peak reserved of the fullest process where PeakReservedBytes is that of several, else nil.
	reservedAlone *int64
}

// Summarize reduces one run. It fails on nothing: what a run lacks is null, and why stands in Warnings.
func Summarize(in Input) Summary { return in.summarize(in.newLedgers()) }

// SummarizeWithLadder is [Summarize] and [Ladder] of one run, whose blocks and owners are put together once for both.
func SummarizeWithLadder(in Input) (Summary, LadderRun, error) {
	ledgers := in.newLedgers()
	s := in.summarize(ledgers)
	ladder, err := in.ladder(ledgers)
	return s, ladder, err
}

func (in *Input) summarize(ledgers *ledgers) Summary {
	s := Summary{Identity: in.identity(), Started: in.Manifest.Start, Warnings: []string{}, facts: factsOf(in.Manifest),
		doubts: doubts(in.Manifest, in.Report), poisson: poisson(in.Manifest), script: scriptOf(in.Manifest.Command),
		Cost: Cost(*in)}
	if in.Manifest.Suite != nil {
		s.Suite, s.SuiteID, s.Key, s.Trial = in.Manifest.Suite.Name, in.Manifest.Suite.ID, in.Manifest.Suite.Key,
			in.Manifest.Suite.Search
	}
	if len(in.Manifest.GPUs) > 0 {
		s.GPU = in.Manifest.GPUs[0].Name
	}
	var err error
	s.Breakdown, err = in.breakdown(At{}, ledgers)
	var none *NoEventsError
	switch {
	case in.Report == nil:
		s.Warnings = append(s.Warnings, NotIngested)
	case errors.As(err, &none):
		s.Warnings = append(s.Warnings, notBrokenDown+none.Reason)
	case err != nil:
		s.Warnings = append(s.Warnings, err.Error())
	}
	s.Failed, s.FailedMore = in.failed(ledgers)
	s.peaks(in)
	if d := s.Main(); d != nil {
		p := in.placeOf(d)
		s.Allocations = in.allocationsOn(p)
		s.Timeline = in.timeline(p, ledgers.of(p), d.At, d.AllocatedBytes)
	}
	s.gradients(in, ledgers)
	t := in.timed()
	s.Phases = in.phasesRun(&t)
	s.phaseTimes = t.phases(in)
	s.StepMS = t.step()
	s.SamplesPerS = t.rate(func(s *stepTime) int64 { return s.samples })
	s.TokensPerS = t.rate(func(s *stepTime) int64 { return s.tokens })
	s.JoulesPerStep, s.JoulesPerSample, s.NoEnergy = in.energy(&t)
	s.throttled = in.throttled(&t)
	s.Warnings = append(s.Warnings, t.warnings...)
	if s.Status != schemas.StatusOK && (s.PeakBytes != nil || s.StepMS != nil) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("the run ended early (%s): its peak and times are of what it did "+
			"until then", s.Status))
	}
	return s
}

func (in *Input) allocationsOn(p place) *int64 {
	var n int64
	for i := range in.Allocations {
		if a := &in.Allocations[i]; a.Rank == p.rank && a.Device == p.device {
			n++
		}
	}
	return &n
}

// peaks takes the device with the highest peak. A sum over devices would be nobody's limit.
func (s *Summary) peaks(in *Input) {
	if in.Report == nil {
		return
	}
	var fullest *schemas.DeviceVerdict
	for i := range in.Report.Devices {
		v := &in.Report.Devices[i]
		peak := higher(v.Events, &v.PeakAllocatedBytes, v.TorchPeakAllocatedBytes)
		if peak == nil {
			continue
		}
		s.devicesUsed++
		if s.PeakBytes == nil || *peak > *s.PeakBytes {
			s.PeakBytes, fullest = peak, v
			s.PeakReservedBytes = higher(v.Events, &v.PeakReservedBytes, v.TorchPeakReservedBytes)
		}
	}
	// Where there is a breakdown its sum is the peak, unless torch counted more; a difference to replay's is already a
	// warning of its device.
	if d := s.Main(); d != nil {
		if fullest != nil && fullest.TorchPeakAllocatedBytes != nil &&
			*fullest.TorchPeakAllocatedBytes > d.AllocatedBytes {
			s.latePeak(fullest, d)
		} else {
			s.PeakBytes = &d.AllocatedBytes
		}
	}
	devices := in.gpusOf(s.devicesUsed)
	if f := in.Manifest.Phantom; f != nil && len(f.Devices) > 0 {
		devices = len(f.Devices)
	}
	if devices > 1 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("memory is that of the fullest of %d devices", devices))
	}
	s.peaksOfShared(in)
	s.PeakDeviceBytes = in.peakDevice()
}

// higher is the replayed highest, or torch's counter where nothing was recorded or the highest came when no event was
// recorded any more.
func higher(events int64, replayed, torch *int64) *int64 {
	if events == 0 || torch != nil && *torch > *replayed {
		return torch
	}
	return replayed
}

// latePeak takes torch's own counter of the fullest device, which is above all that d, the highest breakdown, explains.
func (s *Summary) latePeak(fullest *schemas.DeviceVerdict, d *DeviceBreakdown) {
	s.PeakBytes = fullest.TorchPeakAllocatedBytes
	why := "came outside the recorded steps and"
	if fullest.Verdict == schemas.Lossy { // whether it was in them cannot be told
		why = "is above all recorded events, of which some are missing, and"
	}
	s.Warnings = append(s.Warnings, fmt.Sprintf("the peak of %s %s is torch's counter: it is not broken down; the "+
		"highest recorded moment is %s",
		mib(*s.PeakBytes), why, mib(d.AllocatedBytes)))
}

// BrokenDown reports whether the peak is one that the breakdown explains.
func (s *Summary) BrokenDown() bool {
	d := s.Main()
	return d != nil && s.PeakBytes != nil && d.AllocatedBytes == *s.PeakBytes
}

// notBrokenDown begins what is said of a run without a breakdown.
const notBrokenDown = "not broken down: "

// Main is the breakdown of the device with the highest peak, nil without any.
func (s *Summary) Main() *DeviceBreakdown {
	var main *DeviceBreakdown
	for i := range s.Breakdown.Devices {
		if d := &s.Breakdown.Devices[i]; main == nil || d.AllocatedBytes > main.AllocatedBytes {
			main = d
		}
	}
	return main
}

// gradients finds out whether .grad outlives its step. After the first forward every zero_grad of the loop, wherever it
// stands, has been called. It looks at the last step that is instrumented and follows an instrumented one, since what a
// bare step allocates has no tags.
func (s *Summary) gradients(in *Input, ledgers *ledgers) {
	main := s.Main()
	if main == nil {
		return
	}
	instrumented := map[int64]bool{}
	for i := range in.Steps {
		instrumented[in.Steps[i].Step] = in.Steps[i].Instrumented
	}
	var last *schemas.Phase
	var p place
	for i := range in.Phases {
		f := &in.Phases[i]
		at := place{f.Rank, f.Device}
		if at.String() == main.Device && f.Rank == main.Rank && f.Phase == schemas.PhaseForward && f.Microbatch == 0 &&
			instrumented[f.Step] && instrumented[f.Step-1] && (last == nil || f.Step > last.Step) {
			last, p = f, at
		}
	}
	if last == nil {
		return
	}
	kept := ledgers.of(p).bytesAt(schemas.Gradients, last.EndSeq)
	s.KeptGradientBytes = &kept
	if kept > 0 && len(in.Gradients) > 0 && s.BrokenDown() {
		s.Kept = in.keptGradients(p, ledgers.of(p), main.At.Event)
	}
}

// placeOf is the place of a device's breakdown.
func (in *Input) placeOf(d *DeviceBreakdown) place {
	for _, p := range in.places() {
		if p.rank == d.Rank && p.String() == d.Device {
			return p
		}
	}
	return place{}
}

// device is the name of the main device, empty without any.
func (s *Summary) device() (string, int32) {
	if d := s.Main(); d != nil {
		return d.Device, d.Rank
	}
	if len(s.Phases.Phases) > 0 {
		return s.Phases.Phases[0].Device, s.Phases.Phases[0].Rank
	}
	return "", 0
}
