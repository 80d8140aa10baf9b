package livetest_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// mostLost is the most time before a kill whose events may be lost. All earlier events are on disk.
const mostLost = 5 * time.Second

// The agent also drains events of a script that ends no step, whatever the script does. If the script is killed, the
// run has all its events until five seconds before the kill, without gaps.
func TestKilledWithoutSteps(t *testing.T) {
	python := testkit.Python(t)
	kinds := []string{"forwards", "tensors", "asleep", "thread"}
	times := 1
	if long() {
		times = 5
	}
	for i := range times * len(kinds) {
		kind := kinds[i%len(kinds)]
		r := rand.New(rand.NewPCG(seed(), uint64(i)))
		after := time.Duration((7 + 5*r.Float64()) * float64(time.Second))
		t.Run(fmt.Sprintf("%d %s after %s", i, kind, after.Round(time.Millisecond)), func(t *testing.T) {
			testkit.Part(t, kind != "forwards")
			t.Parallel()
			takeSlot(t)
			run := record(t, environment(), python, script(t, "unstepped.py"), kind,
				strconv.FormatFloat(after.Seconds(), 'f', 3, 64))
			if run.manifest.Status != schemas.StatusKilled {
				t.Fatalf("status %s (%s)", run.manifest.Status, run.manifest.Reason)
			}
			var last, killed int64
			if _, err := fmt.Sscan(run.stdout, &last, &killed); err != nil {
				t.Fatalf("%v: %q", err, run.stdout)
			}
			events, err := schemas.Events.Read(run.dir)
			if err != nil || len(events) == 0 {
				t.Fatalf("%d events, %v", len(events), err)
			}
			expected := min(last, killed-mostLost.Nanoseconds()) - time.Millisecond.Nanoseconds()
			if got := events[len(events)-1].TimeNS; got < expected {
				t.Errorf("%s of what is older than %s is lost", time.Duration(expected-got), mostLost)
			}
			for _, d := range run.report.Devices {
				if d.MissingEvents != 0 || d.Verdict == schemas.Lossy {
					t.Errorf("%s (%s), %d events are missing", d.Verdict, d.Reason, d.MissingEvents)
				}
			}
		})
	}
}

// The agent drains events so often that the host memory for waiting events, and for the objects that a drain makes of
// them, does not grow with the number of events. In measurements, 3 M events took 334 MiB, 10 M took 324 MiB and 20 M
// took 313 MiB.
func TestManyEventsTakeBoundedMemory(t *testing.T) {
	python := testkit.Python(t)
	t.Parallel()
	takeSlot(t)
	events := 600_000
	if long() {
		events = 20_000_000
	}
	limit := hangLimit + time.Duration(events)*100*time.Microsecond
	run := recordWithin(t, limit, environment(), func(*collect.Experiment) {}, python, script(t, "manyevents.py"),
		strconv.Itoa(events))
	if run.manifest.Status != schemas.StatusOK || len(run.report.Devices) != 1 {
		t.Fatalf("status %s (%s)", run.manifest.Status, run.manifest.Reason)
	}
	grown, err := strconv.Atoi(strings.TrimSpace(run.stdout))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MiB", grown)
	if grown > 400 {
		t.Errorf("the process took %d MiB more for %d events", grown, events)
	}
	if d := run.report.Devices[0]; d.Verdict != schemas.Exact || d.Events < int64(events) {
		t.Errorf("%s (%s), %d events", d.Verdict, d.Reason, d.Events)
	}
}
