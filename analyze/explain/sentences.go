package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// tell writes the sentences. Each says what was recorded, with its figure: that one thing is there and another is not,
// and never that it is the reason.
func (doc *Document) tell(from, to *analyze.Summary, o *compare.OverheadRun) {
	a, b := &doc.Runs[0], &doc.Runs[1]
	say := func(format string, args ...any) { doc.Sentences = append(doc.Sentences, fmt.Sprintf(format, args...)) }
	if doc.PeakDeltaBytes != nil {
		early := ""
		for _, r := range []*Run{b, a} { // a peak that a run died before is no less than another
			if r.Status != schemas.StatusOK {
				early += fmt.Sprintf("; %s ended early (%s): its peak is of what it did until then", r.Label, r.Status)
			}
		}
		say("%s%s.", prose.Comparison("The peak of "+b.Label, "is", float64(*b.PeakBytes), float64(*a.PeakBytes),
			"that of "+a.Label, prose.Bytes), early)
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
		for i, s := range []*analyze.Summary{from, to} {
			if s.Kept != nil && s.Kept.AtPeakBytes > 0 {
				kept = true
				say("At %s's peak %s are of gradients that zero_grad kept and that nothing had written to since.",
					doc.Runs[i].Label, prose.MiB(s.Kept.AtPeakBytes))
			}
		}
		switch {
		case o.FreedDeltaBytes == nil || !kept:
		case *o.FreedDeltaBytes == 0:
			say("If both loops freed .grad, the peaks would be equal.")
		default:
			say("If both loops freed .grad, the peaks would differ by %s.", prose.SignedMiB(*o.FreedDeltaBytes))
		}
		for i, s := range []*analyze.Summary{from, to} {
			if d := s.Main(); s.BrokenDown() {
				if h := d.SharedHookActivations(); h != nil {
					cost := "their extra cost is " + prose.MiB(0)
					if h.ExtraBytes > 0 {
						cost = "hooks alone hold " + prose.MiB(h.ExtraBytes)
					}
					say("Of the %s that DP hooks hold for backward at %s's peak, %s are also held by others (%s by "+
						"autograd): %s.",
						prose.MiB(h.HeldBytes), doc.Runs[i].Label, prose.MiB(h.SharedBytes), prose.MiB(h.AutogradBytes),
						cost)
				}
			}
		}
	}
	if text := compare.HooksInsteadOfAutograd(from, to, a.Label); doc.PeakDeltaBytes != nil && text != "" {
		say("At %s's peak %s.", b.Label, text)
	}
	doc.memory = len(doc.Sentences)
	doc.phases = doc.memory
	if doc.StepDeltaMS == nil {
		return
	}
	clock := "wall time"
	if b.StepMS.Clock == timing.ClockGPU {
		clock = "GPU time"
	}
	of := fmt.Sprintf("medians of %d and %s", b.StepMS.N, prose.Plural(a.StepMS.N, "step", "steps"))
	switch {
	case a.StepMS.Over == timing.OverRepeats || b.StepMS.Over == timing.OverRepeats:
		of = "medians of " + over(b.StepMS) + " and of " + over(a.StepMS)
	case a.StepMS.N == b.StepMS.N:
		of = "medians of " + prose.Plural(a.StepMS.N, "step each", "steps each")
	}
	say("%s: %s, in %s.", prose.Comparison("A step of "+b.Label, "takes", b.StepMS.Median, a.StepMS.Median,
		"one of "+a.Label,
		prose.MS), of, clock)
	if a.StepMS.Over == timing.OverRepeats && b.StepMS.Over == timing.OverRepeats && a.StepMS.Low <= b.StepMS.High &&
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
func over(v *timing.Interval) string {
	if v.Over == timing.OverRepeats {
		return fmt.Sprintf("%d repeats (%s to %s)", v.N, prose.MS(v.Low), prose.MS(v.High))
	}
	return prose.Plural(v.N, "step", "steps")
}

// untimedModules says why the difference of the steps is not known by module.
func (doc *Document) untimedModules() string {
	var without []string
	for _, r := range doc.Runs {
		if r.ModuleTiming == nil {
			without = append(without, r.Label)
		}
	}
	if len(without) == 0 {
		return "steps are compared in wall time, and modules are timed on the GPU"
	}
	return "there are no times of modules of " + prose.JoinWords(without)
}

// tellCategories says which categories make the difference of the peaks, and for the larger ones which modules.
func (doc *Document) tellCategories(say func(string, ...any)) {
	a, b := &doc.Runs[0], &doc.Runs[1]
	if len(doc.Categories) == 0 {
		var without []string
		for _, r := range doc.Runs {
			if r.At == nil {
				without = append(without, r.Label)
			}
		}
		say("The difference is not broken down: there is no breakdown of the peak of %s.", prose.JoinWords(without))
		return
	}
	say("%s peaks %s, %s %s; each category is counted at its own run's peak.", b.Label, memory.When(b.At), a.Label,
		memory.When(a.At))
	delta := float64(*doc.PeakDeltaBytes)
	var terms []prose.Term
	for i := range doc.Categories {
		c := &doc.Categories[i]
		t := prose.Term{Name: prose.Words(c.Category), Delta: float64(c.DeltaBytes)}
		t.Lacking(c.FromBytes == 0, a.Label+"'s peak", c.ToBytes == 0, b.Label+"'s peak")
		terms = append(terms, t)
	}
	if text := prose.Account(delta, prose.Excess(delta, b.Label+"'s peak", a.Label+"'s", prose.Bytes), "are",
		"categories", terms,
		prose.Bytes); text != "" {
		say("%s.", text)
	}
	if !a.Modules.Any() && !b.Modules.Any() {
		return // imported runs have no modules at all
	}
	largest := slices.Clone(doc.Categories)
	slices.SortStableFunc(largest, func(x, y CategoryPart) int {
		return cmp.Compare(prose.Magnitude(y.DeltaBytes), prose.Magnitude(x.DeltaBytes))
	})
	whole := max(prose.Magnitude(*doc.PeakDeltaBytes), prose.Magnitude(largest[0].DeltaBytes))
	for _, c := range largest[:min(3, len(largest))] {
		if c.DeltaBytes == 0 || 20*prose.Magnitude(c.DeltaBytes) < whole {
			break
		}
		var terms []prose.Term
		for i := range c.Modules {
			terms = append(terms, prose.Term{Name: c.Modules[i].prose(), Delta: float64(c.Modules[i].DeltaBytes)})
		}
		way := "more"
		if c.DeltaBytes < 0 {
			way = "less"
		}
		lead := prose.Lead{Parts: fmt.Sprintf("Of the %s %s of %s at %s's peak, ",
			prose.MiB(prose.Magnitude(c.DeltaBytes)), way,
			prose.Words(c.Category), b.Label),
			Sum: fmt.Sprintf("The %s %s of %s at %s's peak are the sum of ", prose.MiB(prose.Magnitude(c.DeltaBytes)),
				way,
				prose.Words(c.Category), b.Label)}
		say("%s.", prose.Account(float64(c.DeltaBytes), lead, "belong to", "modules", terms, prose.Bytes))
	}
}

func (doc *Document) tellPhases(say func(string, ...any)) {
	a, b := &doc.Runs[0], &doc.Runs[1]
	var terms []prose.Term
	for i := range doc.Phases {
		p := &doc.Phases[i]
		if p.DeltaMS == nil {
			continue
		}
		t := prose.Term{Name: p.Phase, Delta: *p.DeltaMS}
		t.Lacking(p.FromMS == nil, a.Label, p.ToMS == nil, b.Label)
		terms = append(terms, t)
	}
	if len(terms) == 0 {
		say("The difference is not known by phase.")
		return
	}
	if text := prose.Account(*doc.StepDeltaMS, prose.Excess(*doc.StepDeltaMS, b.Label+"'s step", a.Label+"'s",
		prose.MS), "are",
		"phases", terms, prose.MS); text != "" {
		say("%s.", text)
	}
	for _, f := range familiesOf(doc.Phases) {
		if to, from := timing.OrZero(f.to), timing.OrZero(f.from); len(f.members) > 1 &&
			!prose.Below(to-from, *doc.StepDeltaMS) {
			say("%s.", prose.Comparison("All "+f.name+" phases ("+prose.JoinWords(f.members)+") of "+b.Label, "take",
				to, from,
				"those of "+a.Label, prose.MS))
		}
	}
	if r := *doc.PhaseResidueMS; !prose.Below(r, *doc.StepDeltaMS) {
		say("The medians of the phases do not add up to those of the steps: %s are of no phase.",
			prose.Signed(r, prose.MS))
	}
}

// prose is what sentences call the modules.
func (m *ModulePart) prose() string {
	switch {
	case m.Module == nil:
		return "no known module"
	case *m.Module == memory.SharedByModules:
		return "all modules together"
	case m.Modules > 1:
		return fmt.Sprintf("%s (%d modules)", *m.Module, m.Modules)
	case grouping.Numbered(*m.Module):
		return "module " + *m.Module
	}
	return strings.Trim(*m.Module, "()")
}
