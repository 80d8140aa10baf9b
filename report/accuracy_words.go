package report

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/predict"
)

// tellAccuracy fills in the warnings: what experiments were predicted for and measured with otherwise.
func tellAccuracy(doc predict.AccuracyDocument) predict.AccuracyDocument {
	warnings := compare.NewGrouped()
	for _, u := range doc.Unlike {
		text := "predicted for " + u.Predicted + " and measured on " + u.Measured
		if u.What == predict.UnlikeTorch {
			text = "predicted with torch " + u.Predicted + " and measured with " + u.Measured
		}
		warnings.Add(text, u.Label)
	}
	doc.Warnings = append(slices.Clone(doc.Warnings), warnings.Lines()...)
	return doc
}
