package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// holding is a script that allocates as many MiB as its first argument says. If that is at least its second argument,
// the script fails with a ValueError instead.
const holding = `
import sys, torch
n = int(sys.argv[1])
if len(sys.argv) > 2 and n >= int(sys.argv[2]):
    raise ValueError("that many are not known")
kept = torch.empty(n << 20, dtype=torch.uint8, device="cuda")
`

// searched runs dpsight predict --vary and returns its JSON document.
func searched(t *testing.T, store string, args ...string) (result, predict.FitDocument) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("dpsight", append([]string{"predict", "--store", store, "--format", "json"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = store, &stdout, &stderr // the folder is part of a command's key
	_ = cmd.Run()                                             // the returned exit code shows a failure
	var doc predict.FitDocument
	if stdout.Len() > 0 {
		if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil {
			t.Fatalf("%v\n%s", err, stdout.String())
		}
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}, doc
}

// The search finds the largest value that fits. Predictions are kept in the store and reused until the script changes,
// even though the store and the output are beside the script. Tests in collect/fit, which need no Python, check what
// else decides whether a prediction is reused.
func TestFit(t *testing.T) {
	interpreter, script := python(t), scriptFile(t, holding)
	store, out := filepath.Join(filepath.Dir(script), "runs"), filepath.Join(filepath.Dir(script), "out")
	if err := os.Mkdir(store, 0o755); err != nil {
		t.Fatal(err)
	}
	// A block of more than 10 MiB is a segment of its own, a multiple of 2 MiB.
	args := []string{"--fit", "100MiB", "--vary", "n=90..120:10", "--device", "h100", "-o", out, "--", interpreter,
		script, "{n}"}
	r, doc := searched(t, store, args...)
	if r.code != exitDone || len(doc.Cells) != 1 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	c := &doc.Cells[0]
	// Predictions were never compared with an H100, so the default margin is 5 % of the memory. The search needs no
	// further run to find the largest value that leaves the margin.
	if m := c.Margin; *c.SpareBytes != 0 || m == nil || m.Bytes != 5<<20 || m.Largest == nil || *m.Largest != 90 ||
		*m.SpareBytes != 10<<20 {
		t.Errorf("%s", r.stdout)
	}
	if c.Outcome != predict.FitSome || *c.Largest != 100 || *c.Refused != 110 || c.MemoryBytes != 100<<20 ||
		c.Profile != "h100" || *c.PeakReservedBytes != 100<<20 || len(c.Odd) != 0 {
		t.Errorf("%s", r.stdout)
	}
	for _, p := range c.Probes {
		if *p.Fits != (p.Value <= 100) || p.Kept {
			t.Errorf("%+v", p)
		}
		if _, err := os.Stat(filepath.Join(store, p.RunID)); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"fit.png", "fit.svg", "fit.md", "fit.json"} {
		if st, err := os.Stat(filepath.Join(out, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, again := searched(t, store, args...); r.code != exitDone || *again.Cells[0].Largest != 100 ||
		len(again.Cells[0].Probes) != len(c.Probes) {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	} else {
		for i, p := range again.Cells[0].Probes {
			if !p.Kept || p.RunID != c.Probes[i].RunID {
				t.Errorf("made again: %+v", p)
			}
		}
	}
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(script, later, later); err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(filepath.Join(out, "fit.json"))
	if err != nil {
		t.Fatal(err)
	}
	args[3] = "n=90..90"
	if r, again := searched(t, store, args...); r.code != exitDone || again.Cells[0].Outcome != predict.FitAll ||
		again.Cells[0].Probes[0].Kept {
		t.Errorf("a script that changed: exit code %d\n%s", r.code, r.stdout)
	} else if !strings.Contains(r.stderr, "dpsight: note: "+out+" has the tables of another search, which are "+
		"kept\ndpsight: tables and figure in "+out+"-2\n") {
		t.Errorf("%s", r.stderr)
	}
	if is, err := os.ReadFile(filepath.Join(out, "fit.json")); err != nil || !bytes.Equal(is, was) {
		t.Errorf("the first search's document was changed, %v", err)
	}
	// dpsight itself wrote the files that appeared beside the script, so nothing is predicted again.
	if err := os.Chtimes(script, time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	if r, again := searched(t, store, args...); r.code != exitDone || !again.Cells[0].Probes[0].Kept ||
		!strings.Contains(r.stderr, "in "+out+"-2\n") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	listed := must(t, t.TempDir(), "runs", "--store", store)
	if !strings.Contains(listed.stdout, "fit-n, trial  ") ||
		!strings.Contains(listed.stdout, "trial: a value that dpsight predict --vary tried") {
		t.Errorf("%s", listed.stdout)
	}
}

// A script that fails for a reason other than memory ends the search with one sentence. So does a range in which
// nothing fits.
func TestFitThatFindsNothing(t *testing.T) {
	testkit.Rest(t)
	interpreter, script, store := python(t), scriptFile(t, holding), t.TempDir()
	r, doc := searched(t, store, "--fit", "100MiB", "--vary", "n=200..300", "--", interpreter, script, "{n}")
	if r.code != exitFailed || doc.Cells[0].Outcome != predict.FitNone ||
		!strings.Contains(r.stderr, "nothing fits: not even n 200") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	r, doc = searched(t, store, "--fit", "100MiB", "--vary", "n=20..20", "--", interpreter, script, "{n}", "20")
	if r.code != exitFailed || doc.Cells[0].Outcome != predict.FitUnset || doc.Cells[0].Largest != nil ||
		!strings.Contains(r.stderr, "n 20 ended for another reason than memory: failed: ValueError: that many are "+
			"not known") || !strings.Contains(r.stderr, "correct your script") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// If the script fails for another reason than memory at a value that the search tries away from its answer, dpsight
// names that value and the answer stays.
func TestFitBesideAValueThatCannotBe(t *testing.T) {
	testkit.Rest(t)
	script := scriptFile(t, "import sys\nif sys.argv[1] == '20':\n    raise ValueError('that many are not known')\n"+
		holding)
	r, doc := searched(t, t.TempDir(), "--vary", "n=10..30:10", "--", python(t), script, "{n}")
	if r.code != exitDone || doc.Cells[0].Outcome != predict.FitAll || *doc.Cells[0].Largest != 30 ||
		doc.Cells[0].Probes[1].Fits != nil ||
		doc.Cells[0].Probes[1].Why != "failed: ValueError: that many are not known" ||
		!strings.Contains(r.stderr, "n 20: ended for another reason than memory (failed: ValueError: that many are "+
			"not known) (run 3 of about ") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// A script may halve its request until it succeeds. If the script's first request fails, a search counts the value as
// not fitting. A single prediction says that the script fits, since it continues. If a script sets a memory limit for
// itself, a failure at that limit says nothing about the device.
func TestFitOfAScriptThatCatches(t *testing.T) {
	testkit.Rest(t)
	script := scriptFile(t, `
import sys, torch
n = int(sys.argv[1])
while True:
    try:
        kept = torch.empty(n << 20, dtype=torch.uint8, device="cuda")
        break
    except torch.OutOfMemoryError:
        n //= 2
`)
	r, doc := searched(t, t.TempDir(), "--fit", "100MiB", "--vary", "n=300..300", "--", python(t), script, "{n}")
	if r.code != exitFailed || doc.Cells[0].Outcome != predict.FitNone || doc.Cells[0].Probes[0].CaughtOOMs != 2 ||
		doc.Cells[0].Probes[0].Status != "ok" ||
		!strings.Contains(r.stderr, "n 300: does not fit (the script caught 2 out-of-memory errors and continued)") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	r = dpsight(t, t.TempDir(), "predict", "--gpu-memory", "100MiB", "--", python(t), script, "300")
	if r.code != exitDone || !strings.Contains(r.stdout, "\n   fits   yes: ") ||
		!strings.Contains(r.stdout, "a request for 300.00 MiB failed before the first step, and the script "+
			"continued") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	limited := scriptFile(t, `
import torch
torch.cuda.set_per_process_memory_fraction((256 << 20) / torch.cuda.get_device_properties(0).total_memory)
kept = []
for _ in range(2):
    try:
        for _ in range(100):
            kept.append(torch.empty(32 << 20, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        pass
`)
	r = dpsight(t, t.TempDir(), "predict", "-v", "--", python(t), limited)
	if r.code != exitDone || !strings.Contains(r.stdout, "  yes  ") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// If a workspace cannot be allocated, and torch works without it, the value still fits.
func TestFitWithoutWorkspaces(t *testing.T) {
	testkit.Rest(t)
	script := scriptFile(t, `
import sys, torch
from torch import nn
net = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU()).cuda()
x = torch.zeros(int(sys.argv[1]), 3, 32, 32, device="cuda")
net(x).sum().backward()
torch.cuda.empty_cache()
least, whole = torch.cuda.memory_reserved(), torch.cuda.get_device_properties(0).total_memory
for extra in range(64, 50, -1):
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((least + (extra << 20)) / whole)
    net(x).sum().backward()
    if torch.cuda.memory_stats()["num_ooms"]:
        break
if sys.argv[2:] == ["dies"]:
    raise RuntimeError("CUDA out of memory, or so it says")
`)
	store := t.TempDir()
	r, doc := predictDocument(t, store, nil, "--", python(t), script, "64")
	if r.code != exitDone || len(doc.Runs) != 1 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if p := &doc.Runs[0]; p.Status != schemas.StatusOK || !*p.Fits || p.CaughtOOMs != 0 || p.AbsorbedOOMs == 0 ||
		!strings.Contains(strings.Join(p.Warnings, "\n"), "for workspaces failed, and torch continued") {
		t.Errorf("fits %v, %d caught, %d absorbed, warnings %q", *p.Fits, p.CaughtOOMs, p.AbsorbedOOMs, p.Warnings)
	}
	if found := must(t, t.TempDir(), "analyze", "findings", "--store", store); !strings.Contains(found.stdout,
		"torch continued without it") {
		t.Errorf("%s", found.stdout)
	}
	// No failed request for a workspace ended the run, even though the text of the script's last error is "CUDA out of
	// memory".
	r, doc = predictDocument(t, t.TempDir(), nil, "--", python(t), script, "64", "dies")
	if len(doc.Runs) != 1 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if p := &doc.Runs[0]; p.Status != schemas.StatusOOM || p.Failure != nil || p.AbsorbedOOMs == 0 {
		t.Errorf("status %s, failure %+v, %d absorbed", p.Status, p.Failure, p.AbsorbedOOMs)
	}
}

// A wrong --vary is a usage error: nothing runs.
func TestFitRefuses(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"--vary seq_len=4..8 --method vanilla --model mlp --preset tiny", "--vary seq_len has no effect on this " +
			"experiment (vanilla)"},
		{"--vary physical_batch_size=5..7 --method ghost --preset tiny --batch-size 64",
			"--vary physical_batch_size: no value from 5 to 7 is possible: physical_batch_size must be a divisor of " +
				"batch_size 64, not 5"},
		{"--vary batch_size=4..8 --method ghost,ghost --preset tiny", "--method names ghost twice"},
		{"--method vanilla,ghost --preset tiny", "--method names several methods (vanilla,ghost), and a run has " +
			"one\ndpsight: hint: dpsight predict takes several methods with --vary"},
		{"--vary batch_size=4..8 --method ghost --preset tiny --device t4,t4", "--device names t4 twice"},
	} {
		store := t.TempDir()
		r := dpsight(t, store, append([]string{"predict", "--store", store}, strings.Fields(c.args)...)...)
		if left, err := os.ReadDir(store); r.code != exitUsage || !strings.Contains(r.stderr, c.says) || err != nil ||
			len(left) > 0 {
			t.Errorf("%s: exit code %d, %v left\n%s", c.args, r.code, left, r.stderr)
		}
	}
}

// A search over several methods has a cell for each method. That several devices make a grid of cells is checked by a
// test in collect/fit, which needs no Python.
func TestFitOfMethods(t *testing.T) {
	testkit.Rest(t)
	r, doc := searched(t, t.TempDir(), "--vary", "batch_size=2..2", "--device", "t4", "--method", "vanilla,ghost",
		"--model", "mlp", "--preset", "tiny", "--num-iter", "1", "--python", python(t))
	if r.code != exitDone || len(doc.Cells) != 2 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for i, want := range []string{"vanilla t4", "ghost t4"} {
		c := &doc.Cells[i]
		if got := c.Method + " " + c.Profile; got != want || c.Outcome != predict.FitAll || *c.Largest != 2 ||
			len(c.Probes) != 1 {
			t.Errorf("%s: %+v, want %s", got, c, want)
		}
	}
}

// A physical batch must divide the batch. The search tries only such values, and the result names them.
func TestFitOfPhysicalBatches(t *testing.T) {
	testkit.Rest(t)
	out := t.TempDir()
	r, doc := searched(t, t.TempDir(), "--fit", "24GiB", "--vary", "physical_batch_size=3..20", "--method", "dpsgd",
		"--preset", "tiny", "--batch-size", "12", "--num-iter", "1", "-o", out, "--python", python(t))
	if r.code != exitDone || len(doc.Cells) != 1 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	c := &doc.Cells[0]
	if c.Outcome != predict.FitAll || *c.Largest != 12 || fmt.Sprint(c.Only) != "[3 4 6 12]" ||
		c.Barred != "physical_batch_size must be a divisor of batch_size 12, not 5" {
		t.Errorf("%s", r.stdout)
	}
	for _, p := range c.Probes {
		if 12%p.Value != 0 {
			t.Errorf("%d was tried", p.Value)
		}
	}
	for _, name := range []string{"fit.md", "fit.svg"} {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil || !strings.Contains(strings.ReplaceAll(string(text), `\_`, "_"),
			"the values that the options allow, 3, 4, 6, 12: ") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

// Ctrl-C ends a search and keeps the predictions made so far.
func TestFitInterrupted(t *testing.T) {
	testkit.Rest(t)
	interpreter, store := python(t), t.TempDir()
	script := scriptFile(t, fmt.Sprintf("import sys, time\nif int(sys.argv[1]) > 10:\n    open(%q, 'w').close()\n    "+
		"time.sleep(600)\n%s", filepath.Join(store, "second"), holding))
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("dpsight", "predict", "--store", store, "--format", "json", "--vary", "n=10..20", "--",
		interpreter, script, "{n}")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(store, "second")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the second run never began\n%s", stderr.String())
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	var doc predict.FitDocument
	if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil || cmd.ProcessState.ExitCode() != exitFailed ||
		doc.Cells[0].Outcome != predict.FitUnset || *doc.Cells[0].Largest != 10 ||
		!strings.Contains(stderr.String(), "it was interrupted") {
		t.Errorf("%v, exit code %d\n%s%s", err, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String())
	}
}
