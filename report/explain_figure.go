package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

const (
	// figureModules is the most modules that the picture shows under a category. The table has as many modules as
	// requested.
	figureModules = 3
	// A category or phase is drawn separately if its difference is at least 1/smallStep of the largest difference. A
	// module is drawn separately from 1/smallPart on.
	smallStep, smallPart = 200, 50
)

// ExplainFigure returns the picture of how the peaks and steps of two runs differ.
func ExplainFigure(doc explain.Explanation) figure.Figure {
	all := ofExplained(&doc)
	w := &figure.Waterfall{Notes: all.notes()}
	if doc.PeakDeltaBytes != nil {
		panel, notes := peakFall(&doc)
		w.Panels, w.Notes = append(w.Panels, panel), append(w.Notes, notes...)
	}
	if doc.StepDeltaMS != nil {
		panel, notes := stepFall(&doc)
		w.Panels, w.Notes = append(w.Panels, panel), append(w.Notes, notes...)
		if doc.ModuleResidueMS != nil {
			panel, notes := moduleStepFall(&doc)
			w.Panels, w.Notes = append(w.Panels, panel), append(w.Notes, notes...)
		}
	}
	for i := range doc.Runs {
		r := &doc.Runs[i]
		if c := r.Conservation; c != nil && c.Verdict != schemas.Exact {
			w.Notes = append(w.Notes, r.Label+": "+conservation(&memory.DeviceBreakdown{Conservation: *c}))
		}
		for _, n := range sourceNotes(&r.Identity) {
			w.Notes = append(w.Notes, r.Label+": "+n)
		}
	}
	w.Notes = append(w.Notes, explainWarnings(&doc)...)
	return figure.Figure{Name: "explain_waterfall", Title: "Why two runs differ", Picture: w, Badge: string(all)}
}

// WriteExplanation draws the picture of an explanation into the folder dir, which it creates, and returns the written
// paths. Without force it overwrites only pictures that it wrote itself, and otherwise returns a *folder.ForeignError.
func WriteExplanation(dir string, doc explain.Explanation, force bool) ([]string, error) {
	return writeFigure(dir, ExplainFigure(doc), force)
}

// signedSize formats a difference with its sign, in the largest unit that is not above it.
func signedSize(n int64) string {
	if n > 0 {
		return "+" + table.Size(n)
	}
	return table.Size(n)
}

// small reports whether a part is too small, compared with the largest, to be drawn separately.
func small[T int64 | float64](part, largest T) bool { return max(part, -part)*smallStep < largest }

// together labels the one step that stands for all small parts, and lists these parts in a note. The label is empty
// without small parts.
func together(names []string, what string) (label string, notes []string) {
	switch len(names) {
	case 0:
		return "", nil
	case 1:
		return names[0], nil
	}
	return what, []string{what + ": " + strings.Join(names, ", ")}
}

func peakFall(doc *explain.Explanation) (figure.WaterfallPanel, []string) {
	from, to := sides(doc)
	p := figure.WaterfallPanel{Title: fmt.Sprintf("Peak of %s minus peak of %s", to, from), Axis: "Δ from the peak of " +
		doc.Runs[0].Label}
	p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepStart, Label: from,
		Text: "peak " + table.Size(*doc.Runs[0].PeakBytes)})
	largest := largestDelta(doc)
	least := (largest + smallPart - 1) / smallPart
	var others int64
	var names []string
	for i := range doc.Categories {
		c := &doc.Categories[i]
		changed := changedModules(c)
		divided := len(changed) > 0 && magnitude(changed[0].DeltaBytes) >= least
		switch {
		case c.DeltaBytes == 0 && !divided:
		case small(c.DeltaBytes, largest) && !divided:
			others += c.DeltaBytes
			names = append(names, strings.ReplaceAll(c.Category, "_", " "))
		default:
			p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepChange,
				Label: strings.ReplaceAll(c.Category, "_", " "), Category: c.Category,
				Delta: c.DeltaBytes, Text: signedSize(c.DeltaBytes)})
			if divided && (len(c.Modules) > 1 || c.Modules[0].Module != nil) {
				p.Steps = append(p.Steps, moduleSteps(c, changed, least)...)
			}
		}
	}
	label, notes := together(names, "other categories")
	if label != "" {
		p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepChange, Label: label, Delta: others,
			Text: signedSize(others)})
	}
	if len(doc.Categories) == 0 {
		notes = append(notes, "the difference of the peaks is not broken down: it takes a breakdown of both")
	}
	p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepTotal, Label: to, Delta: *doc.PeakDeltaBytes,
		Text: "peak " + table.Size(*doc.Runs[1].PeakBytes) + " (" + signedSize(*doc.PeakDeltaBytes) + ")"})
	return p, notes
}

// moduleSteps returns steps for the modules that make most of a category's difference, and one step for all other
// modules.
func moduleSteps(c *explain.CategoryPart, changed []*explain.ModulePart, least int64) []figure.WaterfallStep {
	var out []figure.WaterfallStep
	part := func(label string, delta int64) {
		out = append(out, figure.WaterfallStep{Kind: figure.StepPart, Label: label, Category: c.Category, Delta: delta,
			Text: signedSize(delta)})
	}
	shown, rest, left := topModules(changed, figureModules, least)
	for _, m := range shown {
		if m.Module == nil {
			part("of no known module", m.DeltaBytes)
		} else {
			part(m.Title(), m.DeltaBytes)
		}
	}
	if left > 0 {
		part(others(left), rest.DeltaBytes)
	}
	return out
}

func stepFall(doc *explain.Explanation) (figure.WaterfallPanel, []string) {
	from, to := sides(doc)
	a, b := doc.Runs[0].StepMS, doc.Runs[1].StepMS
	p := figure.WaterfallPanel{Title: fmt.Sprintf("Step of %s minus step of %s", to, from), Axis: "Δ from the step of " +
		doc.Runs[0].Label, Time: true}
	p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepStart, Label: from,
		Text: "step " + table.Milliseconds(a.Median).Text + " ms"})
	largest := math.Abs(*doc.StepDeltaMS)
	for i := range doc.Phases {
		if d := doc.Phases[i].DeltaMS; d != nil {
			largest = max(largest, math.Abs(*d))
		}
	}
	change := func(label string, ms float64) {
		p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepChange, Label: label, Delta: nanoseconds(ms),
			Text: table.DeltaMilliseconds(ms).Text + " ms"})
	}
	var others float64
	var names, unknown []string
	for i := range doc.Phases {
		switch f := &doc.Phases[i]; {
		case f.DeltaMS == nil:
			unknown = append(unknown, f.Phase)
		case *f.DeltaMS == 0:
		case small(*f.DeltaMS, largest):
			others += *f.DeltaMS
			names = append(names, f.Phase)
		default:
			change(f.Phase, *f.DeltaMS)
		}
	}
	label, notes := together(names, "other phases")
	if label != "" {
		change(label, others)
	}
	if doc.PhaseResidueMS != nil && *doc.PhaseResidueMS != 0 {
		change("residue of medians", *doc.PhaseResidueMS)
	}
	p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepTotal, Label: to,
		Delta: nanoseconds(*doc.StepDeltaMS),
		Text: "step " + table.Milliseconds(b.Median).Text + " ms (" + table.DeltaMilliseconds(*doc.StepDeltaMS).Text +
			")"})
	if len(unknown) > 0 {
		notes = append(notes, "phases whose time is not known: "+strings.Join(unknown, ", "))
	}
	if doc.PhaseResidueMS != nil && *doc.PhaseResidueMS != 0 {
		notes = append(notes, residueNote)
	}
	return p, notes
}

func nanoseconds(ms float64) int64 { return int64(math.Round(ms * 1e6)) }
