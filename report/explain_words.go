package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// ExplainDocument is what "dpsight explain --format json" prints.
type ExplainDocument struct {
	explain.Differences
	// Sentences on memory, on steps and phases, and on modules' times.
	Sentences []string `json:"sentences"`
	// StepSentences are the sentences on steps, phases and modules' times.
	StepSentences []string       `json:"step_sentences"`
	Runs          [2]explain.Run `json:"runs"` // the two runs: from, to
	Warnings      []string       `json:"warnings"`
}

// NewExplainDocument puts an explanation into words.
func NewExplainDocument(e explain.Explanation) ExplainDocument {
	runs := e.Runs
	for i := range runs {
		if c := runs[i].Conservation; c != nil {
			runs[i].Conservation = new(*c)
			runs[i].Conservation.Reason = conservationReason(c)
		}
	}
	steps := append(append([]string{}, stepSentences(&e)...), moduleTimeSentences(&e)...)
	all := append(append([]string{}, peakSentences(&e)...), steps...)
	return ExplainDocument{e.Differences, all, steps, runs, explainWarnings(&e)}
}

// explainWarnings returns the warnings about both runs and about their comparison.
func explainWarnings(e *explain.Explanation) []string {
	out := []string{}
	for i, idling := range e.Idling {
		if idling != nil {
			out = append(out, e.Runs[i].Label+": "+timeWords(*idling))
		}
	}
	for i := range e.Said {
		out = append(out, e.Said[i].Place[0]+": "+comparisonWord(&e.Said[i].Remark))
	}
	return out
}

// sentences collects sentences in order. Each sentence states with a figure what was recorded, and that one thing was
// present and another was not. No sentence claims a cause.
type sentences []string

func (s *sentences) say(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

// peakSentences returns the sentences on the peaks.
func peakSentences(e *explain.Explanation) []string {
	var s sentences
	a, b := &e.Runs[0], &e.Runs[1]
	if e.PeakDeltaBytes == nil {
		return nil
	}
	early := ""
	for _, r := range []*explain.Run{b, a} { // the peak of a run that died cannot be called lower
		if r.Status != schemas.StatusOK {
			early += fmt.Sprintf("; %s ended early (%s): its peak is of what it did until then", r.Label, r.Status)
		}
	}
	s.say("%s%s.", prose.Comparison("The peak of "+b.Label, "is", float64(*b.PeakBytes), float64(*a.PeakBytes),
		"that of "+a.Label, prose.Bytes), early)
	for _, r := range e.Runs {
		switch r.Source {
		case schemas.Predicted:
			s.say("The peak of %s is %s, not measured.", r.Label, r.Badge())
		case schemas.Imported:
			s.say("The peak of %s is from a file that dpsight did not record.", r.Label)
		}
	}
	s.categories(e)
	s.births(e)
	for i, bytes := range e.Kept {
		if bytes > 0 {
			s.say("At %s's peak, %s are gradients that zero_grad kept and that nothing has written since.",
				e.Runs[i].Label, units.MiB(bytes))
		}
	}
	switch {
	case e.FreedDeltaBytes == nil || e.Kept == [2]int64{}:
	case *e.FreedDeltaBytes == 0:
		s.say("If both loops freed .grad, the peaks would be equal.")
	default:
		s.say("If both loops freed .grad, the peaks would differ by %s.", prose.SignedMiB(*e.FreedDeltaBytes))
	}
	for i, h := range e.Hooks {
		if h == nil {
			continue
		}
		cost := "their extra cost is " + units.MiB(0)
		if h.ExtraBytes > 0 {
			cost = "hooks alone hold " + units.MiB(h.ExtraBytes)
		}
		s.say("Of the %s that DP hooks hold for backward at %s's peak, %s are also held by others (%s by "+
			"autograd): %s.", units.MiB(h.HeldBytes), e.Runs[i].Label, units.MiB(h.SharedBytes),
			units.MiB(h.AutogradBytes), cost)
	}
	if e.HeldByHooks != nil {
		s.say("At %s's peak %s.", b.Label, heldWords(e.HeldByHooks, a.Label))
	}
	return s
}

// stepSentences returns the sentences on the steps and their phases.
func stepSentences(e *explain.Explanation) []string {
	var s sentences
	a, b := &e.Runs[0], &e.Runs[1]
	if e.StepDeltaMS == nil {
		return nil
	}
	clock := "wall time"
	if b.StepMS.Clock == timing.ClockGPU {
		clock = "GPU time"
	}
	of := fmt.Sprintf("medians of %d and %s", b.StepMS.N, units.Plural(a.StepMS.N, "step", "steps"))
	switch {
	case a.StepMS.Over == timing.OverRepeats || b.StepMS.Over == timing.OverRepeats:
		of = "medians of " + over(b.StepMS) + " and of " + over(a.StepMS)
	case a.StepMS.N == b.StepMS.N:
		of = "medians of " + units.Plural(a.StepMS.N, "step each", "steps each")
	}
	s.say("%s: %s, in %s.", prose.Comparison("A step of "+b.Label, "takes", b.StepMS.Median, a.StepMS.Median,
		"one of "+a.Label, prose.MS), of, clock)
	if a.StepMS.Over == timing.OverRepeats && b.StepMS.Over == timing.OverRepeats && a.StepMS.Low <= b.StepMS.High &&
		b.StepMS.Low <= a.StepMS.High {
		s.say("The ranges of the repeats overlap: which of the two is faster depends on the repeat.")
	}
	s.phases(e)
	if e.ModuleResidueMS == nil {
		s.say("The difference of the steps is not known by module: %s.", untimedModules(e))
	}
	return s
}

// over says what an interval covers: so many steps, or repeats with their range.
func over(v *timing.Interval) string {
	if v.Over == timing.OverRepeats {
		return fmt.Sprintf("%d repeats (%s to %s)", v.N, prose.MS(v.Low), prose.MS(v.High))
	}
	return units.Plural(v.N, "step", "steps")
}

// untimedModules says why the difference of the steps cannot be split by module.
func untimedModules(e *explain.Explanation) string {
	without := e.Untimed()
	if len(without) == 0 {
		return "steps are compared in wall time, and modules are timed on the GPU"
	}
	return "there are no times of modules of " + prose.JoinWords(without)
}

// categories adds sentences on which categories make the difference of the peaks and, for the larger ones, which
// modules.
func (s *sentences) categories(e *explain.Explanation) {
	a, b := &e.Runs[0], &e.Runs[1]
	if len(e.Categories) == 0 {
		var without []string
		for _, r := range e.Runs {
			if r.At == nil {
				without = append(without, r.Label)
			}
		}
		s.say("The difference is not broken down: there is no breakdown of the peak of %s.", prose.JoinWords(without))
		return
	}
	if a.At.Phase == nil && b.At.Phase == nil && a.Source == schemas.Imported && b.Source == schemas.Imported {
		s.say("Each category is counted at its own run's peak.")
	} else {
		s.say("%s peaks %s, %s %s; each category is counted at its own run's peak.", b.Label, when(b.At), a.Label,
			when(a.At))
	}
	delta := float64(*e.PeakDeltaBytes)
	var terms []prose.Term
	for i := range e.Categories {
		c := &e.Categories[i]
		t := prose.Term{Name: prose.Words(c.Category), Delta: float64(c.DeltaBytes)}
		t.Lacking(c.FromBytes == 0, a.Label+"'s peak", c.ToBytes == 0, b.Label+"'s peak")
		terms = append(terms, t)
	}
	if text := prose.Account(delta, prose.Excess(delta, b.Label+"'s peak", a.Label+"'s", prose.Bytes), "are",
		"categories", terms,
		prose.Bytes); text != "" {
		s.say("%s.", text)
	}
	if !a.Modules.Any() && !b.Modules.Any() {
		return // imported runs have no modules at all
	}
	largest := slices.Clone(e.Categories)
	slices.SortStableFunc(largest, func(x, y explain.CategoryPart) int {
		return cmp.Compare(prose.Magnitude(y.DeltaBytes), prose.Magnitude(x.DeltaBytes))
	})
	whole := max(prose.Magnitude(*e.PeakDeltaBytes), prose.Magnitude(largest[0].DeltaBytes))
	for _, c := range largest[:min(3, len(largest))] {
		if c.DeltaBytes == 0 || 20*prose.Magnitude(c.DeltaBytes) < whole {
			break
		}
		var terms []prose.Term
		for i := range c.Modules {
			terms = append(terms, prose.Term{Name: moduleName(&c.Modules[i]), Delta: float64(c.Modules[i].DeltaBytes)})
		}
		way := "more"
		if c.DeltaBytes < 0 {
			way = "less"
		}
		lead := prose.Lead{Parts: fmt.Sprintf("Of the %s %s of %s at %s's peak, ",
			units.MiB(prose.Magnitude(c.DeltaBytes)), way,
			prose.Words(c.Category), b.Label),
			Sum: fmt.Sprintf("The %s %s of %s at %s's peak are the sum of ", units.MiB(prose.Magnitude(c.DeltaBytes)),
				way,
				prose.Words(c.Category), b.Label)}
		s.say("%s.", prose.Account(float64(c.DeltaBytes), lead, "belong to", "modules", terms, prose.Bytes))
	}
}

// phases adds sentences on which phases make the difference of the steps.
func (s *sentences) phases(e *explain.Explanation) {
	a, b := &e.Runs[0], &e.Runs[1]
	var terms []prose.Term
	for i := range e.Phases {
		p := &e.Phases[i]
		if p.DeltaMS == nil {
			continue
		}
		t := prose.Term{Name: p.Phase, Delta: *p.DeltaMS}
		t.Lacking(p.FromMS == nil, a.Label, p.ToMS == nil, b.Label)
		terms = append(terms, t)
	}
	if len(terms) == 0 {
		s.say("The difference is not known by phase.")
		return
	}
	if text := prose.Account(*e.StepDeltaMS, prose.Excess(*e.StepDeltaMS, b.Label+"'s step", a.Label+"'s",
		prose.MS), "are",
		"phases", terms, prose.MS); text != "" {
		s.say("%s.", text)
	}
	for _, f := range explain.FamiliesOf(e.Phases) {
		if len(f.Members) > 1 && !prose.Below(f.DeltaMS(), *e.StepDeltaMS) {
			s.say("%s.", prose.Comparison("All "+f.Name+" phases ("+prose.JoinWords(f.Members)+") of "+b.Label, "take",
				timing.OrZero(f.ToMS), timing.OrZero(f.FromMS),
				"those of "+a.Label, prose.MS))
		}
	}
	if r := *e.PhaseResidueMS; !prose.Below(r, *e.StepDeltaMS) {
		s.say("The phases' medians do not sum to the steps' medians: %s are in no phase.",
			prose.Signed(r, prose.MS))
	}
}

// moduleName returns what sentences call a module's part.
func moduleName(m *explain.ModulePart) string {
	switch {
	case m.Module == nil:
		return "no known module"
	case *m.Module == schemas.SharedByModules:
		return "all modules together"
	case m.Modules > 1:
		return fmt.Sprintf("%s (%d modules)", *m.Module, m.Modules)
	case grouping.Numbered(*m.Module):
		return "module " + *m.Module
	}
	return strings.Trim(*m.Module, "()")
}

// birthName returns what sentences call the blocks allocated in a phase.
func birthName(b *explain.BirthPart) string {
	switch {
	case b.Phase == nil:
		return "blocks born in no known phase"
	case *b.Phase == grouping.BeforeRecording || *b.Phase == grouping.BetweenWindows:
		return "blocks born " + *b.Phase
	}
	return "blocks born in " + *b.Phase
}

// births adds sentences on the phases in which the blocks were allocated that make the difference of the peaks.
func (s *sentences) births(e *explain.Explanation) {
	a, b := &e.Runs[0], &e.Runs[1]
	var terms []prose.Term
	for i := range e.MemoryPhases {
		p := &e.MemoryPhases[i]
		t := prose.Term{Name: birthName(p), Delta: float64(p.DeltaBytes)}
		t.Lacking(p.FromBytes == 0, a.Label+"'s peak", p.ToBytes == 0, b.Label+"'s peak")
		terms = append(terms, t)
	}
	delta := float64(*e.PeakDeltaBytes)
	if text := prose.Account(delta, prose.Excess(delta, b.Label+"'s peak", a.Label+"'s", prose.Bytes), "are of",
		"phases", terms,
		prose.Bytes); text != "" {
		s.say("%s.", text)
	}
}
