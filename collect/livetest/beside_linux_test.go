package livetest_test

import (
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// What instrumented steps hook to parameters is taken off at a step's end, and torch's engine told to forget it: not
// while another thread's engine may be about to call it, which ended the process in every other run of twenty seconds.
func TestStepsEndBesideOthersBackward(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	takeSlot(t)
	r := record(t, environment(), python, script(t, "beside.py"), "8")
	if r.manifest.Status != schemas.StatusOK || len(linesOf(t, r.stdout, "STEPS ")) != 1 {
		t.Errorf("status %s (%s)\n%s", r.manifest.Status, r.manifest.Reason, r.stderr)
	}
}
