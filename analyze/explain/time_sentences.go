package explain

import (
	"fmt"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/analyze/timing"
	"math"
	"slices"
)

// rounding is what sums of floats in ms may be off by: a nanosecond.
const rounding = 1e-6

// tellModuleTimes says in which modules' forward and backward the difference of the steps lies, and what DP hooks have
// of it.
func (doc *Document) tellModuleTimes(say func(string, ...any)) {
	a, b := &doc.Runs[0], &doc.Runs[1]
	terms := doc.OutsideModules.terms(a.Label, b.Label, func(family string) string {
		return "the " + family + " phase outside modules"
	})
	for i := range doc.ModuleTimes {
		m := &doc.ModuleTimes[i]
		terms = append(terms, m.terms(a.Label, b.Label, func(family string) string {
			return "the " + family + " of " + m.named().prose()
		})...)
	}
	if text := prose.Account(*doc.StepDeltaMS, longer(*doc.StepDeltaMS, b.Label, a.Label), "lie in", "parts", terms,
		prose.MS); text != "" {
		say("%s.", text)
	}
	for i, r := range doc.Runs {
		doc.tellHooks(say, r.Label, r.StepMS.Median, func(m *ModuleTimePart) float64 {
			return [2]float64{m.FromHookMS, m.ToHookMS}[i]
		})
	}
	// What the medians of the phases leave was said of the phases.
	if r := *doc.ModuleResidueMS - timing.OrZero(doc.PhaseResidueMS); math.Abs(r) > rounding &&
		!prose.Below(r, *doc.StepDeltaMS) {
		say("The times of the modules do not add up to those of the phases: %s are of neither.",
			prose.Signed(r, prose.MS))
	}
}

// longer begins a sentence on the difference of two steps.
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

// phaseFamily is what [memory.PhaseFamily] puts together: the single passes of a method of two cannot be set beside one
// of a single pass.
type phaseFamily struct {
	name     string
	members  []string
	from, to *float64
}

// familiesOf sums the phases that can be compared by their families, in the order in which these first come.
func familiesOf(phases []PhasePart) []phaseFamily {
	var out []phaseFamily
	for i := range phases {
		p := &phases[i]
		if p.DeltaMS == nil {
			continue
		}
		name := memory.PhaseFamily(p.Phase)
		k := slices.IndexFunc(out, func(f phaseFamily) bool { return f.name == name })
		if k < 0 {
			k, out = len(out), append(out, phaseFamily{name: name})
		}
		f := &out[k]
		f.members = append(f.members, p.Phase)
		timing.Plus(&f.from, p.FromMS)
		timing.Plus(&f.to, p.ToMS)
	}
	return out
}

// terms are the part's families of phases.
func (t *TimePart) terms(from, to string, name func(family string) string) []prose.Term {
	var out []prose.Term
	for _, s := range familiesOf(t.Phases) {
		t := prose.Term{Name: name(s.name), Delta: timing.OrZero(s.to) - timing.OrZero(s.from)}
		if math.Abs(t.Delta) <= rounding {
			continue
		}
		t.Lacking(s.from == nil, from, s.to == nil, to)
		out = append(out, t)
	}
	return out
}

// tellHooks says what part of a run's step passes in DP hooks, and for which module most of it does.
func (doc *Document) tellHooks(say func(string, ...any), label string, step float64,
	ms func(*ModuleTimePart) float64) {
	sum, most := 0.0, 0
	for i := range doc.ModuleTimes {
		v := ms(&doc.ModuleTimes[i])
		if sum += v; v > ms(&doc.ModuleTimes[most]) {
			most = i
		}
	}
	if sum == 0 || prose.Below(sum, step) {
		return
	}
	m := &doc.ModuleTimes[most]
	part := prose.MS(ms(m))
	if ms(m) == sum {
		part = "all"
	}
	say("In %s's step, %s%s are of norms and per-sample gradients in DP hooks, %s of them for %s.", label,
		prose.MS(sum),
		prose.OfWhole(sum, step), part, m.named().prose())
}
