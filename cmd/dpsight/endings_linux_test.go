package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// training is a script that trains a small model. The script's argument is the number of steps. The script prints a
// line after each step.
const training = `
import sys, time, torch
model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.randn(64, 256).cuda()).sum().backward()
    optimizer.step()
    print("trained", step, flush=True)
    time.sleep(0.02)
`

// hoarding is a script that allocates memory until none is left. hoarding then prints how much it holds, and releases
// the memory or dies.
const hoarding = `
import sys, torch
hoard = []
try:
    while True:
        hoard.append(torch.empty(1 << 30, device="cuda"))
except torch.cuda.OutOfMemoryError:
    print("held", torch.cuda.memory_allocated(), flush=True)
    if sys.argv[1] == "die":
        raise
hoard.clear()
`

// pressing is a script that interrupts itself at each of its steps. Each time the interruption hits the next line of
// some of the agent's files, until all their lines were tried.
const pressing = `
import os, signal, sys, torch
files = tuple(os.path.join(os.path.dirname(sys.modules["dpsight"].__file__), n + ".py") for n in sys.argv[1:])
assert all(map(os.path.isfile, files)), files
seen = line = 0
def trace(frame, event, arg):
    global seen
    if not frame.f_code.co_filename.endswith(files):
        return None
    if event == "line":
        seen += 1
        if seen == line:
            signal.raise_signal(signal.SIGINT)
    return trace
model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
interrupted = 0
while seen >= line:
    line += 1
    seen = 0
    sys.settrace(trace)
    try:
        optimizer.zero_grad()
        model(torch.randn(64, 256).cuda()).sum().backward()
        optimizer.step()
        torch.cuda.reset_peak_memory_stats()  # has the agent drain
    except KeyboardInterrupt:
        interrupted += 1
    finally:
        sys.settrace(None)
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print("interrupted", interrupted, flush=True)
`

// An ending is a recorded run in a store of its own, whose end a test examines.
type ending struct {
	result
	store    string
	dir      string
	manifest *schemas.Manifest
}

// record collects a command on the phantom GPU. seen is called once with the process, when its output contains word.
func record(t *testing.T, script string, flags, args []string, word string, seen func(*os.Process)) ending {
	t.Helper()
	interpreter := python(t)
	e := ending{store: t.TempDir()}
	program := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(program, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	command := append([]string{"collect", "--device", "phantom", "--store", e.store}, flags...)
	cmd := exec.Command("dpsight", append(append(command, "--", interpreter, program), args...)...)
	var stdout bytes.Buffer
	stderr := &watched{word: word, seen: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() { cmd.Wait(); close(over) }()
	limit := time.After(90 * time.Second)
	watch := stderr.seen
	for waiting := true; waiting; {
		select {
		case <-watch:
			watch = nil
			seen(cmd.Process)
		case <-over:
			waiting = false
		case <-limit:
			cmd.Process.Kill()
			t.Fatalf("it hangs\n%s", stderr.text())
		}
	}
	e.result = result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.text()}
	runs, err := filepath.Glob(filepath.Join(e.store, "*", schemas.ManifestFile))
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v\n%s", len(runs), err, e.stderr)
	}
	e.dir = filepath.Dir(runs[0])
	if e.manifest, err = schemas.ReadManifest(e.dir); err != nil {
		t.Fatal(err)
	}
	testkit.ExpectGone(t, e.manifest.RunID)
	if partial, _ := filepath.Glob(filepath.Join(e.dir, "*"+schemas.PartialSuffix)); len(partial) > 0 {
		t.Errorf("half written: %v", partial)
	}
	return e
}

// watched stores output and reports when a word appears in it.
type watched struct {
	mu   sync.Mutex
	b    bytes.Buffer
	word string
	seen chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(p)
	if w.word != "" && strings.Contains(w.b.String(), w.word) {
		w.word = ""
		close(w.seen)
	}
	return len(p), nil
}

func (w *watched) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// expect checks the run's status and exit code. expect also checks that the run can be read, and that the run's
// categories sum exactly to the peak.
func (e ending) expect(t *testing.T, status string, code int) (allocated int64) {
	t.Helper()
	if e.code != code || e.manifest.Status != status || (status == schemas.StatusOK) != (e.manifest.Reason == "") {
		t.Errorf("exit code %d, status %s (%s)\n%s", e.code, e.manifest.Status, e.manifest.Reason, e.stderr)
	}
	said := strings.Count(e.stderr, "dpsight: error: ")
	last := "dpsight: error: the experiment did not end well: its status is " + status +
		"\ndpsight: hint: see the run's output in " + e.dir + "\n"
	if code == exitFailed && (said != 1 || !strings.HasSuffix(e.stderr, last)) || code == exitDone && said != 0 {
		t.Errorf("it says\n%s", e.stderr)
	}
	if !strings.Contains(e.stdout, e.manifest.RunID) || strings.Contains(e.stderr, "panic:") {
		t.Errorf("stdout:\n%s\nstderr:\n%s", e.stdout, e.stderr)
	}
	return e.allocated(t, "peak")
}

// allocated returns the allocated bytes at a moment, and checks that the breakdown's categories sum to them.
func (e ending) allocated(t *testing.T, at string) int64 {
	t.Helper()
	var doc breakdownDoc
	if err := json.Unmarshal([]byte(must(t, e.store, "analyze", "breakdown", "--store", e.store, "--at", at, "--format",
		"json").stdout), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Runs) != 1 || len(doc.Runs[0].Devices) != 1 {
		t.Fatalf("%+v", doc)
	}
	d := doc.Runs[0].Devices[0]
	var sum int64
	for _, c := range d.Categories {
		sum += c.Bytes
	}
	if sum != d.Allocated || sum <= 0 || d.Conservation.Verdict != schemas.Exact {
		t.Errorf("at %s: the categories sum to %d, allocated are %d, %+v", at, sum, d.Allocated, d.Conservation)
	}
	return d.Allocated
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	e := record(t, training, nil, []string{"100000"}, "trained 5", func(p *os.Process) { p.Signal(syscall.SIGINT) })
	e.expect(t, schemas.StatusKilled, exitFailed)
	if !strings.Contains(e.manifest.Reason, "interrupted by") {
		t.Errorf("reason %q", e.manifest.Reason)
	}
}

// If Python raises an exception anywhere in the agent's code, no event is lost or written twice.
func TestInterruptedAnywhere(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	e := record(t, pressing, nil, []string{"recorder/allocator", "hooks/script_history", "journal", "tags"}, "", nil)
	e.expect(t, schemas.StatusOK, exitDone)
	if n := e.number(t, "interrupted"); n < 100 {
		t.Errorf("only %d interruptions", n)
	}
}

// If Python raises an exception anywhere in the code by which the agent counts steps, the recorded steps still begin
// and end in turn, without a gap in their numbers.
func TestStepsEndWhole(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	e := record(t, pressing, nil, []string{"recorder/policy", "recorder/boundary", "recorder/windows"}, "", nil)
	e.expect(t, schemas.StatusOK, exitDone)
	marks, err := schemas.Marks.Read(e.dir)
	if err != nil {
		t.Fatal(err)
	}
	next, begun := uint64(0), true
	for i := range marks {
		m := &marks[i]
		end, begin := m.Kind == spool.StepEnd.String(), m.Kind == spool.StepBegin.String()
		if (end || begin) && (m.A != next || begun != end) {
			t.Errorf("mark %d is %s %d; step %d had begun: %v", m.K, m.Kind, m.A, next, begun)
		}
		switch {
		case end:
			next, begun = m.A+1, false
		case begin:
			begun = true
		}
	}
	if n := e.number(t, "interrupted"); n < 20 || next < 20 {
		t.Errorf("only %d interruptions, %d steps", n, next)
	}
}

const pair = `
name: pair
defaults: {model: mlp, preset: tiny, num_iter: 2000}
experiments: [{method: vanilla}, {method: dpsgd}]
`

// If a suite of two experiments is interrupted during the first one, dpsight ends and keeps that run, and never starts
// the second experiment.
func TestSuiteInterrupted(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	interpreter, dir := python(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pair.yaml"), []byte(pair), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("dpsight", "collect", "--suite", "pair.yaml", "--device", "phantom", "--python", interpreter,
		"--store", "store")
	stderr := &watched{word: "step ", seen: make(chan struct{})}
	cmd.Dir, cmd.Stderr = dir, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-stderr.seen:
	case <-time.After(3 * time.Minute):
		t.Errorf("no step was seen\n%s", stderr.text())
	}
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	said := stderr.text()
	if cmd.ProcessState.ExitCode() != exitFailed || strings.Contains(said, "experiment 2 of 2") ||
		!strings.Contains(said, "dpsight: error: the suite was interrupted after 1 of 2 experiments\n") {
		t.Errorf("%s\n%s", cmd.ProcessState, said)
	}
	var doc breakdownDoc
	if err := json.Unmarshal([]byte(must(t, dir, "analyze", "breakdown", "store", "--format", "json").stdout),
		&doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Runs) != 1 || doc.Runs[0].Status != schemas.StatusKilled || len(doc.Runs[0].Devices) != 1 {
		t.Errorf("%+v", doc)
	}
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	e := record(t, training+"time.sleep(1000)\n", []string{"--timeout", "40s"}, []string{"3"}, "", nil)
	e.expect(t, schemas.StatusTimeout, exitFailed)
	if !strings.Contains(e.manifest.Reason, "40s") {
		t.Errorf("reason %q", e.manifest.Reason)
	}
}

func held(t *testing.T, e ending) int64 { return e.number(t, "held") }

// number returns the number that the run's script printed after a word.
func (e ending) number(t *testing.T, word string) (n int64) {
	t.Helper()
	// The number is read from the log: on the terminal the script's stdout and stderr may mix within a line.
	log, err := os.ReadFile(filepath.Join(e.dir, collect.StdoutFile))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(log), word+" ")
	if found, err := fmt.Sscan(text, &n); found != 1 {
		t.Fatalf("%v in %s", err, log)
	}
	return n
}

func TestOutOfMemory(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	e := record(t, hoarding, nil, []string{"die"}, "", nil)
	peak := e.expect(t, schemas.StatusOOM, exitFailed)
	r, err := schemas.ReadIngestReport(e.dir)
	if err != nil || len(r.OOMs) != 1 || !r.OOMs[0].Fatal || r.OOMs[0].RequestedBytes != 4<<30 {
		t.Fatalf("%+v, %v", r.OOMs, err)
	}
	if at, want := e.allocated(t, fmt.Sprintf("event=%d", r.OOMs[0].Seq)), held(t, e); at != want || peak != want {
		t.Errorf("%d bytes when it failed, %d at the peak; torch held %d", at, peak, want)
	}
}

func TestOutOfMemoryCaught(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	e := record(t, hoarding, nil, []string{"live"}, "", nil)
	if peak, want := e.expect(t, schemas.StatusOK, exitDone), held(t, e); peak != want {
		t.Errorf("%d bytes at the peak, torch held %d", peak, want)
	}
	r, err := schemas.ReadIngestReport(e.dir)
	if err != nil || len(r.OOMs) != 1 || r.OOMs[0].Fatal {
		t.Errorf("%+v, %v", r.OOMs, err)
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	flags := []string{"--name", "unlucky", "--param", "lr=0.1"}
	e := record(t, training+"raise ValueError('the loss is not a number')\n", flags, []string{"3"}, "", nil)
	e.expect(t, schemas.StatusFailed, exitFailed)
	if m := e.manifest; m.Name != "unlucky" || m.Params["lr"] != "0.1" || m.ExitCode == nil || *m.ExitCode != 1 ||
		m.Reason != "ValueError: the loss is not a number" {
		t.Errorf("%+v", m)
	}
}
