package livetest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// If one of the agent's hooks fails, the agent removes only that hook. The script ends well, and the allocator's
// events are exact. The ingest report, the list of runs and the findings name the failed hook.
func TestAHookThatFailsIsNamed(t *testing.T) {
	python := testkit.Python(t)
	for hook, want := range map[string]string{
		"the forward hook": "the forward hook failed at step 2 (ValueError: broken): later forward passes and their " +
			"modules are unknown",
		"a drain": "a drain failed at step 3 (ValueError: broken): a later drain takes the events, or they count as " +
			"missing",
		"the backward hook": "the backward hook failed at step 2 (ValueError: broken): later backward passes are " +
			"unknown",
	} {
		t.Run(hook, func(t *testing.T) {
			testkit.Part(t, hook != "the forward hook")
			t.Parallel()
			takeSlot(t)
			r := record(t, environment(), python, script(t, "broken.py"), hook)
			if r.manifest.Status != schemas.StatusOK || len(factsOf(t, r.stdout)) != 1 {
				t.Errorf("status %s (%s)", r.manifest.Status, r.manifest.Reason)
			}
			if said := complaints(r.stderr); len(said) != 1 || !strings.HasPrefix(said[0], "dpsight: "+hook+" failed, ") {
				t.Errorf("the agent says %q", said)
			}
			expectConserved(t, r.dir, r.report)
			if failed := r.report.Ranks[0].FailedHooks; len(failed) != 1 || failed[0].Words() != want {
				t.Errorf("failed hooks %+v", failed)
			}
			if !strings.Contains(strings.Join(r.report.Warnings, "\n"), want) { // a breakdown repeats these
				t.Errorf("ingest warns of %q", r.report.Warnings)
			}
			run, err := store.OpenRun(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			in, err := store.Load(run, analyze.SummaryTables)
			if err != nil {
				t.Fatal(err)
			}
			row, summary := analyze.ListRun(*in), analyze.Summarize(*in)
			for where, remarks := range map[string][]analyze.Remark{"runs": row.Remarks, "findings": summary.Remarks} {
				if words := report.RunWords(remarks); !strings.Contains(strings.Join(words, "\n"), want) {
					t.Errorf("%s has the remarks %q", where, words)
				}
			}
		})
	}
}

// The recording of a run fails if the script used the device and dpsight recorded nothing, or stopped recording. The
// recording fails even if the script ended well, since the figures would not cover the whole run.
func TestNothingRecordedIsAnError(t *testing.T) {
	python := testkit.Python(t)
	for name, c := range map[string]struct {
		command []string
		want    string
	}{
		"drains fail": {[]string{python, script(t, "broken.py"), "draining"},
			"rank 0: draining failed (ValueError: broken), and the agent stopped recording"},
		"no agent": {[]string{python, "-E", script(t, "broken.py"), "none"},
			"the experiment used memory of device 0, but the agent recorded nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			takeSlot(t)
			var stderr output
			r, err := collect.Run(t.Context(), collect.Experiment{Store: t.TempDir(), Name: "live", Command: c.command,
				Device: "phantom", Grace: 2 * time.Second, Stderr: &stderr, Environ: environment()})
			if r == nil || r.Manifest.Status != schemas.StatusOK {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v", err)
			}
			if name != "drains fail" { // without an agent there is nothing to make tables of
				return
			}
			if _, err := ingest.Run(r.Dir, ingest.Options{Version: "test"}); err != nil {
				t.Fatal(err)
			}
			run, err := store.OpenRun(r.Dir)
			if err != nil {
				t.Fatal(err)
			}
			in, err := store.Load(run, analyze.SummaryTables)
			if err != nil {
				t.Fatal(err)
			}
			if s := analyze.Summarize(*in); s.Status != schemas.StatusPartial || !strings.HasPrefix(s.Reason, "draining") {
				t.Errorf("its figures are those of a run that is %s (%s)", s.Status, s.Reason)
			}
		})
	}
}
