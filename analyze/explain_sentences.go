package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// tell writes the sentences. Each says what was recorded, with its figure: that one thing is there and another is not,
// and never that it is the reason.
func (doc *ExplainDocument) tell(from, to *Summary, o *OverheadRun) {
	a, b := &doc.Runs[0], &doc.Runs[1]
	say := func(format string, args ...any) { doc.Sentences = append(doc.Sentences, fmt.Sprintf(format, args...)) }
	if doc.PeakDeltaBytes != nil {
		early := ""
		for _, r := range []*ExplainedRun{b, a} { // a peak that a run died before is no less than another
			if r.Status != schemas.StatusOK {
				early += fmt.Sprintf("; %s ended early (%s): its peak is of what it did until then", r.Label, r.Status)
			}
		}
		say("%s%s.", comparison("The peak of "+b.Label, "is", float64(*b.PeakBytes), float64(*a.PeakBytes),
			"that of "+a.Label, bytesText), early)
		for _, r := range doc.Runs {
			switch r.Source {
			case schemas.Predicted:
				say("The peak of %s is %s, not measured.", r.Label, r.Mark())
			case schemas.Imported:
				say("The peak of %s is from a file that dpsight did not record.", r.Label)
			}
		}
		doc.tellCategories(say)
		doc.tellBirths(say)
		kept := false
		for i, s := range []*Summary{from, to} {
			if s.Kept != nil && s.Kept.AtPeakBytes > 0 {
				kept = true
				say("At %s's peak %s are of gradients that zero_grad kept and that nothing had written to since.",
					doc.Runs[i].Label, mib(s.Kept.AtPeakBytes))
			}
		}
		switch {
		case o.FreedDeltaBytes == nil || !kept:
		case *o.FreedDeltaBytes == 0:
			say("If both loops freed .grad, the peaks would be equal.")
		default:
			say("If both loops freed .grad, the peaks would differ by %s.", signedMiB(*o.FreedDeltaBytes))
		}
		for i, s := range []*Summary{from, to} {
			if d := s.Main(); s.BrokenDown() {
				if h := d.SharedHookActivations(); h != nil {
					cost := "their extra cost is " + mib(0)
					if h.ExtraBytes > 0 {
						cost = "hooks alone hold " + mib(h.ExtraBytes)
					}
					say("Of the %s that DP hooks hold for backward at %s's peak, %s are also held by others (%s by "+
						"autograd): %s.",
						mib(h.HeldBytes), doc.Runs[i].Label, mib(h.SharedBytes), mib(h.AutogradBytes), cost)
				}
			}
		}
	}
	if text := hooksInsteadOfAutograd(from, to, a.Label); doc.PeakDeltaBytes != nil && text != "" {
		say("At %s's peak %s.", b.Label, text)
	}
	doc.memory = len(doc.Sentences)
	doc.phases = doc.memory
	if doc.StepDeltaMS == nil {
		return
	}
	clock := "wall time"
	if b.StepMS.Clock == ClockGPU {
		clock = "GPU time"
	}
	of := fmt.Sprintf("medians of %d and %s", b.StepMS.N, plural(a.StepMS.N, "step", "steps"))
	switch {
	case a.StepMS.Over == OverRepeats || b.StepMS.Over == OverRepeats:
		of = "medians of " + b.StepMS.over() + " and of " + a.StepMS.over()
	case a.StepMS.N == b.StepMS.N:
		of = "medians of " + plural(a.StepMS.N, "step each", "steps each")
	}
	say("%s: %s, in %s.", comparison("A step of "+b.Label, "takes", b.StepMS.Median, a.StepMS.Median, "one of "+a.Label,
		msText), of, clock)
	if a.StepMS.Over == OverRepeats && b.StepMS.Over == OverRepeats && a.StepMS.Low <= b.StepMS.High &&
		b.StepMS.Low <= a.StepMS.High {
		say("The ranges of the repeats overlap: which of the two is faster depends on the repeat.")
	}
	doc.tellPhases(say)
	if doc.ModuleResidueMS == nil {
		say("The difference of the steps is not known by module: %s.", doc.untimedModules())
		doc.phases = len(doc.Sentences)
		return
	}
	doc.phases = len(doc.Sentences)
	doc.tellModuleTimes(say)
}

// over says what an interval is of: so many steps, or repeats and their range.
func (v *Interval) over() string {
	if v.Over == OverRepeats {
		return fmt.Sprintf("%d repeats (%s to %s)", v.N, msText(v.Low), msText(v.High))
	}
	return plural(v.N, "step", "steps")
}

// untimedModules says why the difference of the steps is not known by module.
func (doc *ExplainDocument) untimedModules() string {
	var without []string
	for _, r := range doc.Runs {
		if r.ModuleTiming == nil {
			without = append(without, r.Label)
		}
	}
	if len(without) == 0 {
		return "steps are compared in wall time, and modules are timed on the GPU"
	}
	return "there are no times of modules of " + joinWords(without)
}

// tellCategories says which categories make the difference of the peaks, and for the larger ones which modules.
func (doc *ExplainDocument) tellCategories(say func(string, ...any)) {
	a, b := &doc.Runs[0], &doc.Runs[1]
	if len(doc.Categories) == 0 {
		var without []string
		for _, r := range doc.Runs {
			if r.At == nil {
				without = append(without, r.Label)
			}
		}
		say("The difference is not broken down: there is no breakdown of the peak of %s.", joinWords(without))
		return
	}
	say("%s peaks %s, %s %s; each category is counted at its own run's peak.", b.Label, when(b.At), a.Label, when(a.At))
	delta := float64(*doc.PeakDeltaBytes)
	var terms []term
	for i := range doc.Categories {
		c := &doc.Categories[i]
		t := term{name: words(c.Category), delta: float64(c.DeltaBytes)}
		t.lacking(c.FromBytes == 0, a.Label+"'s peak", c.ToBytes == 0, b.Label+"'s peak")
		terms = append(terms, t)
	}
	if text := account(delta, excess(delta, b.Label+"'s peak", a.Label+"'s", bytesText), "are", "categories", terms,
		bytesText); text != "" {
		say("%s.", text)
	}
	if !a.Modules.any() && !b.Modules.any() {
		return // imported runs have no modules at all
	}
	largest := slices.Clone(doc.Categories)
	slices.SortStableFunc(largest, func(x, y ExplainedCategory) int {
		return cmp.Compare(magnitude(y.DeltaBytes), magnitude(x.DeltaBytes))
	})
	whole := max(magnitude(*doc.PeakDeltaBytes), magnitude(largest[0].DeltaBytes))
	for _, c := range largest[:min(3, len(largest))] {
		if c.DeltaBytes == 0 || 20*magnitude(c.DeltaBytes) < whole {
			break
		}
		var terms []term
		for i := range c.Modules {
			terms = append(terms, term{name: c.Modules[i].prose(), delta: float64(c.Modules[i].DeltaBytes)})
		}
		way := "more"
		if c.DeltaBytes < 0 {
			way = "less"
		}
		lead := lead{fmt.Sprintf("Of the %s %s of %s at %s's peak, ", mib(magnitude(c.DeltaBytes)), way,
			words(c.Category), b.Label),
			fmt.Sprintf("The %s %s of %s at %s's peak are the sum of ", mib(magnitude(c.DeltaBytes)), way,
				words(c.Category), b.Label)}
		say("%s.", account(float64(c.DeltaBytes), lead, "belong to", "modules", terms, bytesText))
	}
}

func (doc *ExplainDocument) tellPhases(say func(string, ...any)) {
	a, b := &doc.Runs[0], &doc.Runs[1]
	var terms []term
	for i := range doc.Phases {
		p := &doc.Phases[i]
		if p.DeltaMS == nil {
			continue
		}
		t := term{name: p.Phase, delta: *p.DeltaMS}
		t.lacking(p.FromMS == nil, a.Label, p.ToMS == nil, b.Label)
		terms = append(terms, t)
	}
	if len(terms) == 0 {
		say("The difference is not known by phase.")
		return
	}
	if text := account(*doc.StepDeltaMS, excess(*doc.StepDeltaMS, b.Label+"'s step", a.Label+"'s", msText), "are",
		"phases", terms, msText); text != "" {
		say("%s.", text)
	}
	for _, f := range familiesOf(doc.Phases) {
		if to, from := orZero(f.to), orZero(f.from); len(f.members) > 1 && !below(to-from, *doc.StepDeltaMS) {
			say("%s.", comparison("All "+f.name+" phases ("+joinWords(f.members)+") of "+b.Label, "take", to, from,
				"those of "+a.Label, msText))
		}
	}
	if r := *doc.PhaseResidueMS; !below(r, *doc.StepDeltaMS) {
		say("The medians of the phases do not add up to those of the steps: %s are of no phase.", signed(r, msText))
	}
}

// prose is what sentences call the modules.
func (m *ExplainedModule) prose() string {
	switch {
	case m.Module == nil:
		return "no known module"
	case *m.Module == SharedByModules:
		return "all modules together"
	case m.Modules > 1:
		return fmt.Sprintf("%s (%d modules)", *m.Module, m.Modules)
	case numbered(*m.Module):
		return "module " + *m.Module
	}
	return strings.Trim(*m.Module, "()")
}

// moduleWords is what sentences call a module: by its class too where the path is but a number, as in an nn.Sequential.
func moduleWords(m *schemas.Module) string {
	if path := modulePath(m, 0); !numbered(path) {
		return path
	}
	return "module " + m.Path + " (" + m.Class + ")"
}

// numbered is whether a module's path has no name in it: a digit alone says nothing in a sentence.
func numbered(path string) bool { return strings.Trim(path, "0123456789.") == "" }

// when is the moment of a peak.
func when(m *Moment) string {
	switch {
	case m == nil || m.Phase == nil && m.Step == nil:
		return "outside the steps"
	case m.Step == nil && *m.Phase == schemas.PhaseBetween:
		return "outside all phases"
	case m.Step == nil:
		return "in " + *m.Phase
	case m.Phase == nil:
		return fmt.Sprintf("in step %d", *m.Step)
	case *m.Phase == schemas.PhaseBetween:
		return fmt.Sprintf("outside all phases of step %d", *m.Step)
	}
	return fmt.Sprintf("in %s of step %d", *m.Phase, *m.Step)
}
