package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/report/table"
)

// figureTimedModules is the number of modules whose time differences are drawn separately.
const figureTimedModules = 8

// moduleStepFall returns the difference of the steps by module. Under each module are the phases that make most of its
// difference.
func moduleStepFall(doc *explain.Explanation) (figure.WaterfallPanel, []string) {
	from, to := sides(doc)
	p := figure.WaterfallPanel{Title: fmt.Sprintf("Step of %s minus step of %s, by module", to, from),
		Axis: "Δ from the step of " + doc.Runs[0].Label, Time: true}
	p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepStart, Label: from,
		Text: "step " + table.Milliseconds(doc.Runs[0].StepMS.Median).Text + " ms"})
	largest := largestModuleDelta(doc)
	end := int64(0) // the end of the last bar
	change := func(label string, ms float64) {
		ns := nanoseconds(ms)
		end += ns
		p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepChange, Label: label, Delta: ns,
			Text: table.DeltaMilliseconds(ms).Text + " ms"})
	}
	divided := func(label string, t *explain.TimePart) {
		change(label, t.DeltaMS)
		p.Steps = append(p.Steps, phaseSteps(t, largest/smallPart)...)
	}
	shown, rest, left := topModuleTimes(doc.ModuleTimes, figureTimedModules, largest/smallStep)
	for _, m := range shown {
		switch {
		case nanoseconds(m.DeltaMS) == 0:
		case m.Module == nil:
			divided("of no known module", &m.TimePart)
		default:
			divided(m.Title(), &m.TimePart)
		}
	}
	if left > 0 {
		change(others(left), rest.DeltaMS)
	}
	if doc.OutsideModules.DeltaMS != 0 {
		divided("in no module", doc.OutsideModules)
	}
	var notes []string
	whole := nanoseconds(*doc.StepDeltaMS)
	if r := *doc.ModuleResidueMS; nanoseconds(r) != 0 {
		p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepChange, Label: "residue", Delta: whole - end,
			Text: table.DeltaMilliseconds(r).Text + " ms"})
		notes = append(notes, "residue by module: "+moduleResidueNote)
	}
	p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepTotal, Label: to, Delta: whole,
		Text: "step " + table.Milliseconds(doc.Runs[1].StepMS.Median).Text + " ms (" +
			table.DeltaMilliseconds(*doc.StepDeltaMS).Text + ")"})
	return p, notes
}

// phaseSteps returns steps for the phases that differ by at least least, and one step for all others. The last step
// includes the rounding to nanoseconds, so that the phases add up to the bar above them.
func phaseSteps(t *explain.TimePart, least float64) []figure.WaterfallStep {
	shown, rest, left := topPhases(t.Phases, figureModules, least)
	if len(shown)+left < 2 {
		return nil // a single part would only repeat the bar
	}
	var out []figure.WaterfallStep
	remains := nanoseconds(t.DeltaMS)
	part := func(label string, ms float64) {
		ns := nanoseconds(ms)
		remains -= ns
		out = append(out, figure.WaterfallStep{Kind: figure.StepPart, Label: label, Delta: ns,
			Text: table.DeltaMilliseconds(ms).Text + " ms"})
	}
	for _, f := range shown {
		part(f.Phase, *f.DeltaMS)
	}
	if left > 0 {
		part(others(left), rest.DeltaMS)
	}
	out[len(out)-1].Delta += remains
	return out
}
