package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/near"
)

// A Unit is the unit of a [Metric]'s values.
type Unit string

// The units.
const (
	UnitBytes     Unit = "bytes"
	UnitMS        Unit = "ms"
	UnitPerSecond Unit = "per_s"
	UnitJoules    Unit = "J"
)

// A Metric is one figure of a run, as a command line names it.
type Metric struct {
	Name string // one of the Metric… names
	Of   string // the category or the phase of a metric that has one
}

// The names of metrics. A command line writes a metric that has an Of as NAME:OF.
const (
	MetricPeak      = "peak"       // highest allocated
	MetricReserved  = "reserved"   // highest reserved
	MetricDevice    = "device"     // highest in use on the device, as NVML counts it
	MetricTime      = "time"       // time of a step; "step" means the same
	MetricSamples   = "samples"    // samples a second
	MetricTokens    = "tokens"     // tokens a second
	MetricEnergy    = "energy"     // energy of a sample
	MetricCategory  = "category"   // bytes of a category at the peak
	MetricPhase     = "phase"      // time of a phase in a step
	MetricPhasePeak = "phase-peak" // highest allocated in a phase
)

// metricKinds lists the metrics that [ParseMetric] knows, in the order in which help shows them.
var metricKinds = []struct {
	name string
	unit Unit
	of   string // the part after the colon; empty = none
}{
	{MetricPeak, UnitBytes, ""},
	{MetricReserved, UnitBytes, ""},
	{MetricDevice, UnitBytes, ""},
	{MetricTime, UnitMS, ""},
	{MetricSamples, UnitPerSecond, ""},
	{MetricTokens, UnitPerSecond, ""},
	{MetricEnergy, UnitJoules, ""},
	{MetricCategory, UnitBytes, "NAME"},
	{MetricPhase, UnitMS, "NAME"},
	{MetricPhasePeak, UnitBytes, "NAME"},
}

// MetricNames lists the names of metrics that a command line can use, for help and errors.
func MetricNames() []string {
	var names []string
	for _, k := range metricKinds {
		if k.of != "" {
			names = append(names, k.name+":"+k.of)
			continue
		}
		names = append(names, k.name)
	}
	return names
}

// metricWords returns the metrics' names, each without the colon and the text after it.
func metricWords() []string {
	var words []string
	for _, k := range metricKinds {
		words = append(words, k.name)
	}
	return words
}

// EveryCategory stands for all categories in the name of a threshold's metric.
const EveryCategory = "*"

// ParseMetric reads the name of a metric: "peak", "category:gradients". A phase may have any name, since scripts name
// their own phases. A category must be known.
func ParseMetric(s string) (Metric, error) {
	name, of, has := strings.Cut(s, ":")
	if name == "step" {
		name = MetricTime
	}
	for _, k := range metricKinds {
		switch {
		case k.name != name:
			continue
		case k.of == "" && has:
			return Metric{}, fmt.Errorf("value %q: %s takes no name after a colon", s, name)
		case k.of != "" && of == "":
			return Metric{}, fmt.Errorf("value %q: it needs a name, as in %s:%s", s, name, exampleOf(name))
		case name == MetricCategory && of != EveryCategory && !slices.Contains(schemas.Categories, of):
			return Metric{}, fmt.Errorf("value %q: no category %q%s", s, of, near.Guess(of, schemas.Categories))
		}
		return Metric{name, of}, nil
	}
	if guess := near.Word(name, metricWords()); guess != "" {
		return Metric{}, fmt.Errorf("value %q: no value %q; did you mean %s?", s, name, guess)
	}
	return Metric{}, fmt.Errorf("value %q is not one of %s", s, strings.Join(MetricNames(), ", "))
}

func exampleOf(name string) string {
	if name == MetricCategory {
		return schemas.Gradients
	}
	return schemas.PhaseForward
}

func (m Metric) String() string {
	if m.Of == "" {
		return m.Name
	}
	return m.Name + ":" + m.Of
}

// Unit returns the unit of the metric's values.
func (m Metric) Unit() Unit {
	for _, k := range metricKinds {
		if k.name == m.Name {
			return k.unit
		}
	}
	return ""
}

// More reports whether a higher value of the metric is better.
func (m Metric) More() bool { return m.Name == MetricSamples || m.Name == MetricTokens }

// ValueIn returns the run's value of the metric; nil if the run has none. Bytes are whole numbers below 2^53, which a
// float64 holds exactly.
func (m Metric) ValueIn(s *analyze.Summary) *float64 {
	switch m.Name {
	case MetricPeak:
		return Whole(s.PeakBytes)
	case MetricReserved:
		return Whole(s.PeakReservedBytes)
	case MetricDevice:
		return Whole(s.PeakDeviceBytes)
	case MetricTime:
		if s.StepMS == nil {
			return nil
		}
		return &s.StepMS.Median
	case MetricSamples:
		return s.SamplesPerS
	case MetricTokens:
		return s.TokensPerS
	case MetricEnergy:
		return s.JoulesPerSample
	case MetricCategory:
		if !s.BrokenDown() {
			return nil
		}
		bytes := s.Main().Category(m.Of).Bytes
		return Whole(&bytes)
	case MetricPhase, MetricPhasePeak:
		return m.ofPhase(s)
	}
	return nil
}

// ofPhase returns a phase's peak on the run's main device, or its time by the clock that also measured the run's steps.
func (m Metric) ofPhase(s *analyze.Summary) *float64 {
	device, rank := s.Device()
	for i := range s.Phases.Phases {
		r := &s.Phases.Phases[i]
		if r.Phase != m.Of || r.Device != device || r.Rank != rank {
			continue
		}
		t := r.GPUMS
		switch {
		case m.Name == MetricPhasePeak:
			return Whole(r.PeakBytes)
		case s.StepMS == nil:
			return nil
		case s.StepMS.Clock == timing.ClockWall:
			t = r.WallMS
		}
		if t == nil {
			return nil
		}
		return &t.Median
	}
	return nil
}

// Timed reports whether the metric is a time, or a rate per second.
func (m Metric) Timed() bool { return m.Unit() == UnitMS || m.Unit() == UnitPerSecond }

// clock returns the clock that measured the run's value of the metric; "" if the metric is no time, or if the run has
// no step times.
func (m Metric) clock(s *analyze.Summary) string {
	if !m.Timed() || s.StepMS == nil {
		return ""
	}
	return s.StepMS.Clock
}

func Whole(n *int64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}
