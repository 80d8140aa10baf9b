package timeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// CategoryTables lists the tables that a timeline by category needs.
const CategoryTables = schemas.WantLives | schemas.WantTimes

// CategoryTimelineSchema is the version of [CategoryTimelineDocument].
const CategoryTimelineSchema = "dpsight.timeline/1"

// CategoryTimelineDocument is what "dpsight timeline --format json" prints.
type CategoryTimelineDocument struct {
	Schema string `json:"schema"`
	// Points is the number of points that the caller asked for; 0 = one for each event.
	Points int                   `json:"points"`
	Runs   []CategoryTimelineRun `json:"runs"`
}

// NewCategoryTimelineDocument makes the document of these runs, which were all asked for the same.
func NewCategoryTimelineDocument(points int, runs ...CategoryTimelineRun) CategoryTimelineDocument {
	if runs == nil {
		runs = []CategoryTimelineRun{}
	}
	identity.Distinguish(runs, func(r *CategoryTimelineRun) *identity.Identity { return &r.Identity })
	return CategoryTimelineDocument{CategoryTimelineSchema, points, runs}
}

// CategoryTimelineRun is one run's timelines, one for each device. Devices is empty for a run without allocator events.
type CategoryTimelineRun struct {
	identity.Identity
	Devices  []DeviceTimeline `json:"devices"`
	Warnings []string         `json:"warnings"`
}

// DeviceTimeline is the bytes that one device had allocated, by category, over a range of events.
type DeviceTimeline struct {
	Device    string `json:"device"`
	Rank      int32  `json:"rank"`
	FromEvent int64  `json:"from_event"`
	ToEvent   int64  `json:"to_event"` // last event of the range
	// PeakBytes is the highest allocated in the range. PeakAt is the first moment in the range at that height.
	PeakBytes int64         `json:"peak_bytes"`
	PeakAt    memory.Moment `json:"peak_at"`
	// RunPeakAt is the moment of the run's breakdown.
	RunPeakBytes int64         `json:"run_peak_bytes"`
	RunPeakAt    memory.Moment `json:"run_peak_at"`
	// Categories lists the categories with bytes in the range or at the run's peak, in the order of precedence.
	Categories   []CategoryMaximum   `json:"categories"`
	Points       []TimelinePoint     `json:"points"` // points in the order of events, without gaps
	Conservation memory.Conservation `json:"conservation"`
	Warnings     []string            `json:"warnings"` // sentences that report makes of Untagged
	// Untagged lists the shown steps that have no tags: the step of the peak, then the step of the range if it is
	// another one.
	Untagged []*memory.Untagged `json:"-"`
}

// CategoryMaximum is the moment at which a category has the most bytes. Categories may have their maxima at different
// moments, so the maxima may sum to more than the peak.
type CategoryMaximum struct {
	Category       schemas.Category `json:"category"`
	MaxBytes       int64            `json:"max_bytes"`
	At             memory.Moment    `json:"at"`               // the first moment at which the category has so many bytes
	AllocatedBytes int64            `json:"allocated_bytes"`  // all bytes that are allocated at that moment
	AtPeakBytes    int64            `json:"at_peak_bytes"`    // bytes of the category at the run's peak
	MaxEvidence    memory.Evidence  `json:"max_evidence"`     // evidence for MaxBytes
	AtPeakEvidence memory.Evidence  `json:"at_peak_evidence"` // evidence for AtPeakBytes
	// Parts are the bytes of all categories at the moment At, in the order of [schemas.Categories].
	Parts []int64 `json:"-"`
}

// TimelinePoint is a stretch of events reduced to its extremes.
type TimelinePoint struct {
	FromEvent int64 `json:"from_event"`
	ToEvent   int64 `json:"to_event"`
	// Step and Phase belong to HighEvent.
	Step  *int64  `json:"step"`
	Phase *string `json:"phase"`
	// LowBytes and HighBytes are the lowest and the highest allocated just after any event of the stretch. LowEvent and
	// HighEvent are the first events with these values.
	LowBytes  int64 `json:"low_bytes"`
	LowEvent  int64 `json:"low_event"`
	HighBytes int64 `json:"high_bytes"`
	HighEvent int64 `json:"high_event"`
	// Bytes are the categories' bytes just after HighEvent; they sum to HighBytes. MaxBytes are each category's highest
	// bytes in the stretch, perhaps at different moments. Bytes and MaxBytes are in the order of the device's
	// categories.
	Bytes    []int64 `json:"bytes"`
	MaxBytes []int64 `json:"max_bytes"`
}

// EventRange selects events and devices. The zero range selects all events of all devices.
type EventRange struct {
	Device   string // a device: "cuda:1" or "1"; empty = every device
	Step     *int64
	From, To *int64 // first and last event; nil = of the recording. Event 0 is the state before the first.
}

// Check returns an error for a range that has no meaning.
func (r *EventRange) Check() error {
	switch {
	case r.Step != nil && (r.From != nil || r.To != nil):
		return fmt.Errorf("a step is a range of events by itself")
	case r.Step != nil && *r.Step < 0:
		return fmt.Errorf("step %d is not a number of a step, 0 or more", *r.Step)
	case r.From != nil && *r.From < 0:
		return fmt.Errorf("event %d is not a number of an event, 0 or more", *r.From)
	case r.To != nil && *r.To < 0:
		return fmt.Errorf("event %d is not a number of an event, 0 or more", *r.To)
	case r.From != nil && r.To != nil && *r.From > *r.To:
		return fmt.Errorf("the range from event %d to event %d holds none", *r.From, *r.To)
	}
	return nil
}

// CategoryTimeline reduces each device's events to the given number of points; 0 = one point per event. For a run
// without allocator events it returns the run's identity, no devices and a [*NoEventsError].
//
// The events of the range are cut into stretches of nearly equal numbers of events. Each stretch keeps the lowest and
// the highest total, the categories at the highest, and each category's own maximum. So with any number of points, the
// highest point is the highest of the range, for the total and for each category. Sampling events at a fixed interval
// would lose extremes, since most peaks last for one event.
func CategoryTimeline(in schemas.Tables, r EventRange, points int) (CategoryTimelineRun, error) {
	return CategoryTimelineWith(&in, r, points, memory.NewLedgers(&in))
}

// CategoryTimelineWith is [CategoryTimeline] with ledgers that the caller has already made.
func CategoryTimelineWith(in *schemas.Tables, r EventRange, points int, ledgers *memory.Ledgers) (CategoryTimelineRun,
	error) {
	run := CategoryTimelineRun{Identity: identity.Of(in), Devices: []DeviceTimeline{}, Warnings: []string{}}
	if in.Report != nil {
		run.Warnings = append(run.Warnings, in.Report.Warnings...)
	}
	if err := memory.NoEvents(in); err != nil {
		return run, err
	}
	var first error
	var names []string
	for _, p := range identity.Places(in) {
		l := ledgers.Of(p)
		if l.Len() == 0 {
			continue
		}
		names = append(names, p.String())
		if r.Device != "" && r.Device != p.String() && r.Device != strings.TrimPrefix(p.String(), "cuda:") {
			continue
		}
		d, err := deviceTimeline(in, p, l, r, points)
		if err != nil { // another device may have the step
			run.Warnings, first = append(run.Warnings, err.Error()), cmp.Or(first, err)
			continue
		}
		run.Devices = append(run.Devices, d)
	}
	switch {
	case len(run.Devices) > 0:
		return run, nil
	case first != nil:
		return run, fmt.Errorf("run %s: %w", in.Manifest.RunID, first)
	}
	slices.Sort(names)
	return run, fmt.Errorf("run %s has no device %q with allocator events; it has %s", in.Manifest.RunID, r.Device,
		strings.Join(slices.Compact(names), ", "))
}

// deviceTimeline returns the timeline of device p.
func deviceTimeline(in *schemas.Tables, p identity.Place, l *memory.Ledger, r EventRange, points int) (DeviceTimeline,
	error) {
	peak, err := memory.FindMoment(in, p, memory.At{})
	if err != nil {
		return DeviceTimeline{}, err
	}
	d := DeviceTimeline{Device: p.String(), Rank: p.Rank, RunPeakAt: peak.At, Points: []TimelinePoint{},
		Categories:   []CategoryMaximum{},
		Conservation: memory.Conservation{Verdict: schemas.Unverifiable},
		Warnings:     []string{}}
	if v := identity.Verdict(in, p); v != nil {
		if u := memory.UntaggedAt(in, p, peak.At); u != nil {
			d.Untagged = append(d.Untagged, u)
		}
		d.Conservation = memory.ConservationOf(v)
	}
	if err := bounds(in, p, l, r, &d); err != nil {
		return d, err
	}
	atPeak := partsAt(l, peak.At.Event)
	d.RunPeakBytes = Total(atPeak)
	s := newStretches(d.FromEvent, d.ToEvent, points)
	s.fill(l.Changes())
	moments := newMoments(in, p)
	highest := s.highest()
	d.PeakBytes, d.PeakAt = highest.high, moments.of(highest.highSeq)
	d.Categories = append(d.Categories, s.categories(atPeak, moments)...)
	evidence(l, d.Categories, peak.At.Event)
	for i := range s.all {
		w := &s.all[i]
		pt := TimelinePoint{FromEvent: w.from, ToEvent: w.to, LowBytes: w.low, LowEvent: w.lowSeq, HighBytes: w.high,
			HighEvent: w.highSeq}
		pt.Step, pt.Phase = moments.find(w.highSeq)
		pt.Bytes = pick(w.parts, d.Categories)
		if pt.MaxBytes = pt.Bytes; w.to > w.from {
			pt.MaxBytes = pick(w.most, d.Categories)
		}
		d.Points = append(d.Points, pt)
	}
	return d, nil
}

// evidence sets how the categories' bytes are known: of each category at its own maximum, and of all at the peak.
func evidence(l *memory.Ledger, categories []CategoryMaximum, peak int64) {
	at := map[int64][]memory.Evidence{}
	of := func(seq int64, c schemas.Category) memory.Evidence {
		if at[seq] == nil {
			at[seq] = evidenceAt(l, seq)
		}
		return at[seq][schemas.Precedence(c)]
	}
	for i := range categories {
		c := &categories[i]
		c.MaxEvidence, c.AtPeakEvidence = of(c.At.Event, c.Category), of(peak, c.Category)
	}
}

// pick returns the bytes of the listed categories, from the bytes of all categories.
func pick(bytes []int64, listed []CategoryMaximum) []int64 {
	out := make([]int64, len(listed))
	for k := range listed {
		out[k] = bytes[schemas.Precedence(listed[k].Category)]
	}
	return out
}

// bounds sets the timeline's first and last event from the requested range.
func bounds(in *schemas.Tables, p identity.Place, l *memory.Ledger, r EventRange, d *DeviceTimeline) error {
	last := lastEvent(in, p, l)
	d.ToEvent = last
	switch {
	case r.Step != nil:
		s, err := recordedStep(in, p, *r.Step)
		if err != nil {
			return err
		}
		// BeginSeq is the last event before the step. A step without events is shown by the state after that event.
		d.FromEvent, d.ToEvent = min(s.BeginSeq+1, s.EndSeq), s.EndSeq
		if !s.Instrumented && (d.RunPeakAt.Step == nil || *d.RunPeakAt.Step != s.Step) {
			d.Untagged = append(d.Untagged, memory.UntaggedStep(in, p, s.Step))
		}
	default:
		if r.From != nil {
			d.FromEvent = *r.From
		}
		if r.To != nil {
			d.ToEvent = *r.To
		}
		if far := max(d.FromEvent, d.ToEvent); far > last {
			return fmt.Errorf("%s has %d events, not %d", p, last, far)
		}
	}
	return nil
}

// lastEvent returns the number of the device's last event.
func lastEvent(in *schemas.Tables, p identity.Place, l *memory.Ledger) (last int64) {
	if v := identity.Verdict(in, p); v != nil {
		last = v.Events
	}
	if c := l.Changes(); len(c) > 0 {
		last = max(last, c[len(c)-1].Seq())
	}
	return last
}

// recordedStep finds a step that has events.
func recordedStep(in *schemas.Tables, p identity.Place, step int64) (*schemas.Step, error) {
	steps := map[int64]bool{}
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Rank != p.Rank || s.Device != p.Device {
			continue
		}
		steps[s.Step] = true
		if s.Step == step {
			if !s.Recorded {
				return nil, fmt.Errorf("step %d on %s was not recorded: it has times, and no allocator events", step, p)
			}
			return s, nil
		}
	}
	return unfinishedStep(in, p, step, steps)
}

// unfinishedStep makes a step from the phases of a step that the run did not complete, for example because a request
// failed. Phases after the last step have the last step's number plus one, as in [memory.At]. steps are the completed
// steps on the device.
func unfinishedStep(in *schemas.Tables, p identity.Place, step int64, steps map[int64]bool) (*schemas.Step, error) {
	var found *schemas.Step
	known := memory.PhasesWithBytes(in)
	for i := range in.Phases {
		f := &in.Phases[i]
		// A user cannot request the phases before the first step as a step, only as a range of events.
		if f.Rank != p.Rank || f.Device != p.Device || f.Step < 0 {
			continue
		}
		steps[f.Step] = true
		switch {
		case f.Step != step:
		case !known(f):
			return nil, memory.NoBytes(in, p, f)
		case found == nil:
			// No table says whether this unfinished step has tags, so it counts as instrumented.
			found = &schemas.Step{Step: step, Rank: p.Rank, Device: p.Device, Recorded: true, Instrumented: true,
				BeginSeq: f.BeginSeq, EndSeq: f.EndSeq}
		default:
			found.BeginSeq, found.EndSeq = min(found.BeginSeq, f.BeginSeq), max(found.EndSeq, f.EndSeq)
		}
	}
	switch {
	case found != nil:
		return found, nil
	case len(steps) == 0:
		return nil, fmt.Errorf("%s has no steps", p)
	}
	return nil, memory.NoStep(in, p, step, slices.Sorted(maps.Keys(steps)))
}
