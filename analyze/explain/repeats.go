package explain

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// NoteRepeats warns of runs that were taken out of more repeats of their experiments, of which around are the others:
// the time of the one that was taken may be that of none of the others, and a table of medians over all of them says
// something else.
func NoteRepeats(runs []*analyze.Summary, around []analyze.Summary) {
	times := map[string][]float64{} // of repeats, by what they repeat and their clock
	here := map[string]int{}        // how many of them are among runs
	add := func(o *analyze.Summary) string {
		if o.StepMS == nil || o.Status != schemas.StatusOK {
			return ""
		}
		key := o.StepMS.Clock + "\x00" + compare.Content(o)
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
func besides(runs []*analyze.Summary, around []analyze.Summary) (out []*analyze.Summary) {
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
		prose.MS(slices.Min(times)), prose.MS(slices.Max(times)),
		prose.MS(timing.Summarise(times, timing.OverRepeats, clock).Median))
}

// TakeRepeats gives two runs that are to be explained the times of all repeats of their experiments, of which around
// are the others: medians over them of the step and of each phase. The one that was recorded is but one of them, and
// not the fastest: a bare step takes longer in it than in a bare repeat. What modules have of a phase stays their share
// of it. Of two repeats of one experiment each keeps its own times.
func TakeRepeats(runs [2]*Input, around []analyze.Summary) {
	if compare.Content(&runs[0].Summary) == compare.Content(&runs[1].Summary) {
		NoteRepeats([]*analyze.Summary{&runs[0].Summary, &runs[1].Summary}, around)
		return
	}
	for _, d := range runs {
		d.takeRepeats(around)
	}
}

func (d *Input) takeRepeats(around []analyze.Summary) {
	if d.StepMS == nil || d.Status != schemas.StatusOK {
		return
	}
	repeats, mine := []*analyze.Summary{&d.Summary}, compare.Content(&d.Summary)
	for _, o := range besides(repeats, around) {
		if o.Status == schemas.StatusOK && compare.StepBy(o, d.StepMS.Clock) != nil && compare.Content(o) == mine {
			repeats = append(repeats, o)
		}
	}
	if len(repeats) < 2 {
		return
	}
	own, phases := d.StepMS, compare.PhaseTimesOver(repeats, d.StepMS.Clock, timing.Ranged)
	d.times = d.times.scaledTo(d.PhaseTimes, phases, len(repeats))
	d.StepMS, d.PhaseTimes = timing.Ranged(compare.Collect(repeats, func(r *analyze.Summary) *float64 {
		return compare.StepBy(r, own.Clock)
	}), timing.OverRepeats, own.Clock), phases
	d.Warnings = append(slices.Clone(d.Warnings), fmt.Sprintf("times are medians over %d repeats in the store, whose "+
		"steps take %s to %s; that of run %s takes %s",
		len(repeats), prose.MS(d.StepMS.Low), prose.MS(d.StepMS.High), d.RunID, prose.MS(own.Median)))
}

// scaledTo are the parts of a step whose phases take other times. Recompute is a part of backward, where it has no time
// of its own; see [timing.Shares.Scale].
func (t *timedParts) scaledTo(from, to map[string]timing.PhaseTime, repeats int) *timedParts {
	if t == nil {
		return nil
	}
	out := *t
	out.Repeats, out.parts = repeats, slices.Clone(t.parts)
	s := timing.Shares{Phase: map[string]float64{}}
	bare := func(times map[string]timing.PhaseTime) map[string]float64 {
		ms := map[string]float64{}
		for name, t := range times {
			if v := t.GPU.MedianOrZero(); v > 0 {
				ms[name] = v
			}
		}
		return ms
	}
	before, after := bare(from), bare(to)
	for _, p := range t.parts {
		s.Phase[p.Phase] += p.MS
	}
	if len(before) == 0 || len(after) == 0 {
		return &out
	}
	// By what the phases grow: a rank's own need not be those of the slowest rank in each step.
	were, are := s.Scale(before), s.Scale(after)
	for i := range out.parts {
		p := &out.parts[i]
		if were := were(p.Phase); were > 0 {
			p.MS *= are(p.Phase) / were
		}
	}
	return &out
}
