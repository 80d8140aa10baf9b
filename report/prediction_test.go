package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// A note under predictions says that the confidence refers to allocated. Reserved can be inexact although allocated is
// exact.
func TestConfidenceIsSaidToBeOfAllocated(t *testing.T) {
	said := func(note string) bool {
		return strings.Contains(note, "confidence is of the peak allocated") &&
			strings.Contains(note, "reserved depends on where the driver puts segments")
	}
	run := predict.PredictionRun{Confidence: &schemas.Confidence{Level: schemas.ExactExpected,
		Reasons: []string{"the script read no values that the phantom GPU does not compute"}}, Fits: new(true)}
	if notes := PredictionTables(predict.PredictionDocument{Runs: []predict.PredictionRun{
		run}})[0].Notes; !slices.ContainsFunc(notes, said) {
		t.Errorf("under a prediction: %q", notes)
	}
	if notes := FitTables(predict.FitDocument{})[0].Notes; !slices.ContainsFunc(notes, said) {
		t.Errorf("under what fits: %q", notes)
	}
}

// If a time limit ended a run, the requests that it would still have made are unknown. The table says that the run fits
// so far, and no more.
func TestFitsSoFar(t *testing.T) {
	for _, of := range []struct {
		fits    *bool
		because predict.Cause
		want    string
	}{
		{nil, predict.CauseEnded, "not known"},
		{new(false), predict.CauseCaught, "no"},
		{new(true), predict.CauseSoFar, "so far"},
		{new(true), predict.CauseSteps, "yes"},
		{new(true), "", "yes"},
	} {
		run := predict.PredictionRun{Fits: of.fits, Because: predict.Because{Cause: of.because}}
		shown := PredictionTables(predict.PredictionDocument{Runs: []predict.PredictionRun{run}})[0]
		at := slices.IndexFunc(shown.Columns, func(c table.Column) bool { return c.Key == "fits" })
		if got := shown.Rows[0][at].Text; got != of.want {
			t.Errorf("fits of %q: %q, want %q", of.because, got, of.want)
		}
	}
}
