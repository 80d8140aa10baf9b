package livetest_test

import (
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// torch has no single call that both returns the allocator's events and empties their buffer. Even so, the agent loses
// no event that another thread adds between the two calls. The agent and models on other threads do not disturb each
// other.
func TestBusyThreadsLoseNothing(t *testing.T) {
	python := testkit.Python(t)
	for i, name := range []string{"busy.py", "trainers.py", "busy.py", "trainers.py"} {
		t.Run(name, func(t *testing.T) {
			testkit.Part(t, i > 0)
			t.Parallel()
			takeSlot(t)
			r := record(t, environment(), python, script(t, name))
			if r.manifest.Status != schemas.StatusOK || len(r.report.Devices) != 1 {
				t.Fatalf("status %s, devices %+v", r.manifest.Status, r.report.Devices)
			}
			// The number of events depends on how the system schedules the threads. A thread that the agent blocked
			// for good would make it much smaller.
			if d := r.report.Devices[0]; d.Verdict != schemas.Exact || d.Events < 2_000 {
				t.Errorf("%s (%s), %d events, %d missing", d.Verdict, d.Reason, d.Events, d.MissingEvents)
			}
			if len(r.report.Warnings) > 0 {
				t.Errorf("warnings: %q", r.report.Warnings)
			}
		})
	}
}
