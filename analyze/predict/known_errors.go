package predict

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/schemas"
)

// KnownErrorsOf returns the errors of predictions by kind of doubt. KnownErrorsOf uses only predictions with the
// confidence close that state their doubts.
func KnownErrorsOf(doc AccuracyDocument) confidence.KnownErrorsDocument {
	out := confidence.KnownErrorsDocument{Schema: confidence.KnownErrorsSchema, Doubts: []confidence.KnownErrors{},
		Unended: doc.Unended}
	for _, kind := range schemas.Doubts {
		cases := slices.DeleteFunc(slices.Clone(doc.Experiments), func(x AccuracyExperiment) bool {
			return x.Confidence != schemas.Close || !slices.Contains(confidence.Decisive(x.Doubts), kind)
		})
		if len(cases) > 0 {
			out.Doubts = append(out.Doubts,
				confidence.KnownErrors{Doubt: kind, Allocated: errorsOf(cases,
					func(x *AccuracyExperiment) *Prediction { return &x.Allocated }),
					Reserved: errorsOf(cases, func(x *AccuracyExperiment) *Prediction { return &x.Reserved })})
		}
	}
	return out
}
