package analyze

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// NoteRepeats warns of runs that were taken out of more repeats of their experiments, of which around are the others:
// the time of the one that was taken may be that of none of the others, and a table of medians over all of them says
// something else.
func NoteRepeats(runs []*Summary, around []Summary) {
	times := map[string][]float64{} // of repeats, by what they repeat and their clock
	here := map[string]int{}        // how many of them are among runs
	add := func(o *Summary) string {
		if o.StepMS == nil || o.Status != schemas.StatusOK {
			return ""
		}
		key := o.StepMS.Clock + "\x00" + o.content()
		times[key] = append(times[key], o.StepMS.Median)
		return key
	}
	keys := make([]string, len(runs))
	for i, s := range runs {
		keys[i] = add(s)
		here[keys[i]]++
	}
	for _, o := range besides(runs, around) {
		add(o)
	}
	for i, s := range runs {
		if ms := times[keys[i]]; len(ms) > here[keys[i]] {
			s.Warnings = append(slices.Clone(s.Warnings), repeatsNote(here[keys[i]], ms, s.StepMS.Clock))
		}
	}
}

// besides are the runs of around that are none of runs, each once: stores may be copies of each other.
func besides(runs []*Summary, around []Summary) (out []*Summary) {
	seen := map[string]bool{}
	for _, r := range runs {
		seen[r.RunID] = true
	}
	for i := range around {
		if o := &around[i]; !seen[o.RunID] {
			seen[o.RunID] = true
			out = append(out, o)
		}
	}
	return out
}

// repeatsNote says what all repeats take of which so many were taken.
func repeatsNote(taken int, times []float64, clock string) string {
	who := "one"
	if taken > 1 {
		who = fmt.Sprint(taken)
	}
	return fmt.Sprintf("%s of %d repeats in the store: their medians go from %s to %s, median %s", who, len(times),
		msText(slices.Min(times)), msText(slices.Max(times)),
		msText(summarise(times, OverRepeats, clock).Median))
}

// TakeRepeats gives two runs that are to be explained the times of all repeats of their experiments, of which around
// are the others: medians over them of the step and of each phase. The one that was recorded is but one of them, and
// not the fastest: a bare step takes longer in it than in a bare repeat. What modules have of a phase stays their share
// of it. Of two repeats of one experiment each keeps its own times.
func TakeRepeats(runs [2]*Dissection, around []Summary) {
	if runs[0].content() == runs[1].content() {
		NoteRepeats([]*Summary{&runs[0].Summary, &runs[1].Summary}, around)
		return
	}
	for _, d := range runs {
		d.takeRepeats(around)
	}
}

func (d *Dissection) takeRepeats(around []Summary) {
	if d.StepMS == nil || d.Status != schemas.StatusOK {
		return
	}
	repeats, mine := []*Summary{&d.Summary}, d.content()
	for _, o := range besides(repeats, around) {
		if o.Status == schemas.StatusOK && o.stepBy(d.StepMS.Clock) != nil && o.content() == mine {
			repeats = append(repeats, o)
		}
	}
	if len(repeats) < 2 {
		return
	}
	own, phases := d.StepMS, phaseTimesOver(repeats, d.StepMS.Clock, ranged)
	d.times = d.times.scaledTo(d.phaseTimes, phases, len(repeats))
	d.StepMS, d.phaseTimes = ranged(collect(repeats, func(r *Summary) *float64 {
		return r.stepBy(own.Clock)
	}), OverRepeats, own.Clock), phases
	d.Warnings = append(slices.Clone(d.Warnings), fmt.Sprintf("times are medians over %d repeats in the store, whose "+
		"steps take %s to %s; that of run %s takes %s",
		len(repeats), msText(d.StepMS.Low), msText(d.StepMS.High), d.RunID, msText(own.Median)))
}

// phaseTimesOver are the times of the phases that any of some repeats has, with what summary makes of their medians. A
// phase that a repeat does not have took no time in it.
func phaseTimesOver(repeats []*Summary, clock string, summary func(values []float64, over,
	clock string) *Interval) map[string]phaseTime {
	phases := map[string]phaseTime{}
	for _, r := range repeats {
		for name := range r.phaseTimes {
			phases[name] = phaseTime{clock: clock}
		}
	}
	for name := range phases {
		over := func(of func(phaseTime) *Interval, clock string) *Interval {
			known := false
			medians := collect(repeats, func(r *Summary) *float64 {
				t, has := r.phaseTimes[name]
				v := of(t)
				known = known || v != nil
				if has && v == nil {
					return nil
				}
				return new(v.median())
			})
			if !known {
				return nil
			}
			return summary(medians, OverRepeats, clock)
		}
		phases[name] = phaseTime{clock, over(func(t phaseTime) *Interval { return t.gpu }, ClockGPU),
			over(func(t phaseTime) *Interval { return t.wall }, ClockWall)}
	}
	return phases
}

// median is that of an interval, 0 without.
func (v *Interval) median() float64 {
	if v == nil {
		return 0
	}
	return v.Median
}

// scaledTo are the parts of a step whose phases take other times. Recompute is a part of backward, where it has no time
// of its own; see [shares.scale].
func (t *timedParts) scaledTo(from, to map[string]phaseTime, repeats int) *timedParts {
	if t == nil {
		return nil
	}
	out := *t
	out.Repeats, out.parts = repeats, slices.Clone(t.parts)
	s := shares{phase: map[string]float64{}}
	bare := func(times map[string]phaseTime) map[string]float64 {
		ms := map[string]float64{}
		for name, t := range times {
			if v := t.gpu.median(); v > 0 {
				ms[name] = v
			}
		}
		return ms
	}
	before, after := bare(from), bare(to)
	for _, p := range t.parts {
		s.phase[p.phase] += p.ms
	}
	if len(before) == 0 || len(after) == 0 {
		return &out
	}
	// By what the phases grow: a rank's own need not be those of the slowest rank in each step.
	were, are := s.scale(before), s.scale(after)
	for i := range out.parts {
		p := &out.parts[i]
		if were := were(p.phase); were > 0 {
			p.ms *= are(p.phase) / were
		}
	}
	return &out
}
