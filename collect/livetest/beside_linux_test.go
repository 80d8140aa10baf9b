package livetest_test

import (
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// The hooks that instrumented steps set on parameters are removed at a step's end, and torch's engine is told to
// forget them. The agent must not remove a hook while torch's engine on another thread may be about to call the hook.
// When the agent did not take care of this, half of the runs of twenty seconds crashed.
func TestStepsEndBesideOthersBackward(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	takeSlot(t)
	r := record(t, environment(), python, script(t, "beside.py"), "8")
	if r.manifest.Status != schemas.StatusOK || len(linesOf(t, r.stdout, "STEPS ")) != 1 {
		t.Errorf("status %s (%s)\n%s", r.manifest.Status, r.manifest.Reason, r.stderr)
	}
}
