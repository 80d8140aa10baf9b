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
	Step  *int64 // with Phase: the highest moment of that phase of that step
	Phase string // with Step nil: of the phase's highest occurrence
}

// ParseAt reads "peak", "event=N", "step=N", "phase=P" or "step=N,phase=P".
func ParseAt(s string) (At, error) {
	var at At
	if s == "" || s == "peak" {
		return at, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case !ok || value == "":
			return At{}, fmt.Errorf("moment %q is not peak, event=N, or step=N,phase=P", s)
		case key == "phase":
			at.Phase = value
		case key != "event" && key != "step":
			return At{}, fmt.Errorf("moment %q: unknown key %q (event, step, phase)", s, key)
		case err != nil || n < -1 || n < 0 && key == "event":
			return At{}, fmt.Errorf("moment %q: %s is not a number of one", s, value)
		case key == "event":
			at.Event = &n
		case key == "step":
			at.Step = &n
		}
	}
	if at.Event != nil && (at.Step != nil || at.Phase != "") {
		return At{}, fmt.Errorf("moment %q: an event is a moment by itself", s)
	}
	return at, nil
}

// moment finds the event that at means on device p. The second result is what the allocator's replay says is allocated
// there, or -1 where no table holds that.
func (in *Input) moment(p place, at At) (seq, allocated int64, warnings []string, err error) {
	v := in.verdict(p)
	switch {
	case at.Event != nil:
		if v != nil && *at.Event > v.Events {
			return 0, 0, nil, fmt.Errorf("%s has %d events, not %d", p, v.Events, *at.Event)
		}
		return *at.Event, -1, nil, nil
	case at.Step != nil || at.Phase != "":
		return in.phaseMoment(p, at)
	case v == nil:
		return 0, 0, nil, fmt.Errorf("%s has no peak: it has not been ingested", p)
	case v.InstrumentedPeakSeq != nil:
		return *v.InstrumentedPeakSeq, v.PeakAllocatedBytes, nil, nil
	}
	if v.PeakAllocatedBytes > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: only a step without tags reached the peak: its categories are known by lifetime and phase only", p))
	}
	return v.PeakSeq, v.PeakAllocatedBytes, warnings, nil
}

func (in *Input) phaseMoment(p place, at At) (seq, allocated int64, warnings []string, err error) {
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
		return 0, 0, nil, fmt.Errorf("%s has no phases", p)
	case len(phases) == 0:
		s := slices.Sorted(maps.Keys(steps))
		return 0, 0, nil, fmt.Errorf("no step %d on %s: steps go from %d to %d", *at.Step, p, s[0], s[len(s)-1])
	default:
		return 0, 0, nil, fmt.Errorf("no phase %q there on %s: there are %s", at.Phase, p, strings.Join(slices.Sorted(maps.Keys(phases)), ", "))
	}
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Rank == p.rank && s.Device == p.device && s.Step == best.Step && !s.Recorded {
			return 0, 0, nil, fmt.Errorf("step %d on %s was not recorded: it has times, and no allocator events", s.Step, p)
		}
		if s.Rank == p.rank && s.Device == p.device && s.Step == best.Step && !s.Instrumented {
			warnings = append(warnings, fmt.Sprintf("%s: step %d is a bare step: what was born in it has no tags", p, s.Step))
		}
	}
	if best.PeakSeq == 0 {
		return best.EndSeq, -1, warnings, nil
	}
	return best.PeakSeq, best.PeakBytes, warnings, nil
}

// phaseOf finds the step and phase that event seq belongs to; nil where none does.
func (in *Input) phaseOf(p place, seq int64) (step *int64, phase *string) {
	for i := range in.Phases {
		f := &in.Phases[i]
		if f.Rank == p.rank && f.Device == p.device && f.BeginSeq < seq && seq <= f.EndSeq {
			if f.Step >= 0 {
				step = &f.Step
			}
			return step, &f.Phase
		}
	}
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Rank == p.rank && s.Device == p.device && s.BeginSeq < seq && seq <= s.EndSeq {
			return &s.Step, nil
		}
	}
	return nil, nil
}
