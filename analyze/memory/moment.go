package memory

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/near"
)

// A ResolvedMoment is the moment on one device that an [At] names.
type ResolvedMoment struct {
	At        Moment
	Allocated int64          // bytes allocated by replay; -1 if no table has them
	Failed    *FailedRequest // the failed request that the At names; nil if it names none
}

// FindMoment finds the moment on device p that at names.
func FindMoment(in *schemas.Tables, p identity.Place, at At) (ResolvedMoment, error) {
	v := identity.Verdict(in, p)
	switch {
	case at.Event != nil:
		if v != nil && *at.Event > v.Events {
			return ResolvedMoment{}, fmt.Errorf("%s has %d events, not %d", p, v.Events, *at.Event)
		}
		return ResolvedMoment{At: MomentOf(in, p, *at.Event), Allocated: -1}, nil
	case at.OOM != nil:
		return FailureAt(in, p, *at.OOM)
	case at.Step != nil || at.Phase != "":
		return phaseMoment(in, p, at)
	case v == nil:
		return ResolvedMoment{}, fmt.Errorf("%s has no peak: it has not been ingested", p)
	}
	return ResolvedMoment{At: MomentOf(in, p, PeakEvent(v)), Allocated: v.PeakAllocatedBytes}, nil
}

// PeakEvent returns the event of a device's peak. If several events are equally high, it prefers the first one at which
// blocks have owners.
func PeakEvent(v *schemas.DeviceVerdict) int64 {
	if v.InstrumentedPeakSeq != nil {
		return *v.InstrumentedPeakSeq
	}
	return v.PeakSeq
}

// NoStep returns the error for a requested step that does not exist; the error lists the existing steps. Phases before
// the first step have step -1, and phases after the last step have its number plus one. A user can request these two
// numbers, although they are not steps.
func NoStep(in *schemas.Tables, p identity.Place, step int64, phases []int64) error {
	first, last := phases[0], phases[len(phases)-1]
	var steps []int64
	for i := range in.Steps {
		if s := &in.Steps[i]; s.Rank == p.Rank && s.Device == p.Device {
			steps = append(steps, s.Step)
		}
	}
	switch {
	case len(steps) > 0:
	case last < 0:
		return fmt.Errorf("no step %d on %s: the recording has no steps", step, p)
	default:
		return fmt.Errorf("no step %d on %s: phases are of steps %d to %d", step, p, first, last)
	}
	low, high := slices.Min(steps), slices.Max(steps)
	err := fmt.Errorf("no step %d on %s: steps go from %d to %d", step, p, low, high)
	if first < low {
		err = fmt.Errorf("%w; %d is what came before them", err, first)
	}
	switch {
	case last > high && first < low:
		err = fmt.Errorf("%w, %d is what came after", err, last)
	case last > high:
		err = fmt.Errorf("%w; %d is what came after", err, last)
	}
	return err
}

// phaseMoment returns the highest moment of a phase. The moment's step and phase come from the phase's row. If no event
// of the phase is as high as the state in which the phase began, the moment is the last event before the phase.
func phaseMoment(in *schemas.Tables, p identity.Place, at At) (ResolvedMoment, error) {
	var best, unknown *schemas.Phase
	steps, phases, known := map[int64]bool{}, map[string]bool{}, PhasesWithBytes(in)
	for i := range in.Phases {
		f := &in.Phases[i]
		if f.Rank != p.Rank || f.Device != p.Device {
			continue
		}
		steps[f.Step] = true
		if at.Step != nil && f.Step != *at.Step {
			continue
		}
		phases[f.Phase] = true
		if at.Phase != "" && f.Phase != at.Phase && PhaseFamily(f.Phase) != at.Phase {
			continue
		}
		switch {
		case !known(f):
			unknown = f
		case best == nil || schemas.OrZero(f.PeakBytes) > schemas.OrZero(best.PeakBytes):
			best = f
		}
	}
	switch {
	case best != nil:
	case unknown != nil:
		return ResolvedMoment{}, NoBytes(in, p, unknown)
	case len(steps) == 0:
		return ResolvedMoment{}, fmt.Errorf("%s has no phases", p)
	case len(phases) == 0:
		return ResolvedMoment{}, NoStep(in, p, *at.Step, slices.Sorted(maps.Keys(steps)))
	default:
		return ResolvedMoment{}, fmt.Errorf("no phase %q there on %s%s", at.Phase, p,
			near.Guess(at.Phase, slices.Sorted(maps.Keys(phases))))
	}
	m := ResolvedMoment{At: Moment{Event: best.PeakSeq, Phase: new(best.Phase)},
		Allocated: schemas.OrZero(best.PeakBytes)}
	if best.Step >= 0 {
		m.At.Step = new(best.Step)
	}
	if best.PeakSeq == 0 {
		m.At.Event, m.Allocated = best.EndSeq, -1
	}
	return m, nil
}

// NoBytes returns an error that says why a phase's bytes are not known.
func NoBytes(in *schemas.Tables, p identity.Place, f *schemas.Phase) error {
	for i := range in.Steps {
		if s := &in.Steps[i]; s.Rank == p.Rank && s.Device == p.Device && s.Step == f.Step && !s.Recorded {
			return fmt.Errorf("step %d on %s was not recorded: it has times, and no allocator events", f.Step, p)
		}
	}
	return fmt.Errorf("%s of step %d on %s lies in part where no events were recorded: nothing is known of its bytes",
		f.Phase, f.Step, p)
}

// MomentOf returns the moment just after event seq.
func MomentOf(in *schemas.Tables, p identity.Place, seq int64) Moment {
	m := Moment{Event: seq}
	m.Step, m.Phase = PhaseOf(in, p, seq)
	return m
}

// PhaseOf returns the step and phase of event seq. The step and phase that PhaseOf returns are nil outside steps and
// phases, and for a file that dpsight did not record, which has no marks. The results are copies: a pointer into a
// table would keep the whole table as long as a [analyze.Summary] lives.
func PhaseOf(in *schemas.Tables, p identity.Place, seq int64) (step *int64, phase *string) {
	for i := range in.Phases {
		f := &in.Phases[i]
		if f.Rank == p.Rank && f.Device == p.Device && f.BeginSeq < seq && seq <= f.EndSeq {
			if f.Step >= 0 {
				step = new(f.Step)
			} else if f.Phase == schemas.PhaseBetween && in.Manifest.Source == schemas.Imported {
				return nil, nil
			}
			return step, new(f.Phase)
		}
	}
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Rank == p.Rank && s.Device == p.Device && s.BeginSeq < seq && seq <= s.EndSeq {
			return new(s.Step), nil
		}
	}
	return nil, nil
}

// PhaseFamily returns the part of a phase's name before its dot. backward.norm and backward.grad belong to the family
// backward. A method with a single backward pass has the phase backward instead.
func PhaseFamily(phase string) string {
	family, _, _ := strings.Cut(phase, ".")
	return family
}
