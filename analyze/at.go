package analyze

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// At names a moment of a run. The zero At is the peak.
type At struct {
	Event *int64 // just after this event
	OOM   *int64 // when the device's n-th request failed for want of memory, from 1
	Step  *int64 // with Phase: the highest moment of that phase of that step
	Phase string // with Step nil: of the phase's highest occurrence
}

// ParseAt reads "peak", "oom", "oom=N", "event=N", "step=N", "phase=P" or "step=N,phase=P".
func ParseAt(s string) (At, error) {
	var at At
	switch s {
	case "", "peak":
		return at, nil
	case "oom":
		at.OOM = new(int64(1))
		return at, nil
	}
	given := map[string]bool{}
	for part := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || value == "" {
			return At{}, fmt.Errorf("moment %q is not peak, oom, event=N, or step=N,phase=P", s)
		}
		if given[key] {
			return At{}, fmt.Errorf("moment %q: %s is given twice", s, key)
		}
		given[key] = true
		n, err := strconv.ParseInt(value, 10, 64)
		switch key {
		case "phase":
			at.Phase = value
		case "event":
			if err != nil || n < 0 {
				return At{}, fmt.Errorf("moment %q: event must be a whole number, 0 or more", s)
			}
			at.Event = &n
		case "oom":
			if err != nil || n < 1 {
				return At{}, fmt.Errorf("moment %q: oom must be a whole number, 1 or more", s)
			}
			at.OOM = &n
		case "step":
			if err != nil || n < -1 {
				return At{}, fmt.Errorf("moment %q: step must be a whole number, -1 or more", s)
			}
			at.Step = &n
		default:
			return At{}, fmt.Errorf("moment %q: unknown key %q (oom, event, step, phase)", s, key)
		}
	}
	switch more := at.Step != nil || at.Phase != ""; {
	case at.Event != nil && (more || at.OOM != nil):
		return At{}, fmt.Errorf("moment %q: an event is a moment by itself", s)
	case at.OOM != nil && more:
		return At{}, fmt.Errorf("moment %q: a failure is a moment by itself", s)
	}
	return at, nil
}

// found is the moment that an At means on one device.
type found struct {
	at        Moment
	allocated int64 // by the allocator's replay; -1 where no table holds that
	warnings  []string
}

// moment finds what at means on device p.
func (in *Input) moment(p place, at At) (found, error) {
	v := in.verdict(p)
	switch {
	case at.Event != nil:
		if v != nil && *at.Event > v.Events {
			return found{}, fmt.Errorf("%s has %d events, not %d", p, v.Events, *at.Event)
		}
		return found{at: in.momentOf(p, *at.Event), allocated: -1}, nil
	case at.OOM != nil:
		return in.failureAt(p, *at.OOM)
	case at.Step != nil || at.Phase != "":
		return in.phaseMoment(p, at)
	case v == nil:
		return found{}, fmt.Errorf("%s has no peak: it has not been ingested", p)
	case v.InstrumentedPeakSeq != nil:
		return found{at: in.momentOf(p, *v.InstrumentedPeakSeq), allocated: v.PeakAllocatedBytes}, nil
	}
	f := found{at: in.momentOf(p, v.PeakSeq), allocated: v.PeakAllocatedBytes}
	if v.PeakAllocatedBytes > 0 {
		f.warnings = append(f.warnings, fmt.Sprintf("%s: only a step without tags reached the peak: its categories are known by lifetime and phase only", p))
	}
	return f, nil
}

// phaseMoment is the highest moment of a phase. Its step and phase are those of the row: where nothing in a phase is as
// high as the state that it began with, the event is the last of the phase before.
func (in *Input) phaseMoment(p place, at At) (found, error) {
	var best *schemas.Phase
	steps, phases := map[int64]bool{}, map[string]bool{}
	for i := range in.Phases {
		f := &in.Phases[i]
		if f.Rank != p.rank || f.Device != p.device {
			continue
		}
		steps[f.Step] = true
		if at.Step != nil && f.Step != *at.Step {
			continue
		}
		phases[f.Phase] = true
		if at.Phase != "" && f.Phase != at.Phase {
			continue
		}
		if best == nil || f.PeakBytes > best.PeakBytes {
			best = f
		}
	}
	switch {
	case best != nil:
	case len(steps) == 0:
		return found{}, fmt.Errorf("%s has no phases", p)
	case len(phases) == 0:
		s := slices.Sorted(maps.Keys(steps))
		return found{}, fmt.Errorf("no step %d on %s: steps go from %d to %d", *at.Step, p, s[0], s[len(s)-1])
	default:
		return found{}, fmt.Errorf("no phase %q there on %s: there are %s", at.Phase, p, strings.Join(slices.Sorted(maps.Keys(phases)), ", "))
	}
	m := found{at: Moment{Event: best.PeakSeq, Phase: new(best.Phase)}, allocated: best.PeakBytes}
	if best.Step >= 0 {
		m.at.Step = new(best.Step)
	}
	if best.PeakSeq == 0 {
		m.at.Event, m.allocated = best.EndSeq, -1
	}
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Rank == p.rank && s.Device == p.device && s.Step == best.Step && !s.Recorded {
			return found{}, fmt.Errorf("step %d on %s was not recorded: it has times, and no allocator events", s.Step, p)
		}
		if s.Rank == p.rank && s.Device == p.device && s.Step == best.Step && !s.Instrumented {
			m.warnings = append(m.warnings, fmt.Sprintf("%s: step %d is a bare step: what was born in it has no tags", p, s.Step))
		}
	}
	return m, nil
}

// momentOf is the moment just after event seq.
func (in *Input) momentOf(p place, seq int64) Moment {
	m := Moment{Event: seq}
	m.Step, m.Phase = in.phaseOf(p, seq)
	return m
}

// phaseOf finds the step and phase that event seq belongs to; nil where none does. They are copies: a pointer into a table
// would keep all of it for as long as a [Summary].
func (in *Input) phaseOf(p place, seq int64) (step *int64, phase *string) {
	for i := range in.Phases {
		f := &in.Phases[i]
		if f.Rank == p.rank && f.Device == p.device && f.BeginSeq < seq && seq <= f.EndSeq {
			if f.Step >= 0 {
				step = new(f.Step)
			}
			return step, new(f.Phase)
		}
	}
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Rank == p.rank && s.Device == p.device && s.BeginSeq < seq && seq <= s.EndSeq {
			return new(s.Step), nil
		}
	}
	return nil, nil
}
