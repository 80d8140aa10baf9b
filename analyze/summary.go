package analyze

import (
	"errors"
	"time"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/analyze/growth"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// SummaryTables lists the tables that a summary needs. Detail is left out, because loading it would take most of a
// report's time.
const SummaryTables = schemas.WantMemory | schemas.WantTimes | schemas.WantSamples | schemas.WantEvents |
	schemas.WantGradients

// Summary is what comparisons and reports need of one run. A Summary takes about a megabyte at most, nearly all for the
// timeline. So a report about many runs needs only one run's tables in memory at a time.
type Summary struct {
	identity.Identity
	Started   time.Time
	Suite     string // name of the suite; empty = none
	Trial     bool   // the run is a trial of predict --vary
	SuiteID   string
	Key       string // hash of the experiment's content in its suite; empty = no suite
	GPU       string // name of the first GPU; empty = unknown
	Breakdown memory.BreakdownRun
	Phases    PhasesRun
	Timeline  *timeline.Timeline // nil for a run without allocator events
	Growth    *growth.Growth     // growth on the busiest device; nil if there is none
	Cost      CostRun
	// Failed lists requests that failed because memory was short. FailedMore is how many more failed requests there
	// were.
	Failed     []memory.FailedRequest
	FailedMore int
	// FailedRequests is how many failed requests torch did not recover from; nil if failed requests were not recorded.
	FailedRequests *int

	// PeakBytes and PeakReservedBytes are the highest values of the fullest device over the whole run. PeakBytes and
	// PeakReservedBytes come from the replay. If the run is bare, or if torch's counter is above the replayed value,
	// they come from torch's counter. PeakDeviceBytes is the highest in use on the device by NVML.
	PeakBytes         *int64
	PeakReservedBytes *int64
	PeakDeviceBytes   *int64
	Allocations       *int64 // on the busiest device while events were recorded; nil if no events were
	// KeptGradientBytes are the bytes of gradients when the first forward of the last instrumented step ends.
	// KeptGradientBytes is 0 if zero_grad frees gradients, and nil if no step shows it.
	KeptGradientBytes *int64
	// Kept says how many bytes gradients kept between steps cost. Kept is nil if the loop frees gradients, or if the
	// recording cannot show it.
	Kept *memory.KeptGradients

	StepMS          *timing.Interval // null for predicted runs
	SamplesPerS     *float64
	TokensPerS      *float64
	JoulesPerStep   *float64
	JoulesPerSample *float64
	// NoEnergy is the reason why a run whose GPU was sampled has no energy, else "".
	NoEnergy timing.NoEnergy
	// EnergyLent is true if the energy comes from a bare run of the same experiment.
	EnergyLent bool
	Remarks    []Remark

	PhaseTimes  map[string]timing.PhaseTime
	RunFacts    []identity.Fact
	Doubts      []string // kinds of doubt about a predicted peak; see [confidence.Doubts]
	Poisson     bool     // batches are drawn by Poisson sampling
	Script      string   // script that the command runs; empty if it shows none
	Arguments   string   // arguments of the command: see [compare.tellCommands]
	Made        string   // the code and the versions that made the run: see [compare.tellOrigins]
	Throttled   timing.Throttle
	devicesUsed int
	// ReservedAlone is the peak reserved of the fullest process if PeakReservedBytes sums several processes, else
	// nil.
	ReservedAlone *int64
	// reservedAtPeak is what the fullest device had reserved at its peak; nil if not known.
	reservedAtPeak *int64
}

// PeakAtMost returns the upper bound of the run's peak: PeakBytes, unless the peak is bounded. PeakAtMost returns nil
// if no peak is known.
func (s *Summary) PeakAtMost() *int64 {
	if s.PeakHighBytes != nil && s.PeakBytes != nil && *s.PeakHighBytes > *s.PeakBytes {
		return s.PeakHighBytes
	}
	return s.PeakBytes
}

// Summarize reduces one run to its summary. Summarize returns no error: a field that the run lacks is nil, and Remarks
// say why.
func Summarize(in schemas.Tables) Summary { return SummarizeWith(&in, memory.NewLedgers(&in)) }

// SummarizeWithLadder returns the results of [Summarize] and [ladder.Of] for one run, but makes its ledgers only once.
func SummarizeWithLadder(in schemas.Tables) (Summary, ladder.Run, error) {
	ledgers := memory.NewLedgers(&in)
	s := SummarizeWith(&in, ledgers)
	ladder, err := ladder.With(&in, ledgers)
	return s, ladder, err
}

func SummarizeWith(in *schemas.Tables, ledgers *memory.Ledgers) Summary {
	s := Summary{Identity: identity.Of(in), Started: in.Manifest.Start,
		RunFacts: identity.FactsOf(in.Manifest),
		Doubts:   confidence.Doubts(in.Manifest, in.Report), Poisson: confidence.Poisson(in.Manifest),
		Script: identity.ScriptOf(in.Manifest.Command),
		Cost:   Cost(*in)}
	if in.Manifest.Suite != nil {
		s.Suite, s.SuiteID, s.Key, s.Trial = in.Manifest.Suite.Name, in.Manifest.Suite.ID, in.Manifest.Suite.Key,
			in.Manifest.Suite.Search
	}
	if len(in.Manifest.GPUs) > 0 {
		s.GPU = in.Manifest.GPUs[0].Name
	}
	var err error
	s.Breakdown, err = memory.BreakdownWith(in, memory.At{}, ledgers)
	var none *memory.NoEventsError
	switch {
	case in.Report == nil:
		s.Remarks = append(s.Remarks, Remark{Kind: RemarkNotIngested})
	case errors.As(err, &none):
		s.Remarks = append(s.Remarks, Remark{Kind: RemarkNoBlocks, Err: none.Reason})
	case err != nil:
		s.Remarks = append(s.Remarks, Remark{Kind: RemarkNoPeak, Err: err})
	}
	s.Failed, s.FailedMore = memory.Failed(in, ledgers)
	s.FailedRequests = memory.FailedCount(in)
	s.peaks(in)
	if d := s.Main(); d != nil {
		p := memory.PlaceOf(in, d)
		s.Allocations = allocationsOn(in, p)
		s.Timeline = timeline.TimelineOf(in, p, ledgers.Of(p), d.At, d.AllocatedBytes)
		s.Growth = growth.Of(in, p, ledgers.Of(p), d.At, d.AllocatedBytes)
	}
	s.gradients(in, ledgers)
	t := timing.Of(in)
	s.Phases = phasesRun(in, &t)
	s.PhaseTimes = t.Phases(in)
	s.StepMS = t.Step()
	s.SamplesPerS = t.Rate(func(s *timing.StepTime) int64 { return s.Samples })
	s.TokensPerS = t.Rate(func(s *timing.StepTime) int64 { return s.Tokens })
	s.JoulesPerStep, s.JoulesPerSample, s.NoEnergy = timing.Energy(in, &t)
	s.Throttled = timing.Throttled(in, &t)
	s.Remarks = append(s.Remarks, timeRemarks(t.Remarks)...)
	s.Remarks = append(s.Remarks, hookRemarks(in.Report)...)
	s.Remarks = append(s.Remarks, goneRemarks(in.Report)...)
	if s.Status != schemas.StatusOK && (s.PeakBytes != nil || s.StepMS != nil) {
		s.Remarks = append(s.Remarks, Remark{Kind: RemarkEndedEarly, Status: s.Status})
	}
	return s
}

func allocationsOn(in *schemas.Tables, p identity.Place) *int64 {
	var n int64
	for i := range in.Allocations {
		if a := &in.Allocations[i]; a.Rank == p.Rank && a.Device == p.Device {
			n++
		}
	}
	return &n
}

// peaks sets the run's peaks to those of the device with the highest peak. A sum over devices would be useless, since
// each device has its own limit.
func (s *Summary) peaks(in *schemas.Tables) {
	if in.Report == nil {
		return
	}
	var fullest *schemas.DeviceVerdict
	for i := range in.Report.Devices {
		v := &in.Report.Devices[i]
		peak := identity.Higher(v.Events, &v.PeakAllocatedBytes, v.TorchPeakAllocatedBytes)
		if peak == nil {
			continue
		}
		s.devicesUsed++
		if s.PeakBytes == nil || *peak > *s.PeakBytes {
			s.PeakBytes, fullest = peak, v
			s.PeakReservedBytes = identity.Higher(v.Events, &v.PeakReservedBytes, v.TorchPeakReservedBytes)
		}
	}
	// The peak is the sum of the breakdown, unless torch's counter is higher. A difference between this sum and the
	// replay is already a warning on the device.
	if d := s.Main(); d != nil {
		if fullest != nil && fullest.TorchPeakAllocatedBytes != nil &&
			*fullest.TorchPeakAllocatedBytes > d.AllocatedBytes {
			s.latePeak(fullest, d)
		} else {
			s.PeakBytes = &d.AllocatedBytes
		}
	}
	if fullest != nil && fullest.Events > 0 && *s.PeakBytes == fullest.PeakAllocatedBytes {
		s.reservedAtPeak = memory.ReservedAt(in, identity.Place{Rank: fullest.Rank, Device: fullest.Device},
			memory.PeakEvent(fullest))
	}
	s.Remarks = append(s.Remarks, boundedRemarks(&s.Identity)...)
	devices := gpusOf(in, s.devicesUsed)
	if f := in.Manifest.Phantom; f != nil && len(f.Devices) > 0 {
		devices = len(f.Devices)
	}
	if devices > 1 {
		s.Remarks = append(s.Remarks, Remark{Kind: RemarkOfFullest, N: devices})
	}
	s.peaksOfShared(in)
	s.PeakDeviceBytes = timing.PeakDevice(in)
}

// latePeak sets the peak to torch's own counter on the fullest device. Callers use it if that counter is above the
// total of d, the highest breakdown.
func (s *Summary) latePeak(fullest *schemas.DeviceVerdict, d *memory.DeviceBreakdown) {
	s.PeakBytes = fullest.TorchPeakAllocatedBytes
	kind := RemarkLatePeak
	if fullest.Verdict == schemas.Lossy { // it is unknown whether the peak was in the recorded steps
		kind = RemarkMissedPeak
	}
	s.Remarks = append(s.Remarks, Remark{Kind: kind, Bytes: *s.PeakBytes, OtherBytes: d.AllocatedBytes})
}

// BrokenDown reports whether the breakdown explains the peak. BrokenDown returns false if the peak came outside the
// recorded steps.
func (s *Summary) BrokenDown() bool {
	d := s.Main()
	return d != nil && s.PeakBytes != nil && d.AllocatedBytes == *s.PeakBytes
}

// Main returns the breakdown of the device with the highest peak; nil if no device has a breakdown.
func (s *Summary) Main() *memory.DeviceBreakdown {
	var main *memory.DeviceBreakdown
	for i := range s.Breakdown.Devices {
		if d := &s.Breakdown.Devices[i]; main == nil || d.AllocatedBytes > main.AllocatedBytes {
			main = d
		}
	}
	return main
}

// gradients determines whether .grad outlives its step. gradients looks at the end of a step's first forward, when the
// loop has called zero_grad at the latest. gradients uses the last instrumented step that follows an instrumented step,
// since allocations of a bare step have no tags.
func (s *Summary) gradients(in *schemas.Tables, ledgers *memory.Ledgers) {
	main := s.Main()
	if main == nil {
		return
	}
	instrumented := map[int64]bool{}
	for i := range in.Steps {
		instrumented[in.Steps[i].Step] = in.Steps[i].Instrumented
	}
	var last *schemas.Phase
	var p identity.Place
	for i := range in.Phases {
		f := &in.Phases[i]
		at := identity.Place{Rank: f.Rank, Device: f.Device}
		if at.String() == main.Device && f.Rank == main.Rank && f.Phase == schemas.PhaseForward && f.Microbatch == 0 &&
			instrumented[f.Step] && instrumented[f.Step-1] && (last == nil || f.Step > last.Step) {
			last, p = f, at
		}
	}
	if last == nil {
		return
	}
	kept := ledgers.Of(p).BytesAt(schemas.Gradients, last.EndSeq)
	s.KeptGradientBytes = &kept
	if kept > 0 && len(in.Gradients) > 0 && s.BrokenDown() {
		s.Kept = memory.CostOfKeptGradients(in, p, ledgers.Of(p), main.At.Event)
	}
}

// Device returns the name and the rank of the main device; "" if there is none.
func (s *Summary) Device() (string, int32) {
	if d := s.Main(); d != nil {
		return d.Device, d.Rank
	}
	if len(s.Phases.Phases) > 0 {
		return s.Phases.Phases[0].Device, s.Phases.Phases[0].Rank
	}
	return "", 0
}

func (s *Summary) FactOrNull(what string) *string {
	for i := range s.RunFacts {
		if s.RunFacts[i].What == what {
			return &s.RunFacts[i].Value
		}
	}
	return nil
}

// RunFact returns the run's fact with the given name; nil if the run has none.
func (s *Summary) RunFact(what string) *identity.Fact {
	for i := range s.RunFacts {
		if s.RunFacts[i].What == what {
			return &s.RunFacts[i]
		}
	}
	return nil
}
