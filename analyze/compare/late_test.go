package compare_test

import (
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture"
)

// If a peak lies outside the recorded steps, its overhead is not broken down into categories.
func TestOverheadOfLatePeak(t *testing.T) {
	late, plain := analyze.Summarize(fixture.LateInput(150)), analyze.Summarize(fixture.LateInput(100))
	o := overheads(plain, []analyze.Summary{late, plain})
	if *o.Runs[0].PeakDeltaBytes != 50 || len(o.Runs[0].Categories) != 0 || len(o.Runs[1].Categories) == 0 {
		t.Errorf("%+v", o.Runs)
	}
}
