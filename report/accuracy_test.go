package report

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
)

func TestAccuracyTableNamesWhatDidNotFit(t *testing.T) {
	doc := analyze.AccuracyDocument{Fitting: analyze.AccuracyFitting{Of: 4, Agree: 2, OutOfMemory: 2, Overrun: []string{"short"}, Refused: []string{"large"}}}
	want := "whether it fits: 2 of 4 predicted as measured; predicted to fit, and ran out of memory: short; predicted to run out of memory, and ended well: large"
	if got := AccuracyTable(doc).Notes; !slices.Contains(got, want) {
		t.Errorf("the notes are %q", got)
	}
	doc.Fitting = analyze.AccuracyFitting{Of: 4, Agree: 4}
	if got := AccuracyTable(doc).Notes; len(got) > 0 {
		t.Errorf("where everything fits the notes are %q", got)
	}
}
