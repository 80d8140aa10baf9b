package report

import (
	"errors"
	"strings"

	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/schemas"
)

// PredictionFailure returns an error for the first run that does not fit, or whose answer is unknown. PredictionFailure
// returns nil if all runs fit. dirs are the runs' folders.
func PredictionFailure(runs []predict.PredictionRun, dirs []string) error {
	for i := range runs {
		r := &runs[i]
		switch {
		case r.Fits == nil:
			kept := predictionAdvice(r) + "; see the run's output in " + dirs[i]
			return schemas.WithHint(errors.New(predictionSentence(r)), strings.TrimPrefix(kept, "; "))
		case !*r.Fits:
			return schemas.WithHint(errors.New(predictionSentence(r)),
				"dpsight findings "+dirs[i]+" says what held the memory")
		}
	}
	return nil
}
