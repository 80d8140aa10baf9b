package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// wantDecided predicts a script that fails after it reads an unknown value. wantDecided expects a successful prediction
// in which the read at place (file:line) gets the answer that dpsight did not try first.
func wantDecided(t *testing.T, script, place, failure string) {
	t.Helper()
	store := t.TempDir()
	r, doc := predictDocument(t, store, nil, "--", python(t), script)
	if r.code != exitDone || len(doc.Runs) != 1 || doc.Runs[0].Status != schemas.StatusOK || !*doc.Runs[0].Fits {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	reasons := strings.Join(doc.Runs[0].Confidence.Reasons, "\n")
	if doc.Runs[0].Confidence.Level != schemas.Close || !strings.Contains(reasons, place) ||
		!strings.Contains(reasons, "reads a value that the phantom GPU does not compute. With the "+
			"usual answer the script failed ("+
			failure) {
		t.Errorf("confidence %+v", doc.Runs[0].Confidence)
	}
	if !strings.Contains(r.stderr, place) || !strings.Contains(r.stderr, "predicting again with the other answer") {
		t.Errorf("%s", r.stderr)
	}
	// The failed run names the read too.
	m, err := schemas.ReadManifest(filepath.Join(store, doc.Runs[0].RunID))
	if err != nil || len(m.Phantom.Decisions) != 1 {
		t.Fatalf("%v: %+v", err, m)
	}
	failed, err := schemas.ReadManifest(filepath.Join(store, m.Phantom.Decisions[0].RunID))
	if err != nil || failed.Status != schemas.StatusFailed || !strings.HasPrefix(failed.Reason, failure) ||
		!strings.Contains(failed.Reason, place) {
		t.Errorf("%v: %+v", err, failed)
	}
}

// If a script asserts something about values that the phantom GPU does not compute, dpsight predicts it as if the
// assertion held.
func TestPredictDecidesAsserts(t *testing.T) {
	testkit.Rest(t)
	script := caseFile(t, "assert_range.py")
	wantDecided(t, script, script+":6", "AssertionError")
}

// dpsight assumes that argument checks of torch.distributions succeed. dpsight predicts a script with such checks in
// one run, and a note names the assumption.
func TestPredictTakesArgumentsForValid(t *testing.T) {
	testkit.Rest(t)
	script := caseFile(t, "dist_validate.py")
	r, doc := predictDocument(t, t.TempDir(), nil, "--", python(t), script)
	if r.code != exitDone || len(doc.Runs) != 1 || !*doc.Runs[0].Fits || strings.Contains(r.stderr, "predicting again") {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if reasons := strings.Join(doc.Runs[0].Confidence.Reasons, "\n"); doc.Runs[0].Confidence.Level != schemas.Close ||
		!strings.Contains(reasons, "asked whether values are finite or valid that the phantom GPU does not compute") {
		t.Errorf("confidence %+v", doc.Runs[0].Confidence)
	}
}

// A script also counts as failed if it exits with an error status because it caught a failure or found a value out of
// range.
func TestPredictDecidesExits(t *testing.T) {
	testkit.Rest(t)
	for name, c := range map[string]struct{ end, line, failure string }{
		"caught": {"try:\n    assert (x >= 0).all()\nexcept AssertionError:\n    sys.exit(1)\n", ":4", "exit code 1"},
		"raised": {"if not (x >= 0).all():\n    raise SystemExit('out of range')\n", ":3", "out of range"},
		"asked":  {"if not (x >= 0).all():\n    sys.exit('out of range')\n", ":3", "out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			script := scriptFile(t, "import sys, torch\nx = torch.rand(4, device='cuda')\n"+c.end)
			wantDecided(t, script, script+c.line, c.failure)
		})
	}
}

// failingAlone is a script that fails after it reads a value. No answer to that read avoids the failure.
const failingAlone = `
import sys, torch
if len(sys.argv) > 1:
    assert (torch.randn(int(sys.argv[1]), device="cuda") < 2).all()
else:
    print(torch.randn(4, device="cuda").sum().item())
    raise KeyError("of its own")
`

// dpsight predicts a script that fails for another reason only once more. A search reuses the answers to reads that
// its first value needed for all other values.
func TestPredictDecidesNotInVain(t *testing.T) {
	testkit.Rest(t)
	script := scriptFile(t, failingAlone)
	r, doc := predictDocument(t, t.TempDir(), nil, "--", python(t), script)
	if r.code != exitFailed || strings.Count(r.stderr, "predicting again") != 1 || doc.Runs[0].Fits != nil ||
		!strings.Contains(doc.Runs[0].Reason, "KeyError: 'of its own'; "+script+
			":6 had read a value that the phantom GPU does not compute") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	r = dpsight(t, t.TempDir(), "predict", "--store", t.TempDir(), "--vary", "n=1..4", "--", python(t), script, "{n}")
	if r.code != exitDone || strings.Count(r.stderr, "predicting again") != 1 {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// deciders is a suite of scripts. Two of the scripts fail after they read a value that the phantom GPU does not
// compute.
const deciders = `
name: deciders
command: [PYTHON, SCRIPT, "{kind}"]
experiments: [{kind: asserts}, {kind: exits}, {kind: plain}]
`

const decider = `
import sys, torch
x = torch.rand(4, device="cuda")
if sys.argv[1] == "asserts":
    assert (x >= 0).all()
elif sys.argv[1] == "exits" and not (x >= 0).all():
    raise SystemExit("out of range")
`

// listed returns the runs of a store, and fails the test unless there are n.
func listed(t *testing.T, store string, n int) []analyze.RunsRow {
	t.Helper()
	r := dpsight(t, store, "runs", "--store", store, "--format", "json")
	var doc analyze.RunsDocument
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || len(doc.Runs) != n {
		t.Fatalf("%d runs, %v\n%s%s", len(doc.Runs), err, r.stdout, r.stderr)
	}
	return doc.Runs
}

// collect, with a suite or one command, repeats a failed prediction with the other answer to a read, as predict does.
// Only the last run of each experiment counts.
func TestSuitesDecide(t *testing.T) {
	testkit.Rest(t)
	interpreter, store, script := python(t), t.TempDir(), scriptFile(t, decider)
	plan := filepath.Join(t.TempDir(), "deciders.yaml")
	text := strings.NewReplacer("PYTHON", interpreter, "SCRIPT", script).Replace(deciders)
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := dpsight(t, t.TempDir(), "collect", "--device", "phantom", "--store", store, "--suite", plan, "--no-report")
	if r.code != exitDone || strings.Count(r.stderr, "predicting again with the other answer") != 2 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, x := range listed(t, store, 5) {
		m, err := schemas.ReadManifest(filepath.Join(store, x.RunID))
		if err != nil {
			t.Fatal(err)
		}
		decided := len(m.Phantom.Decisions)
		if ended := m.Status == schemas.StatusOK; ended == (x.SupersededBy != nil) ||
			ended && (decided == 1) == strings.Contains(m.Name, "plain") {
			t.Errorf("%s: %s, superseded by %v, %d decisions", m.Name, m.Status, x.SupersededBy, decided)
		}
	}
	// Finished runs are not made again.
	r = dpsight(t, t.TempDir(), "collect", "--device", "phantom", "--store", store, "--suite", plan, "--no-report",
		"--resume")
	if r.code != exitDone {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	listed(t, store, 5)
	r = dpsight(t, t.TempDir(), "collect", "--device", "phantom", "--store", t.TempDir(), "--", interpreter, script,
		"exits")
	if r.code != exitDone || strings.Count(r.stderr, "predicting again with the other answer") != 1 {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
