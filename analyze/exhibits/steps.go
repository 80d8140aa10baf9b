package exhibits

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/schemas"
)

// mostStretches is the number of stretches of events that a step's timeline is reduced to. mostStretches is more than a
// figure can show.
const mostStretches = 300

// A Step is the memory of one device over the allocator events of the training step with the run's peak, or over all
// recorded events.
type Step struct {
	timeline.DeviceTimeline
	Phases []Span // the phases, in the order of events
	Steps  []Span // the steps, if all events are covered; their Phase is the step's number
	// Rises are the bytes that each category adds from the beginning of the peak's phase to the peak. Rises is nil if no
	// recorded phase covers the peak.
	Rises map[schemas.Category]int64
}

// A Span is the range of events of a phase or of a whole step.
type Span struct {
	Phase    string
	From, To int64 // numbers of events
}

// step returns the training step in which the run's main device has its peak; nil if the peak lies outside all steps or
// is not broken down.
func (r reader) step() *Step {
	main := r.summary.Main()
	if main == nil || !r.summary.BrokenDown() || main.At.Step == nil {
		return nil
	}
	step := r.stretch(timeline.EventRange{Device: main.Device, Step: main.At.Step})
	if step == nil {
		return nil
	}
	for k := range r.in.Phases {
		p := &r.in.Phases[k]
		if p.Step == *main.At.Step && p.Rank == main.Rank && p.EndSeq > p.BeginSeq {
			step.Phases = append(step.Phases, Span{p.Phase, p.BeginSeq, p.EndSeq})
		}
	}
	slices.SortStableFunc(step.Phases, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	step.Rises = r.rises()
	return step
}

// whole returns the memory of the run's main device over all recorded events; nil if the peak is not broken down, or if
// fewer than two steps were recorded.
func (r reader) whole() *Step {
	main := r.summary.Main()
	if main == nil || !r.summary.BrokenDown() {
		return nil
	}
	whole := r.stretch(timeline.EventRange{Device: main.Device})
	if whole == nil {
		return nil
	}
	at := map[int64]int{}
	for k := range r.in.Phases {
		p := &r.in.Phases[k]
		if p.Step < 0 || p.Rank != main.Rank || p.EndSeq <= p.BeginSeq {
			continue
		}
		i, known := at[p.Step]
		if !known {
			at[p.Step] = len(whole.Steps)
			whole.Steps = append(whole.Steps, Span{strconv.FormatInt(p.Step, 10), p.BeginSeq, p.EndSeq})
			continue
		}
		step := &whole.Steps[i]
		step.From, step.To = min(step.From, p.BeginSeq), max(step.To, p.EndSeq)
	}
	if len(whole.Steps) < 2 {
		return nil
	}
	slices.SortStableFunc(whole.Steps, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	whole.Rises = r.rises()
	return whole
}

// stretch returns the memory of the run's main device over a range of events.
func (r reader) stretch(within timeline.EventRange) *Step {
	run, err := timeline.CategoryTimelineWith(r.in, within, mostStretches, r.ledgers)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(run.Devices, func(d timeline.DeviceTimeline) bool { return d.Rank == r.summary.Main().Rank })
	if i < 0 {
		return nil
	}
	return &Step{DeviceTimeline: run.Devices[i]}
}

// rises returns the bytes that each category adds from the beginning of the phase with the run's peak to the peak.
func (r reader) rises() map[schemas.Category]int64 {
	main := r.summary.Main()
	peak := main.At.Event
	var phase *schemas.Phase // the shortest phase that contains the peak
	for k := range r.in.Phases {
		p := &r.in.Phases[k]
		if p.Rank == main.Rank && p.BeginSeq < peak && peak <= p.EndSeq &&
			(phase == nil || p.EndSeq-p.BeginSeq < phase.EndSeq-phase.BeginSeq) {
			phase = p
		}
	}
	if phase == nil {
		return nil
	}
	begin := r.stretch(timeline.EventRange{Device: main.Device, From: &phase.BeginSeq, To: &phase.BeginSeq})
	if begin == nil {
		return nil
	}
	rises := map[schemas.Category]int64{}
	for _, c := range begin.Categories {
		rises[c.Category] = c.AtPeakBytes - c.MaxBytes
	}
	return rises
}

// Cause returns the category that a figure names at an entry's peak. Of the categories that rise in the peak's phase,
// Cause returns the one that exceeds the baseline's by most. If none of these exceeds the baseline's, Cause returns the
// one that rises most. If none rises, Cause returns the category that exceeds the baseline's by most. If none exceeds
// the baseline's, Cause returns the largest category besides parameters, optimizer state, gradients and activations,
// or "".
func (s *Step) Cause(e *Entry) (cause schemas.Category) {
	most := int64(0)
	take := func(c schemas.Category, bytes int64) {
		if bytes > most {
			cause, most = c, bytes
		}
	}
	changes := e.Changes()
	for _, c := range changes {
		take(c.Category, min(s.Rises[c.Category], c.DeltaBytes))
	}
	if cause != "" {
		return cause
	}
	for _, c := range s.Categories {
		take(c.Category, s.Rises[c.Category])
	}
	if cause != "" {
		return cause
	}
	for _, c := range changes {
		take(c.Category, c.DeltaBytes)
	}
	if cause != "" {
		return cause
	}
	for _, c := range s.Categories {
		switch c.Category {
		case schemas.Parameters, schemas.OptimizerState, schemas.Gradients, schemas.Activations:
		default:
			take(c.Category, c.AtPeakBytes)
		}
	}
	return cause
}
