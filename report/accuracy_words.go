package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/schemas/units"
)

// tellAccuracy writes the document's warnings: conditions in which predictions and measurements differ, and measured
// runs that do not count.
func tellAccuracy(doc predict.AccuracyDocument) predict.AccuracyDocument {
	warnings := compare.NewGrouped()
	for _, u := range doc.Unlike {
		text := "predicted for " + u.Predicted + " and measured on " + u.Measured
		if u.What == predict.UnlikeTorch {
			text = "predicted with torch " + u.Predicted + " and measured with " + u.Measured
		}
		warnings.Add(text, u.Label)
	}
	for _, p := range doc.Passed {
		warnings.Add(passedWords(&p), p.Label)
	}
	doc.Warnings = append(slices.Clone(doc.Warnings), warnings.Lines()...)
	return doc
}

// passedWords name the measured runs of an experiment that do not count, with the reason.
func passedWords(p *gate.Passed) string {
	var parts []string
	for _, a := range p.Apart {
		switch a.Part {
		case identity.PartFile:
			parts = append(parts, a.File+" differs")
		case identity.PartAgent, identity.PartPhantom: // digests tell a reader nothing
			parts = append(parts, "dpsight's "+string(a.Part)+" differs")
		default:
			parts = append(parts, fmt.Sprintf("%s %s, not %s", a.Part, a.That, a.This))
		}
	}
	return units.Plural(p.Runs, "measured run is", "measured runs are") + " left out: their origin differs from the " +
		"others' (" + strings.Join(parts, "; ") + ")"
}
