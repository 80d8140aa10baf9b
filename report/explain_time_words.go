package report

import (
	"fmt"
	"math"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report/prose"
)

// rounding is the possible error of summed floats in ms: a nanosecond.
const rounding = 1e-6

// moduleTimeSentences say in which modules' forward and backward the difference of the steps lies, and how much of it
// is spent in DP hooks.
func moduleTimeSentences(e *explain.Explanation) []string {
	var s sentences
	if e.ModuleResidueMS == nil {
		return nil
	}
	a, b := &e.Runs[0], &e.Runs[1]
	terms := timeTerms(e.OutsideModules, a.Label, b.Label, func(family string) string {
		return "the " + family + " phase outside modules"
	})
	for i := range e.ModuleTimes {
		m := &e.ModuleTimes[i]
		terms = append(terms, timeTerms(&m.TimePart, a.Label, b.Label, func(family string) string {
			return "the " + family + " of " + moduleName(m.Named())
		})...)
	}
	if text := prose.Account(*e.StepDeltaMS, longer(*e.StepDeltaMS, b.Label, a.Label), "lie in", "parts", terms,
		prose.MS); text != "" {
		s.say("%s.", text)
	}
	for i, r := range e.Runs {
		s.hooks(e, r.Label, r.StepMS.Median, func(m *explain.ModuleTimePart) float64 {
			return [2]float64{m.FromHookMS, m.ToHookMS}[i]
		})
	}
	// The sentences on phases already state what the phases' medians leave unexplained.
	if r := *e.ModuleResidueMS - timing.OrZero(e.PhaseResidueMS); math.Abs(r) > rounding &&
		!prose.Below(r, *e.StepDeltaMS) {
		s.say("The modules' times do not sum to the phases' times: %s remain.",
			prose.Signed(r, prose.MS))
	}
	return s
}

// longer returns the beginning of a sentence on the difference of two steps.
func longer(delta float64, to, from string) prose.Lead {
	switch {
	case delta > 0:
		return prose.Lead{Parts: fmt.Sprintf("Of the %s that %s's step takes longer than %s's, ", prose.MS(delta), to,
			from),
			Sum: fmt.Sprintf("That %s's step takes %s longer than %s's is the sum of ", to, prose.MS(delta), from)}
	case delta < 0:
		return prose.Lead{Parts: fmt.Sprintf("Of the %s that %s's step takes less than %s's, ", prose.MS(-delta), to,
			from),
			Sum: fmt.Sprintf("That %s's step takes %s less than %s's is the sum of ", to, prose.MS(-delta), from)}
	}
	return prose.Lead{Sum: fmt.Sprintf("That %s's step takes as long as %s's is the sum of ", to, from)}
}

// timeTerms returns a module's difference split into families of phases.
func timeTerms(t *explain.TimePart, from, to string, name func(family string) string) []prose.Term {
	var out []prose.Term
	for _, f := range explain.FamiliesOf(t.Phases) {
		t := prose.Term{Name: name(f.Name), Delta: f.DeltaMS()}
		if math.Abs(t.Delta) <= rounding {
			continue
		}
		t.Lacking(f.FromMS == nil, from, f.ToMS == nil, to)
		out = append(out, t)
	}
	return out
}

// hooks adds a sentence on which part of a run's step is spent in DP hooks, and in which module most.
func (s *sentences) hooks(e *explain.Explanation, label string, step float64,
	ms func(*explain.ModuleTimePart) float64) {
	sum, most := 0.0, 0
	for i := range e.ModuleTimes {
		v := ms(&e.ModuleTimes[i])
		if sum += v; v > ms(&e.ModuleTimes[most]) {
			most = i
		}
	}
	if sum == 0 || prose.Below(sum, step) {
		return
	}
	m := &e.ModuleTimes[most]
	part := prose.MS(ms(m))
	if ms(m) == sum {
		part = "all"
	}
	s.say("In %s's step, %s%s are of norms and per-sample gradients in DP hooks, %s of them for %s.", label,
		prose.MS(sum),
		prose.OfWhole(sum, step), part, moduleName(m.Named()))
}
