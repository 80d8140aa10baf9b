package report

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/analyze/predict"
)

func TestAccuracyTableNamesWhatDidNotFit(t *testing.T) {
	doc := predict.AccuracyDocument{Fitting: predict.AccuracyFitting{Of: 4, Agree: 2, OutOfMemory: 2,
		Overrun: []string{"short"}, Refused: []string{"large"}}}
	want := "whether it fits: 2 of 4 predicted as measured; predicted to fit, and ran out of memory: short; " +
		"predicted to run out of memory, and ended well: large"
	if got := AccuracyTable(doc).Notes; !slices.Contains(got, want) {
		t.Errorf("the notes are %q", got)
	}
	doc.Fitting = predict.AccuracyFitting{Of: 4, Agree: 4}
	if got := AccuracyTable(doc).Notes; len(got) > 0 {
		t.Errorf("where everything fits the notes are %q", got)
	}
}

// Experiments that were measured but not predicted do not count in the errors, and a note names them.
func TestAccuracyTablesNameWhatWasNotPredicted(t *testing.T) {
	unended := []confidence.AccuracyUnended{{Name: "lstm", Status: "failed"}, {Name: "speech", Status: "killed"}}
	want := "in none of these errors, since the prediction did not end well: lstm (failed), speech (killed)"
	if got := AccuracyTable(predict.AccuracyDocument{Unended: unended}).Notes; !slices.Equal(got, []string{want}) {
		t.Errorf("the notes are %q", got)
	}
	if got := KnownErrorsTable(confidence.KnownErrorsDocument{Unended: unended}).Notes; !slices.Contains(got, want) {
		t.Errorf("by doubt the notes are %q", got)
	}
}
