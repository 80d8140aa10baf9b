package livetest_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
)

// attachedEnviron returns the environment of a process on the phantom GPU that dpsight does not start. The process can
// import the Python package dpsight, but finds no dpsight program.
func attachedEnviron(t *testing.T, python string, more ...string) []string {
	t.Helper()
	machine, err := collect.OpenMachine("phantom")
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	vars, err := collect.PhantomEnv(context.Background(), machine, python, 1)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := filepath.Abs("../agent/python")
	if err != nil {
		t.Fatal(err)
	}
	env := environment("PYTHONPATH="+agent, "PATH="+filepath.Dir(python)+":/usr/bin:/bin")
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	return append(env, more...)
}

// attachedRun ingests a run that an attached process wrote, as dpsight ingest does, and checks that conservation is
// exact.
func attachedRun(t *testing.T, dir string) (*schemas.Manifest, *schemas.IngestReport) {
	t.Helper()
	outcomes, err := ingest.Import(dir, filepath.Dir(dir), ingest.Options{Version: "test", Prepare: collect.Recover})
	if err != nil || len(outcomes) != 1 || outcomes[0].State == schemas.IngestRefused {
		t.Fatalf("%s: %v, %+v", dir, err, outcomes)
	}
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := schemas.ReadIngestReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Devices) != 1 || r.Devices[0].Verdict != schemas.Exact || r.Devices[0].ResidueBytes != 0 {
		t.Errorf("%s: conservation is not exact: %+v", filepath.Base(dir), r.Devices)
	}
	return m, r
}

// expectPlanted checks that a run ended with a failed request for a tebibyte, and that the tables give it the script's
// line with the comment PLANTED.
func expectPlanted(t *testing.T, dir, script string) {
	t.Helper()
	m, r := attachedRun(t, dir)
	if m.Status != schemas.StatusOOM || m.Attached == nil || m.Attached.PID <= 0 {
		t.Errorf("status %s, attached %+v", m.Status, m.Attached)
	}
	if len(r.OOMs) != 1 || r.OOMs[0].RequestedBytes != 1<<40 || !r.OOMs[0].EndUnknown {
		t.Fatalf("failed requests: %+v", r.OOMs)
	}
	lines, err := schemas.Lines.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(text), "# PLANTED")
	at := slices.IndexFunc(lines, func(l schemas.Line) bool { return l.Line == r.OOMs[0].Line })
	if want := int64(strings.Count(before, "\n") + 1); !found || at < 0 || lines[at].Number != want {
		t.Errorf("the line of the request is %d of %+v, and not line %d", r.OOMs[0].Line, lines, want)
	}
}

// expectHolder fails the test unless the run has a block of this size with a holder whose path contains name.
func expectHolder(t *testing.T, dir string, bytes int64, name string) {
	t.Helper()
	allocations, err := schemas.Allocations.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	holders, err := schemas.Holders.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, h := range holders {
		i := slices.IndexFunc(allocations, func(a schemas.Allocation) bool {
			return a.AllocID == h.AllocID && a.RequestedBytes == bytes
		})
		if i >= 0 {
			paths = append(paths, h.Path)
		}
	}
	if !slices.ContainsFunc(paths, func(p string) bool { return strings.Contains(p, name) }) {
		t.Errorf("blocks of %d bytes are held by %q, none by %s", bytes, paths, name)
	}
}

// A script attaches dpsight in the middle of a training, runs out of memory, and detaches dpsight.
func TestAttachAmidTraining(t *testing.T) {
	cycles := 10
	if testkit.WithRest() {
		cycles = 100
	}
	attachAmidTraining(t, schemas.Predicted, cycles)
}

// The test repeats TestAttachAmidTraining as on a real GPU, where some steps are bare.
func TestAttachAsOnAGPU(t *testing.T) {
	testkit.Rest(t)
	attachAmidTraining(t, schemas.Measured, 10)
}

// attachAmidTraining runs a script that attaches dpsight to its own process and detaches it, and then does so cycles
// times more.
func attachAmidTraining(t *testing.T, source string, cycles int) {
	python, store, temporary := testkit.Python(t), t.TempDir(), t.TempDir()
	cmd := exec.Command(python, script(t, "attach.py"), store, strconv.Itoa(cycles), source)
	cmd.Env = attachedEnviron(t, python, "TMPDIR="+temporary)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var said struct {
		Runs, Left, Names, Files []string
		LeftByCycles             []string `json:"left by cycles"`
		Signals                  []int
		Caught                   bool
		Allocated, Untraced      int64
		Models, Optimizers       int
		Grown                    struct{ Objects, RSS int64 }
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(said.Left)+len(said.LeftByCycles)+len(said.Names)+len(said.Files) > 0 {
		t.Errorf("attaching left %v, %v: names %v, files %v", said.Left, said.LeftByCycles, said.Names, said.Files)
	}
	// If each time left a reference cycle, the process would grow by thousands of objects. If each time left a journal
	// mapped, it would grow by a mebibyte each.
	if said.Grown.Objects > int64(cycles) || said.Grown.RSS > 4<<20 {
		t.Errorf("%d times grew the process by %d objects and %d bytes", cycles, said.Grown.Objects, said.Grown.RSS)
	}
	if !said.Caught || !slices.Equal(said.Signals, []int{12}) {
		t.Errorf("the script caught its error: %v, its handler heard signals %v", said.Caught, said.Signals)
	}
	if said.Untraced != said.Allocated || said.Models != 1 || said.Optimizers != 1 {
		t.Errorf("%d of %d bytes came before, of %d models and %d optimizers", said.Untraced, said.Allocated,
			said.Models, said.Optimizers)
	}
	if !strings.Contains(stderr.String(), "at most 50,000 events (38 MiB of host memory), the journal at most 64 MiB") {
		t.Errorf("the bounds of what it keeps are not said:\n%s", stderr.String())
	}
	if len(said.Runs) != 3 {
		t.Fatalf("runs: %v", said.Runs)
	}
	for i, reason := range []string{"dpsight.dump()", "SIGUSR2", "a request for memory failed"} {
		m, r := attachedRun(t, said.Runs[i])
		if m.Attached == nil || m.Attached.Reason != reason || m.Attached.UntracedBytes != said.Allocated {
			t.Errorf("run %d: %+v, expected for %s", i, m.Attached, reason)
		}
		if r.Steps.Derived != 4 || m.Source != source {
			t.Errorf("run %d, %s, has %d steps since it was attached to", i, m.Source, r.Steps.Derived)
		}
		if m.Environment == nil || m.Host.Cores == 0 || m.Collector.NVML || m.Collector.NVMLReason == "" {
			t.Errorf("run %d: what is to be completed is not: %+v", i, m.Collector)
		}
		host, err := schemas.HostSamples.Read(said.Runs[i])
		if err != nil || len(host) == 0 || host[len(host)-1].RSSBytes < 50<<20 {
			t.Errorf("run %d: samples of the process %+v, %v", i, host, err)
		}
	}
	expectPlanted(t, said.Runs[2], script(t, "attach.py"))
	expectHolder(t, said.Runs[2], 8<<20, "global kept")
	expectHolder(t, said.Runs[2], 5<<20, "global older")
	left, err := filepath.Glob(filepath.Join(temporary, "dpsight-attached-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("journals are left: %v, %v", left, err)
	}
}

// If the Python package dpsight is installed and DPSIGHT_ATTACH is set, dpsight records a server whose code does not
// use dpsight.
func TestAttachServer(t *testing.T) {
	python, folder, site := testkit.Python(t), t.TempDir(), t.TempDir()
	source, err := os.ReadFile("../../scripts/wheels.py")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "\nPTH = '")
	line, _, found := strings.Cut(rest, "\\n'\n")
	if !found || os.WriteFile(filepath.Join(site, "dpsight_attach.pth"), []byte(line+"\n"), 0o600) != nil {
		t.Fatal("scripts/wheels.py has no line for an installed package's .pth file")
	}
	const run = "import runpy, site, sys; site.addsitedir(sys.argv[1]); runpy.run_path(sys.argv[2], run_name='__main__')"
	cmd := exec.Command(python, "-c", run, site, script(t, "attach_server.py"))
	cmd.Dir = folder
	cmd.Env = attachedEnviron(t, python, "DPSIGHT_ATTACH=1", "DPSIGHT_ATTACH_NAME=server")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(out)) != "[200, 200, 200, 507, 200]" {
		t.Fatalf("the server answered %s, %v\n%s", out, err, stderr.String())
	}
	runs, err := filepath.Glob(filepath.Join(folder, "runs", "*-server-*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, %v\n%s", runs, err, stderr.String())
	}
	expectPlanted(t, runs[0], script(t, "attach_server.py"))
	expectHolder(t, runs[0], 4096*512*4, "global answers")
}

// If a worker under torchrun attaches dpsight and runs out of memory, it writes a run of its own, and torchrun reports
// the error as without dpsight.
func TestAttachWorkers(t *testing.T) {
	testkit.Rest(t)
	python, store := testkit.Python(t), t.TempDir()
	errors := filepath.Join(t.TempDir(), "error.json")
	cmd := exec.Command(python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
		script(t, "attach_rank.py"), store)
	cmd.Env = attachedEnviron(t, python, "TORCHELASTIC_ERROR_FILE="+errors)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "OutOfMemoryError") {
		t.Fatalf("torchrun ended with %v\n%s", err, out)
	}
	if text, err := os.ReadFile(errors); err != nil || !strings.Contains(string(text), "CUDA out of memory") {
		t.Errorf("torchrun's file of errors: %s, %v", text, err)
	}
	run := onlyRun(t, store)
	expectPlanted(t, run, script(t, "attach_rank.py"))
	expectHolder(t, run, 1024*512*4, "history")
}

// beside returns the interpreter that an environment variable names, and the folder of its packages. beside skips the
// test if the variable is unset.
func beside(t *testing.T, variable, requirements string) (python, packages string) {
	t.Helper()
	python = os.Getenv(variable)
	if python == "" {
		t.Skipf("%s is unset: it names a Python with what is in %s", variable, requirements)
	}
	out, err := exec.Command(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").Output()
	if err != nil {
		t.Fatal(err)
	}
	return python, strings.TrimSpace(string(out))
}

// If a notebook's cell runs out of memory, the error appears in that cell, later cells run, and the run's tables have
// the cell's line.
func TestAttachNotebook(t *testing.T) {
	testkit.Rest(t)
	python, store := testkit.Python(t), t.TempDir()
	notebooks, _ := beside(t, "DPSIGHT_TEST_NOTEBOOKS_PYTHON", "requirements/notebooks.txt")
	variables := map[string]string{}
	var own []string // environment of the process that executes the notebook, without a phantom GPU
	for _, v := range attachedEnviron(t, python) {
		name, value, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "PHANTOM_") || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "T") {
			variables[name] = value
		} else {
			own = append(own, v)
		}
	}
	text, err := json.Marshal(variables)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(notebooks, script(t, "attach_notebook.py"), python, store)
	cmd.Env = append(own, "KERNEL_VARIABLES="+string(text))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(out)) != `["OutOfMemoryError", "1 goes on"]` {
		t.Fatalf("the cells said %s, %v\n%s", out, err, stderr.String())
	}
	run := onlyRun(t, store)
	m, r := attachedRun(t, run)
	if m.Status != schemas.StatusOOM || len(r.OOMs) != 1 || r.OOMs[0].RequestedBytes != 1<<40 {
		t.Fatalf("%+v, %+v", m, r.OOMs)
	}
	lines, err := schemas.Lines.Read(run)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(lines, func(l schemas.Line) bool {
		return l.Line == r.OOMs[0].Line && l.Number == 2 && l.Function == "<module>"
	}) {
		t.Errorf("line %d of %+v is not the cell's second", r.OOMs[0].Line, lines)
	}
	expectHolder(t, run, 1024*512*4, "global answers[2]")
}

// If an actor of Ray runs out of memory, Ray hands the error to the caller and the actor continues, as without
// dpsight.
func TestAttachActor(t *testing.T) {
	if os.Getenv("DPSIGHT_TEST_LONG") == "" {
		t.Skip("DPSIGHT_TEST_LONG is unset: Ray takes minutes to begin on a busy machine")
	}
	python, store := testkit.Python(t), t.TempDir()
	_, packages := beside(t, "DPSIGHT_TEST_RAY_PYTHON", "requirements/ray.txt")
	env := attachedEnviron(t, python, "RAY_AUTH_MODE=disabled", "RAY_USAGE_STATS_ENABLED=0")
	for i, v := range env {
		if strings.HasPrefix(v, "PYTHONPATH=") {
			env[i] += string(os.PathListSeparator) + packages
		}
	}
	cmd := exec.Command(python, script(t, "attach_actor.py"), store)
	cmd.Env = env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `{"before": [1, 2, 3], "heard": "OutOfMemoryError", "after": 4}`) {
		t.Fatalf("the actor said %s, %v\n%s", out, err, stderr.String())
	}
	run := onlyRun(t, store)
	expectPlanted(t, run, script(t, "attach_actor.py"))
	expectHolder(t, run, 1024*512*4, "kept[2]")
}

// onlyRun returns the folder of a store's run, and fails the test unless the store has exactly one.
func onlyRun(t *testing.T, store string) string {
	t.Helper()
	runs, err := filepath.Glob(filepath.Join(store, "*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, %v", runs, err)
	}
	return runs[0]
}

// If an attached process has filled its journal, the agent begins a new journal between steps or where a model is
// called. From there on the recording is exact.
func TestAttachKeepsItsBounds(t *testing.T) {
	testkit.Rest(t)
	for _, mode := range []string{"train", "infer"} {
		t.Run(mode, func(t *testing.T) {
			python, store := testkit.Python(t), t.TempDir()
			cmd := exec.Command(python, script(t, "attach_ring.py"), store, mode)
			cmd.Env = attachedEnviron(t, python, "TMPDIR="+t.TempDir())
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			var said struct {
				Run                            string
				BeganAnew                      int `json:"began_anew"`
				Largest, Child, Journals, Runs int
			}
			if err := json.Unmarshal(out, &said); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if said.BeganAnew < 3 || said.Largest > 8<<20 || said.Journals != 1 || said.Child != 7 || said.Runs != 1 {
				t.Errorf("%+v\n%s", said, stderr.String())
			}
			if strings.Contains(stderr.String(), "failed") {
				t.Errorf("something failed:\n%s", stderr.String())
			}
			m, r := attachedRun(t, said.Run)
			if m.Attached.BeganAnew != said.BeganAnew || len(r.Ranks) != 1 {
				t.Errorf("%+v, %+v", m.Attached, r.Ranks)
			}
			expectHolder(t, said.Run, 3<<20, "global kept")
		})
	}
}
