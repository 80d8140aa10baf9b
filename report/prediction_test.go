package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/schemas"
)

// Under what is predicted stands which figure the confidence is of: reserved can be off where allocated is exact.
func TestConfidenceIsSaidToBeOfAllocated(t *testing.T) {
	said := func(note string) bool {
		return strings.Contains(note, "confidence is of the peak allocated") &&
			strings.Contains(note, "reserved depends on where the driver puts segments")
	}
	run := predict.PredictionRun{Confidence: &schemas.Confidence{Level: schemas.ExactExpected,
		Reasons: []string{"nothing was read that nobody had computed"}}, Fits: new(true)}
	if notes := PredictionTables(predict.PredictionDocument{Runs: []predict.PredictionRun{
		run}})[0].Notes; !slices.ContainsFunc(notes, said) {
		t.Errorf("under a prediction: %q", notes)
	}
	if notes := FitTables(predict.FitDocument{})[0].Notes; !slices.ContainsFunc(notes, said) {
		t.Errorf("under what fits: %q", notes)
	}
}
