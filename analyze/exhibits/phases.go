package exhibits

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// leastPhase is the share of a step's time below which a phase has no row of its own, unless readers expect the phase
// or it sets a peak.
const leastPhase = 0.01

// Phases is a table of the phases of a step, with their peaks and times, family by family.
type Phases struct {
	Entries []Entry
	Rows    []PhaseRow // rows in the order in which phases run, passes below their family
	// Rest is the time of a step that no row covers, in ms. An entry's Rest is nil if the entry has no times, or if the
	// rows sum to the step's time or more, as medians of parts can.
	Rest []*float64
	Step []*float64 // step time in ms, by entry
	// Timed is true if any entry has times, Sized if any has bytes.
	Timed, Sized bool
}

// A PhaseRow has the peak and the time of one phase in each entry.
type PhaseRow struct {
	Phase string
	Pass  bool     // one of several passes of the phase in the row above
	Peaks []*int64 // bytes by entry; nil = the entry has no such phase
	MS    []*float64
}

// order is the order of the phases in a training step.
var order = []string{schemas.PhaseForward, schemas.PhaseBackward, schemas.PhaseBackwardNorm, schemas.PhaseBackwardGrad,
	schemas.PhaseClip, schemas.PhaseAccumulate, schemas.PhaseNoise, schemas.PhaseOptimizer}

// PhasesOf tabulates the phases of a group.
func PhasesOf(g *Group) Phases {
	var p Phases
	for _, e := range g.Entries {
		if e.Status == schemas.StatusOK && (len(e.PhaseTimes) > 0 || len(e.PhasePeaks()) > 0) {
			p.Entries = append(p.Entries, e)
		}
	}
	p.Rest, p.Step = make([]*float64, len(p.Entries)), make([]*float64, len(p.Entries))
	families := p.families()
	for _, family := range families {
		if !p.worth(family) {
			continue
		}
		p.Rows = append(p.Rows, p.row(family, false, func(phase string) bool { return memory.PhaseFamily(phase) == family }))
		for _, pass := range p.passes(family) {
			p.Rows = append(p.Rows, p.row(pass, true, func(phase string) bool { return phase == pass }))
		}
	}
	for i, e := range p.Entries {
		if e.StepMS == nil {
			continue
		}
		p.Step[i] = &e.StepMS.Median
		if len(e.PhaseTimes) == 0 {
			continue
		}
		rest := *p.Step[i]
		for _, r := range p.Rows {
			if !r.Pass && r.MS[i] != nil {
				rest -= *r.MS[i]
			}
		}
		if rest > 0 {
			p.Rest[i] = &rest
		}
	}
	return p
}

// inStep reports whether a phase is part of a step.
func inStep(phase string) bool {
	return memory.PhaseFamily(phase) != memory.PhaseFamily(schemas.PhaseSetupModel) && phase != schemas.PhaseEval
}

// families returns the phase families of all entries: first in the order of a step, then the script's own.
func (p *Phases) families() (families []string) {
	for _, known := range order {
		if f := memory.PhaseFamily(known); p.has(f) && !slices.Contains(families, f) {
			families = append(families, f)
		}
	}
	for _, e := range p.Entries {
		for _, r := range e.Phases.Phases {
			if f := memory.PhaseFamily(r.Phase); inStep(r.Phase) && !slices.Contains(families, f) {
				families = append(families, f)
			}
		}
	}
	return families
}

func (p *Phases) has(family string) bool {
	return slices.ContainsFunc(p.Entries, func(e Entry) bool {
		return slices.ContainsFunc(phasesOf(&e), func(phase string) bool { return memory.PhaseFamily(phase) == family })
	})
}

func phasesOf(e *Entry) (names []string) {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(identity.SortedKeys(e.PhasePeaks()),
		identity.SortedKeys(e.PhaseTimes)))))
}

// worth reports whether a phase family gets a row: readers expect it, as figures of a step name it, or it sets some
// entry's peak, or it takes at least a hundredth of a step.
func (p *Phases) worth(family string) bool {
	if slices.Contains(order, family) {
		return true
	}
	for _, e := range p.Entries {
		peak, time := inFamily(&e, func(phase string) bool { return memory.PhaseFamily(phase) == family })
		if peak != nil && e.PeakBytes != nil && *peak == *e.PeakBytes ||
			time != nil && e.StepMS != nil && *time >= leastPhase*e.StepMS.Median {
			return true
		}
	}
	return false
}

// passes returns the phases of a family if some entry runs the family in several passes.
func (p *Phases) passes(family string) (passes []string) {
	for _, e := range p.Entries {
		for _, phase := range phasesOf(&e) {
			if phase != family && memory.PhaseFamily(phase) == family && !slices.Contains(passes, phase) {
				passes = append(passes, phase)
			}
		}
	}
	slices.SortStableFunc(passes, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	return passes
}

func (p *Phases) row(name string, pass bool, is func(phase string) bool) PhaseRow {
	r := PhaseRow{Phase: name, Pass: pass}
	for i := range p.Entries {
		peak, time := inFamily(&p.Entries[i], is)
		r.Peaks, r.MS = append(r.Peaks, peak), append(r.MS, time)
		p.Sized, p.Timed = p.Sized || peak != nil, p.Timed || time != nil
	}
	return r
}

// inFamily returns the highest allocated in those phases of an entry that is accepts, and the sum of their times.
func inFamily(e *Entry, is func(phase string) bool) (peak *int64, ms *float64) {
	for phase, bytes := range e.PhasePeaks() {
		if is(phase) && (peak == nil || bytes > *peak) {
			peak = &bytes
		}
	}
	for _, phase := range identity.SortedKeys(e.PhaseTimes) { // sorted, since sums of floats depend on the order
		if known := e.PhaseTimes[phase].Known(); is(phase) && known != nil {
			sum := known.Median
			if ms != nil {
				sum += *ms
			}
			ms = &sum
		}
	}
	return peak, ms
}

// Highest returns the index of the row with an entry's highest peak, and -1 if there is none. A pass is preferred to
// its family.
func (p *Phases) Highest(entry int) int {
	best := -1
	for i, r := range p.Rows {
		if v := r.Peaks[entry]; v != nil && (best < 0 || *v > *p.Rows[best].Peaks[entry] ||
			*v == *p.Rows[best].Peaks[entry] && r.Pass) {
			best = i
		}
	}
	return best
}

// Longest returns the index of the row with an entry's longest time, and -1 if there is none. Of a family with several
// passes, only single passes count.
func (p *Phases) Longest(entry int) int {
	best := -1
	for i, r := range p.Rows {
		v := r.MS[entry]
		if v == nil || !r.Pass && i+1 < len(p.Rows) && p.Rows[i+1].Pass && p.Divided(i, entry) {
			continue
		}
		if best < 0 || *v > *p.Rows[best].MS[entry] {
			best = i
		}
	}
	return best
}

// Divided reports whether the entry runs the family of a row in passes.
func (p *Phases) Divided(family, entry int) bool {
	for _, r := range p.Rows[family+1:] {
		if !r.Pass {
			return false
		}
		if r.MS[entry] != nil {
			return true
		}
	}
	return false
}
