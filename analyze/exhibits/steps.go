package exhibits

import (
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/schemas"
)

// StepTables lists the tables that a [Step] needs.
const StepTables = timeline.CategoryTables

// mostStretches is how many stretches of events a step is reduced to: more than a figure can show.
const mostStretches = 300

// A Step is the memory of one device over the events of the step of a run's peak.
type Step struct {
	timeline.DeviceTimeline
	Phases []Span // in the order of events
}

// A Span is a phase of a step.
type Span struct {
	Phase    string
	From, To int64 // events
}

// StepOf is the step of the peak of a run's main device; nil where it has none, or where it is not broken down.
func StepOf(in schemas.Tables, s *analyze.Summary) *Step {
	main := s.Main()
	if main == nil || !s.BrokenDown() || main.At.Step == nil {
		return nil
	}
	run, err := timeline.CategoryTimeline(in, timeline.EventRange{Device: main.Device, Step: main.At.Step}, mostStretches)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(run.Devices, func(d timeline.DeviceTimeline) bool { return d.Rank == main.Rank })
	if i < 0 {
		return nil
	}
	step := Step{DeviceTimeline: run.Devices[i]}
	for k := range in.Phases {
		p := &in.Phases[k]
		if p.Step == *main.At.Step && p.Rank == main.Rank && p.EndSeq > p.BeginSeq {
			step.Phases = append(step.Phases, Span{p.Phase, p.BeginSeq, p.EndSeq})
		}
	}
	slices.SortStableFunc(step.Phases, func(a, b Span) int { return int(a.From - b.From) })
	return &step
}

// Cause is the category that grew most from the beginning of the phase of the peak to the peak; empty where none did.
func (s *Step) Cause() (cause schemas.Category) {
	begin := 0
	for _, p := range s.Phases {
		if p.From > s.RunPeakAt.Event || s.RunPeakAt.Event > p.To {
			continue
		}
		for i := range s.Points {
			if s.Points[i].ToEvent <= p.From {
				begin = i
			}
		}
	}
	most := int64(0)
	for k, c := range s.Categories {
		if grown := c.AtPeakBytes - s.Points[begin].Bytes[k]; grown > most {
			cause, most = c.Category, grown
		}
	}
	return cause
}
