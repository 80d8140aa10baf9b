package examples_test

import (
	"testing"

	"github.com/dpsight/dpsight/analyze"
)

// No recording keeps more from step to step: of scripts without that defect none is found.
func TestNoRecordingGrows(t *testing.T) {
	for name, e := range recordings(t) {
		for _, f := range analyze.Findings([]analyze.Inspection{analyze.Inspect(e.in)}, nil).Runs[0].Findings {
			if f.ID == analyze.FindingGrowth {
				t.Errorf("%s: %s", name, f.Sentence)
			}
		}
	}
}
