package explain

import (
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/repeats"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// Repeats describes the other repeats of a run: the runs of its experiment in the store that ended well.
type Repeats struct {
	Run     *analyze.Summary
	Here    int              // number of these repeats that are shown
	StepMS  *timing.Interval // interval of the medians of all these repeats
	OwnMS   float64          // median step of the run itself
	InPlace bool             // StepMS and the phases of all repeats replace the run's own
}

// NoteRepeats adds a remark to each run whose store has further repeats of the same experiment.
func NoteRepeats(found []Repeats) {
	for i := range found {
		r := &found[i]
		remark := analyze.Remark{Kind: analyze.RemarkOneOfMany, N: r.Here, StepMS: r.StepMS}
		if r.InPlace {
			remark = analyze.Remark{Kind: analyze.RemarkOverRepeats, StepMS: r.StepMS, MS: &r.OwnMS, Name: r.Run.RunID}
		}
		r.Run.Remarks = append(slices.Clone(r.Run.Remarks), remark)
	}
}

// OtherRepeats finds the runs whose experiments have further repeats in around. A single run's time may differ from the
// median over all repeats that other tables show.
func OtherRepeats(runs []*analyze.Summary, around []analyze.Summary) (found []Repeats) {
	timed := slices.DeleteFunc(slices.Concat(runs, besides(runs, around)), func(s *analyze.Summary) bool {
		return s.StepMS == nil || s.Status != schemas.StatusOK
	})
	groups := map[*analyze.Summary][]*analyze.Summary{}
	for _, group := range repeats.Experiments(timed) {
		for _, s := range group {
			groups[s] = group
		}
	}
	here := map[*analyze.Summary]bool{}
	for _, s := range runs {
		here[s] = true
	}
	for _, s := range runs {
		var ms []float64
		n := 0
		for _, o := range groups[s] {
			if o.StepMS.Clock == s.StepMS.Clock {
				ms = append(ms, o.StepMS.Median)
				if here[o] {
					n++
				}
			}
		}
		if len(ms) > n {
			found = append(found, Repeats{Run: s, Here: n,
				StepMS: timing.Ranged(ms, timing.OverRepeats, s.StepMS.Clock), OwnMS: s.StepMS.Median})
		}
	}
	return found
}

// besides returns the runs in around that are not in runs. A run that occurs twice, since stores may be copies of each
// other, is returned once.
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

// TakeRepeats replaces the step time and phase times of the two runs to explain by medians over all repeats of their
// experiments. around has the other repeats. A recorded run is not the fastest repeat: its bare steps take longer than
// in a bare run. Modules keep their share of each phase. If both runs are repeats of the same experiment, they keep
// their own times.
func TakeRepeats(runs [2]*Input, around []analyze.Summary) (found []Repeats) {
	if repeats.Same(&runs[0].Summary, &runs[1].Summary) {
		return OtherRepeats([]*analyze.Summary{&runs[0].Summary, &runs[1].Summary}, around)
	}
	for _, d := range runs {
		if r := d.takeRepeats(around); r != nil {
			found = append(found, *r)
		}
	}
	return found
}

func (d *Input) takeRepeats(around []analyze.Summary) *Repeats {
	if d.StepMS == nil || d.Status != schemas.StatusOK {
		return nil
	}
	all := []*analyze.Summary{&d.Summary}
	for _, o := range besides(all, around) {
		if o.Status == schemas.StatusOK && compare.StepBy(o, d.StepMS.Clock) != nil &&
			repeats.Same(o, &d.Summary) {
			all = append(all, o)
		}
	}
	if len(all) < 2 {
		return nil
	}
	own, phases := d.StepMS, compare.PhaseTimesOver(all, d.StepMS.Clock, timing.Ranged)
	d.times = d.times.scaledTo(d.PhaseTimes, phases, len(all))
	d.StepMS, d.PhaseTimes = timing.Ranged(compare.Collect(all, func(r *analyze.Summary) *float64 {
		return compare.StepBy(r, own.Clock)
	}), timing.OverRepeats, own.Clock), phases
	return &Repeats{Run: &d.Summary, Here: 1, StepMS: d.StepMS, OwnMS: own.Median, InPlace: true}
}

// scaledTo returns the modules' parts of a step, scaled from the phases' times in from to the phases' times in to.
// Recompute counts as a part of backward if it has no time of its own; see [timing.Shares.Scale].
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
	// The factor is the ratio of the phases' new and old times. The phases' times themselves are the slowest rank's in
	// each step, and need not be this rank's.
	were, are := s.Scale(before), s.Scale(after)
	for i := range out.parts {
		p := &out.parts[i]
		if were := were(p.Phase); were > 0 {
			p.MS *= are(p.Phase) / were
		}
	}
	return &out
}
