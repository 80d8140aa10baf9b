package analyze

import (
	"errors"
	"fmt"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// Summary is what comparisons and reports need of one run: a few kilobytes, so that a report over many runs holds the
// tables of one at a time.
type Summary struct {
	Identity
	Started   time.Time
	Suite     string // name; empty = none
	GPU       string // name of the first; empty = unknown
	Breakdown BreakdownRun
	Phases    PhasesRun

	PeakBytes         *int64 // highest allocated of the busiest device: replayed, or torch's counter for a bare run
	PeakReservedBytes *int64
	PeakDeviceBytes   *int64 // NVML
	// KeptGradientBytes is what gradients hold when the last step's first forward ends: 0 where zero_grad frees them.
	// Null where no step says.
	KeptGradientBytes *int64

	StepMS          *Interval // null for predicted runs
	SamplesPerS     *float64
	TokensPerS      *float64
	JoulesPerSample *float64
	Warnings        []string

	phaseTimes  map[string]phaseTime
	conditions  []condition
	devicesUsed int
}

// Summarize reduces one run. It fails on nothing: what a run lacks is null, and why stands in Warnings.
func Summarize(in Input) Summary {
	s := Summary{Identity: identify(in.Manifest), Started: in.Manifest.Start, Warnings: []string{}, conditions: conditionsOf(in.Manifest)}
	if in.Manifest.Suite != nil {
		s.Suite = in.Manifest.Suite.Name
	}
	if len(in.Manifest.GPUs) > 0 {
		s.GPU = in.Manifest.GPUs[0].Name
	}
	var err error
	s.Breakdown, err = Breakdown(in, At{})
	var none *NoEventsError
	switch {
	case errors.As(err, &none):
		s.Warnings = append(s.Warnings, "not broken down: "+none.Reason)
	case err != nil:
		s.Warnings = append(s.Warnings, err.Error())
	}
	s.peaks(&in)
	s.gradients(&in)
	t := in.timed()
	s.Phases = in.phasesRun(&t)
	s.phaseTimes = t.phases(&in)
	s.StepMS = t.step()
	s.SamplesPerS = t.rate(func(s *stepTime) int64 { return s.samples })
	s.TokensPerS = t.rate(func(s *stepTime) int64 { return s.tokens })
	s.JoulesPerSample = in.joulesPerSample(&t)
	s.Warnings = append(s.Warnings, t.warnings...)
	if s.Status != schemas.StatusOK && (s.PeakBytes != nil || s.StepMS != nil) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("the run ended early (%s): its peak and times are of what it did until then", s.Status))
	}
	return s
}

// peaks takes the device with the highest peak. A sum over devices would be nobody's limit.
func (s *Summary) peaks(in *Input) {
	if in.Report == nil {
		return
	}
	for i := range in.Report.Devices {
		v := &in.Report.Devices[i]
		peak, reserved := &v.PeakAllocatedBytes, &v.PeakReservedBytes
		if v.Events == 0 {
			peak, reserved = v.TorchPeakAllocatedBytes, v.TorchPeakReservedBytes
		}
		if peak == nil {
			continue
		}
		s.devicesUsed++
		if s.PeakBytes == nil || *peak > *s.PeakBytes {
			s.PeakBytes, s.PeakReservedBytes = peak, reserved
		}
	}
	// Where there is a breakdown its sum is the peak; a difference to replay's is already a warning of its device.
	if d := s.Main(); d != nil {
		s.PeakBytes = &d.AllocatedBytes
		s.latePeak(in, d)
	}
	if s.devicesUsed > 1 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("memory is that of the fullest of %d devices", s.devicesUsed))
	}
	s.PeakDeviceBytes = in.peakDevice()
}

// latePeak takes torch's own counter where the peak came when no event was recorded any more.
func (s *Summary) latePeak(in *Input, d *DeviceBreakdown) {
	for i := range in.Report.Devices {
		v := &in.Report.Devices[i]
		if v.Rank != d.Rank || (place{v.Rank, v.Device}).String() != d.Device || v.TorchPeakAllocatedBytes == nil || *v.TorchPeakAllocatedBytes <= d.AllocatedBytes {
			continue
		}
		s.PeakBytes = v.TorchPeakAllocatedBytes
		if v.TorchPeakReservedBytes != nil {
			s.PeakReservedBytes = v.TorchPeakReservedBytes
		}
		s.Warnings = append(s.Warnings, fmt.Sprintf("the peak of %s came outside the recorded steps and is torch's counter: it is not broken down; the highest recorded moment is %s",
			mib(*s.PeakBytes), mib(d.AllocatedBytes)))
	}
}

// BrokenDown reports whether the peak is one that the breakdown explains.
func (s *Summary) BrokenDown() bool {
	d := s.Main()
	return d != nil && s.PeakBytes != nil && d.AllocatedBytes == *s.PeakBytes
}

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
func (s *Summary) gradients(in *Input) {
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
	kept := newLedger(in, p).bytesAt(schemas.Gradients, last.EndSeq)
	s.KeptGradientBytes = &kept
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
