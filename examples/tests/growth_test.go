package examples_test

import (
	"testing"

	"github.com/dpsight/dpsight/analyze/findings"
)

// No recording's memory grows from step to step, so dpsight must not have the finding growth for any of them.
func TestNoRecordingGrows(t *testing.T) {
	for name, e := range recordings(t) {
		for _, f := range findings.Find([]findings.Checked{findings.CheckRun(e.in)}, nil).Runs[0].Findings {
			if f.ID == findings.Growth {
				t.Errorf("%s: %+v", name, f.Facts)
			}
		}
	}
}
