package livetest_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// facts are what a process of a tested script prints about itself.
type facts struct {
	PID   int64 `json:"pid"`
	Steps int64 `json:"steps"`
	Peak  int64 `json:"peak"` // the highest of torch's counter, also over resets
}

// kind is a kind of script: how the test calls it, how it ends without dpsight, and how it differs from a plain
// script.
type kind struct {
	name     string
	args     []string // script of testdata and its arguments
	torchrun int      // ranks; 0 = run by Python itself
	environ  []string
	code     int
	status   string // "" = ok
	// silent processes record nothing on a device
	silent bool
	// journals is how many journals the run has; 0 = one
	journals int
	// reads is true if the script's course depends on a loss, which the phantom GPU does not compute
	reads bool
	// rest is true if make test leaves the kind out, since other kinds take the same paths
	rest bool
}

var kinds = []kind{
	{name: "plain", args: []string{"loops.py", "plain"}},
	{name: "accumulation", args: []string{"loops.py", "accumulate"}, rest: true},
	{name: "gan", args: []string{"loops.py", "gan"}, rest: true},
	{name: "closure", args: []string{"loops.py", "closure"}, rest: true},
	{name: "lbfgs", args: []string{"loops.py", "lbfgs"}, reads: true, rest: true},
	{name: "kept gradients", args: []string{"loops.py", "keep"}, rest: true},
	{name: "manual update", args: []string{"loops.py", "manual"}, rest: true},
	{name: "evaluation", args: []string{"loops.py", "evaluate"}, rest: true},
	{name: "grad scaler", args: []string{"loops.py", "scaler"}, rest: true},
	{name: "checkpoint reentrant", args: []string{"checkpointing.py", "reentrant"}, rest: true},
	{name: "checkpoint non-reentrant", args: []string{"checkpointing.py", "nonreentrant"}, rest: true},
	{name: "checkpoint nested", args: []string{"checkpointing.py", "nested"}, rest: true},
	{name: "checkpoint sequential", args: []string{"checkpointing.py", "sequential"}, rest: true},
	{name: "compiled module", args: []string{"compiled.py", "module", "aot_eager"}, rest: true},
	{name: "compiled in place", args: []string{"compiled.py", "inplace", "aot_eager"}, rest: true},
	{name: "compiled optimizer", args: []string{"compiled.py", "optimizer", "aot_eager"}, rest: true},
	{name: "compiled step", args: []string{"compiled.py", "step", "aot_eager"}, rest: true},
	{name: "compiled by inductor", args: []string{"compiled.py", "module", "inductor"}, rest: true},
	{name: "ddp gloo", args: []string{"ranks.py", "ddp", "gloo"}, torchrun: 1, rest: true},
	{name: "ddp nccl", args: []string{"ranks.py", "ddp", "nccl"}, torchrun: 1, rest: true},
	{name: "ddp gloo, two ranks", args: []string{"ranks.py", "ddp", "gloo"}, torchrun: 2, journals: 2},
	{name: "spawned ranks", args: []string{"ranks.py", "spawn"}, journals: 2, rest: true},
	{name: "data loader", args: []string{"ranks.py", "loader"}, rest: true},
	{name: "fork", args: []string{"ranks.py", "fork"}},
	{name: "fork before cuda", args: []string{"ranks.py", "early"}, journals: 2, rest: true},
	{name: "started before cuda", args: []string{"ranks.py", "start"}, journals: 3},
	{name: "reset counters", args: []string{"memory.py", "reset"}, rest: true},
	{name: "own history", args: []string{"memory.py", "history"}, rest: true},
	{name: "streams", args: []string{"memory.py", "streams"}, rest: true},
	{name: "empty cache", args: []string{"memory.py", "empty"}, rest: true},
	{name: "expandable segments", args: []string{"memory.py", "expandable"},
		environ: []string{"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}},
	{name: "memory pool", args: []string{"memory.py", "pool"}, rest: true},
	{name: "cuda graph", args: []string{"memory.py", "graph"}, rest: true},
	{name: "oom caught", args: []string{"memory.py", "caught"}, rest: true},
	{name: "oom fatal", args: []string{"memory.py", "fatal"}, code: 1, status: schemas.StatusOOM, rest: true},
	{name: "os._exit", args: []string{"ends.py", "exit"}, code: 3, status: schemas.StatusFailed},
	{name: "exec", args: []string{"ends.py", "exec"}, journals: 2, rest: true},
	{name: "exception", args: []string{"ends.py", "exception"}, code: 1, status: schemas.StatusFailed, rest: true},
	{name: "keyboard interrupt", args: []string{"ends.py", "interrupt"}, code: -2, status: schemas.StatusKilled,
		rest: true},
	{name: "exit status", args: []string{"ends.py", "status"}, code: 4, status: schemas.StatusFailed, rest: true},
	{name: "opacus hooks", args: []string{"private.py", "hooks"}, rest: true},
	{name: "opacus ew", args: []string{"private.py", "ew"}, rest: true},
	{name: "opacus functorch", args: []string{"private.py", "functorch"}, rest: true},
	{name: "opacus ghost", args: []string{"private.py", "ghost"}, rest: true},
	{name: "opacus hooks, physical batches", args: []string{"private.py", "hooks", "8"}, rest: true},
	{name: "opacus ghost, physical batches", args: []string{"private.py", "ghost", "8"}},
	{name: "without torch", args: []string{"notorch.py"}, silent: true, journals: -1},
	{name: "without cuda", args: []string{"nocuda.py"}, silent: true, rest: true},
}

func (k *kind) command(t *testing.T, python string) []string {
	command := []string{python, script(t, k.args[0])}
	if k.torchrun > 0 {
		command = []string{filepath.Join(filepath.Dir(python), "torchrun"), "--standalone", "--nproc-per-node",
			strconv.Itoa(k.torchrun), command[1]}
	}
	return append(command, k.args[1:]...)
}

// Scripts of every kind must run as they do without dpsight, and conservation of their runs must be exact.
func TestKindsOfScript(t *testing.T) {
	python := testkit.Python(t)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			testkit.Part(t, k.rest)
			t.Parallel()
			takeSlot(t)
			r := record(t, environment(k.environ...), k.command(t, python)...)
			k.expectEnd(t, r.manifest)
			said := factsOf(t, r.stdout)
			if complaint := complaints(r.stderr); len(complaint) > 0 {
				t.Errorf("the agent complains: %q", complaint)
			}
			expectFacts(t, &k, r, said)
			expectConserved(t, r.dir, r.report)
			if long() {
				k.expectSameWithout(t, python, said)
			}
		})
	}
}

func (k *kind) expectEnd(t *testing.T, m *schemas.Manifest) {
	t.Helper()
	status := k.status
	if status == "" {
		status = schemas.StatusOK
	}
	if m.Status != status {
		t.Errorf("status %s (%s), not %s", m.Status, m.Reason, status)
	}
	if code := exitCode(m); code != k.code {
		t.Errorf("exit code %d, not %d", code, k.code)
	}
}

// exitCode is a run's exit code, or the negative number of the signal that ended it.
func exitCode(m *schemas.Manifest) int {
	switch {
	case m.ExitCode != nil:
		return *m.ExitCode
	case m.Signal != nil && *m.Signal == "SIGINT":
		return -2
	}
	return -1000
}

func factsOf(t *testing.T, stdout string) []facts {
	t.Helper()
	var out []facts
	for line := range strings.Lines(stdout) {
		if text, ok := strings.CutPrefix(line, "FACTS "); ok {
			var f facts
			if err := json.Unmarshal([]byte(text), &f); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			out = append(out, f)
		}
	}
	return out
}

// complaints returns the agent's messages, and Python's messages about the agent's objects at the interpreter's
// end.
func complaints(stderr string) []string {
	var out []string
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "dpsight:") || strings.HasPrefix(line, "Exception ignored") {
			out = append(out, line)
		}
	}
	return out
}

// expectFacts checks that the tables have a row for each process of the script, and that its steps and its peak are
// those that the process printed.
func expectFacts(t *testing.T, k *kind, r *recorded, said []facts) {
	t.Helper()
	processes, err := schemas.Processes.Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := schemas.Steps.Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	journals := max(k.journals, 0)
	if k.journals == 0 {
		journals = 1
	}
	if len(processes) != journals || len(said) != journals {
		t.Fatalf("%d processes recorded, %d said something; %d expected", len(processes), len(said), journals)
	}
	slices.SortFunc(processes, func(a, b schemas.Process) int { return int(a.StartNS - b.StartNS) })
	for _, p := range processes {
		i := slices.IndexFunc(said, func(f facts) bool { return f.PID == p.PID })
		if i < 0 {
			t.Errorf("process %d of rank %d said nothing", p.PID, p.Rank)
			continue
		}
		f := said[i]
		said = slices.Delete(slices.Clone(said), i, i+1) // after exec, two processes have the same PID
		count := map[int32]int64{}
		for _, s := range steps {
			if s.Rank == p.Rank {
				count[s.Device]++
			}
		}
		if device := p.Rank; len(count) != 1 || count[device] != f.Steps && count[0] != f.Steps {
			t.Errorf("rank %d: steps by device %v, the script made %d", p.Rank, count, f.Steps)
		}
		verdicts := 0
		for _, v := range r.report.Devices {
			if v.Rank != p.Rank || v.Events == 0 {
				continue
			}
			verdicts++
			if v.PeakAllocatedBytes != f.Peak || v.TorchPeakAllocatedBytes == nil ||
				*v.TorchPeakAllocatedBytes != f.Peak {
				t.Errorf("rank %d, device %d: peak %d replayed, %v counted, the script read %d", v.Rank, v.Device,
					v.PeakAllocatedBytes,
					value(v.TorchPeakAllocatedBytes), f.Peak)
			}
		}
		if want := 1; !k.silent && verdicts != want {
			t.Errorf("rank %d: %d devices with events, not %d", p.Rank, verdicts, want)
		} else if k.silent && verdicts != 0 {
			t.Errorf("rank %d: %d devices with events in a run without CUDA", p.Rank, verdicts)
		}
	}
}

func value(n *int64) any {
	if n == nil {
		return "nothing"
	}
	return *n
}

// followed is a Python program that runs a script with phantom_values, which predictions use to follow the values of
// the phantom GPU. followed uses nothing else of dpsight.
const followed = `import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
import torch, phantom_values
phantom_values.install(torch)
sys.argv.pop(0)
sys.path[0] = sys.argv[0].rpartition("/")[0]
runpy.run_path(sys.argv[0], run_name="__main__")`

// expectSameWithout runs the script on the phantom GPU without dpsight, and checks that the exit code, the number of
// steps and the peak are the same as with dpsight.
func (k *kind) expectSameWithout(t *testing.T, python string, said []facts) {
	t.Helper()
	library, err := phantom.Build(t.Context(), phantom.Options{Python: python})
	if err != nil {
		t.Fatal(err)
	}
	library.ScratchDir = t.TempDir() // as in predictions, TorchInductor's cache is empty
	argv := k.command(t, python)
	if k.reads {
		if _, err := phantom.Unpack(library.ScratchDir); err != nil {
			t.Fatal(err)
		}
		argv = slices.Concat([]string{argv[0], "-c", followed, library.ScratchDir}, argv[1:])
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = library.Env(environment(k.environ...))
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr output
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Run()
	code := cmd.ProcessState.ExitCode()
	if code < 0 && !cmd.ProcessState.Exited() {
		code = -2 // SIGINT is the only signal that ends a kind of script
	}
	if code != k.code {
		t.Errorf("without dpsight: exit code %d, not %d\n%s", code, k.code, tail(stderr.String()))
	}
	alone := factsOf(t, stdout.String())
	if len(alone) != len(said) {
		t.Fatalf("without dpsight: %d processes said something, not %d\n%s", len(alone), len(said),
			tail(stderr.String()))
	}
	for i := range alone {
		if alone[i].Peak != said[i].Peak || alone[i].Steps != said[i].Steps {
			t.Errorf("without dpsight: %d steps and a peak of %d; with it %d and %d", alone[i].Steps, alone[i].Peak,
				said[i].Steps, said[i].Peak)
		}
	}
}
