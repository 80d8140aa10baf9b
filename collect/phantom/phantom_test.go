package phantom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// testLibrary returns the phantom GPU built from the current sources. testLibrary takes the phantom GPU from the user's
// cache, or builds the phantom GPU there first.
func testLibrary(t *testing.T) *Library {
	t.Helper()
	python := testkit.Python(t)
	library, err := Build(t.Context(), Options{Python: python})
	if err != nil {
		t.Fatal(err)
	}
	library.ScratchDir = t.TempDir()
	return library
}

// runScript runs a script of testdata, decodes what it prints into into, and returns its stderr.
func runScript(t *testing.T, library *Library, into any, script string, env []string, arguments ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), library.Python,
		append([]string{"-W", "ignore", filepath.Join("testdata", script)}, arguments...)...)
	command.Env = append(library.Env(os.Environ()), env...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, stderr.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), into); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, stdout.String())
	}
	return stderr.String()
}

func TestTraining(t *testing.T) {
	library := testLibrary(t)
	var got struct {
		Available                                 bool
		Devices                                   int
		Name                                      string
		Total, Parameters, State, Peak, Requested int64
		FreeAtStart                               int64 `json:"free_at_start"`
		AfterModel                                int64 `json:"after_model"`
		FirstGrowth                               int64 `json:"first_growth"`
		SecondGrowth                              int64 `json:"second_growth"`
		Allocations                               int64
		AllocEvents                               int64 `json:"alloc_events"`
		RequestedEvents                           int64 `json:"requested_events"`
		Elapsed                                   float64
		Drivers                                   []string
	}
	runScript(t, library, &got, "training.py", nil)
	profile := library.Profile
	if !got.Available || got.Devices != 1 || got.Name != profile.Name ||
		got.Total != profile.Properties["total_memory_bytes"] {
		t.Errorf("the device is %+v", got)
	}
	if want := got.Total - profile.Properties["context_bytes"]; got.FreeAtStart != want {
		t.Errorf("free at start: got %d, want %d", got.FreeAtStart, want)
	}
	if got.Parameters == 0 || got.AfterModel != got.Parameters {
		t.Errorf("the model takes %d bytes, its parameters %d", got.AfterModel, got.Parameters)
	}
	if got.State != 2*got.Parameters || got.FirstGrowth != got.State || got.SecondGrowth != 0 {
		t.Errorf("AdamW's state takes %d bytes, the first step grew by %d, the second by %d", got.State,
			got.FirstGrowth, got.SecondGrowth)
	}
	if got.Peak < 4*got.Parameters {
		t.Errorf("the peak of %d bytes holds less than parameters, gradients and state", got.Peak)
	}
	if got.Allocations == 0 || got.AllocEvents != got.Allocations || got.RequestedEvents != got.Requested {
		t.Errorf("history has %d allocations of %d bytes, the statistics %d of %d", got.AllocEvents,
			got.RequestedEvents, got.Allocations, got.Requested)
	}
	if got.Elapsed != 1 {
		t.Errorf("elapsed_time: got %v, want the constant 1", got.Elapsed)
	}
	if len(got.Drivers) != 2 {
		t.Errorf("loaded: %v", got.Drivers)
	}
}

// torch must load the phantom GPU's driver and NVML even if another driver and NVML come first in LD_LIBRARY_PATH.
func TestDecoysAreNotLoaded(t *testing.T) {
	library := testLibrary(t)
	decoys := t.TempDir()
	source := filepath.Join(decoys, "decoy.c")
	write(t, source, "int decoy(void) { return 0; }\n", 0o644)
	for _, name := range []string{"libcuda.so.1", "libnvidia-ml.so.1"} {
		if output, err := exec.Command("gcc", "-shared", "-fPIC", "-Wl,-soname,"+name, "-o",
			filepath.Join(decoys, name), source).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	var got struct{ Drivers []string }
	runScript(t, library, &got, "training.py", []string{"LD_LIBRARY_PATH=" + decoys})
	want := []string{filepath.Join(library.Dir, "libcuda.so.1"), filepath.Join(library.Dir, "libnvidia-ml.so.1")}
	if !slices.Equal(got.Drivers, want) {
		t.Errorf("loaded: %v", got.Drivers)
	}
}

func TestOutOfMemory(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		allocator, policy string
		held              int64 // blocks of 64 MiB
	}{
		{"expandable_segments:False", "", 16},
		{"expandable_segments:False", "down", 16},
		{"expandable_segments:False", "7", 16},
		{"expandable_segments:False", "@" + recordedSegments(t), 16},
		// Expandable segments grow in steps of 20 MiB, so the sixteenth block would need 1,040 MiB.
		{"expandable_segments:True", "", 15},
	} {
		t.Run(test.allocator+" "+filepath.Base(test.policy), func(t *testing.T) {
			testkit.Part(t, test.policy != "")
			library := testLibrary(t)
			library.MemoryBytes, library.AddressPolicy = 1024*mib, test.policy
			var got struct {
				Held, Free, After, Again int64
				Message                  string
			}
			runScript(t, library, &got, "limit.py", []string{"PYTORCH_CUDA_ALLOC_CONF=" + test.allocator,
				"PYTORCH_ALLOC_CONF=" + test.allocator})
			if got.Held != test.held || got.Free != (1024-64*test.held)*mib || got.After != 1024*mib ||
				got.Again != 64*test.held {
				t.Errorf("got %+v", got)
			}
			if !strings.Contains(got.Message, "CUDA out of memory") ||
				!strings.Contains(got.Message, "capacity of 1024.00 MiB") {
				t.Errorf("message: %s", got.Message)
			}
		})
	}
}

// recordedSegments returns the path of a file that lists segments. limit.py requests segments of the first two
// entries' size, and none of the third entry's.
func recordedSegments(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "segments")
	write(t, path, "4000000 7f0040000000\n4000000 7f0000000000\n200000 7f0000000000\n", 0o644)
	return path
}

func TestValues(t *testing.T) {
	library, module := withModule(t)
	var got map[string]any
	runScript(t, library, &got, "values.py", nil, module)
	want := map[string]any{
		"initialised_by_install": false, "again": true,
		"from_host": []any{7.0, 8.0}, "from_host_float": 1.5, "inference": []any{0.0, 1.0, 2.0},
		"unique_pairs": []any{4.0, 2.0}, "inverse": []any{5.0},
		"nonzero": 9.0, "masked": 10.0, "repeats": 6.0, "coalesced": 1000.0,
		"stale": 0.0, "stale_list": []any{0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, "sum": 127. / 128, "large": 0.0,
		"changed_known": false,
		"copied":        []any{[]any{4.0, 5.0, 6.0}, []any{4.0, 5.0, 6.0}}, "copied_changed_known": []any{false, false},
		"bound": 40.0, "guesses": map[string]any{"_unique2": 1.0},
		"reads": 5.0, "reads_here": true, "notes": true,
	}
	for key, value := range want {
		if fmt.Sprint(got[key]) != fmt.Sprint(value) {
			t.Errorf("%s: got %v, want %v", key, got[key], value)
		}
	}
}

func TestRefusals(t *testing.T) {
	library, module := withModule(t)
	var got map[string]string
	stderr := runScript(t, library, &got, "refusals.py", nil, module)
	if got["green_context"] == "done" || !strings.Contains(stderr, "cuDeviceGetDevResource") {
		t.Errorf("green_context: got %q, and on stderr %q", got["green_context"], stderr)
	}
	if !strings.Contains(got["read_in_capture"], "capturing") {
		t.Errorf("a read during a capture: got %q", got["read_in_capture"])
	}
	estimated := []string{"cholesky", "lstm", "gru", "fft", "qr", "svd", "lstsq", "solve", "sparse_mm"}
	for _, name := range append(estimated, "conv", "graph", "coalesce", "coalesce_unknown", "isin") {
		if got[name] != "done" {
			t.Errorf("%s: got %q", name, got[name])
		}
	}
}

// Where a library reports a workspace's size only on a device, the phantom GPU estimates it. Where torch checks
// unknown values, it assumes that the check succeeds. No operator fails that would not fail on a device.
func TestOperators(t *testing.T) {
	testkit.Rest(t)
	library, module := withModule(t)
	var got struct {
		Tried          int
		Failed         map[string]string
		Notes, Assumed []string
	}
	// Freed memory is overwritten, so that a use after free crashes the script.
	runScript(t, library, &got, "operators.py", []string{"MALLOC_PERTURB_=165"}, module)
	for name, failure := range got.Failed {
		t.Errorf("%s: %s", name, failure)
	}
	notes := strings.Join(got.Notes, "\n")
	for _, estimated := range []string{"a Fourier transform (cuFFT)", "a matrix decomposition (cuSOLVER)",
		"a sparse product (cuSPARSE)", "a product of two sparse matrices (cuSPARSE)",
		"a sum of two sparse matrices (cuSPARSE)", "cuDNN's CTC loss"} {
		if !strings.Contains(notes, estimated+" was estimated without a device") {
			t.Errorf("that %s was estimated is not among\n%s", estimated, notes)
		}
	}
	for _, who := range []string{"torch.distributions", "torch's backward passes"} {
		if !slices.Contains(got.Assumed, who) {
			t.Errorf("%s is not among %q", who, got.Assumed)
		}
	}
	if got.Tried < 150 || strings.Contains(notes, schemas.NoteUnanswered) {
		t.Errorf("%d operators\n%s", got.Tried, notes)
	}
}

func TestVisibleDevices(t *testing.T) {
	testkit.Rest(t)
	library := testLibrary(t)
	library.Devices = 3
	for visible, want := range map[string]string{"": "0 False", "1,2": "2 True", "0,7,1": "1 True", "unset": "3 True"} {
		command := exec.Command(library.Python, "-c", "import torch; print(torch.cuda.device_count(), "+
			"torch.cuda.is_available())")
		command.Env = library.Env(os.Environ())
		if visible != "unset" {
			command.Env = append(command.Env, "CUDA_VISIBLE_DEVICES="+visible)
		}
		output, err := command.CombinedOutput()
		if got := strings.TrimSpace(string(output)); err != nil || got != want {
			t.Errorf("CUDA_VISIBLE_DEVICES=%s: got %q, %v; want %q", visible, got, err, want)
		}
	}
}

func TestConcurrentBuilds(t *testing.T) {
	testkit.Rest(t)
	python, cache := testkit.Python(t), t.TempDir()
	var group sync.WaitGroup
	folders := make([]string, 3)
	for i := range folders {
		group.Go(func() {
			library, err := Build(t.Context(), Options{Python: python, CacheDir: cache})
			if err != nil {
				t.Error(err)
				return
			}
			folders[i] = library.Dir
		})
	}
	group.Wait()
	if folders[0] == "" || folders[0] != folders[1] || folders[0] != folders[2] || !complete(folders[0]) {
		t.Errorf("built %v", folders)
	}
	left, err := filepath.Glob(filepath.Join(cache, "*.partial*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// Build builds a damaged entry of the cache again.
	if err := os.Remove(filepath.Join(folders[0], "libcuda.so.1")); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), Options{Python: python, CacheDir: cache}); err != nil || !complete(folders[0]) {
		t.Errorf("not mended: %v", err)
	}
}

// A process that ends right after a backward pass, while a thread of torch's autograd engine still works, ends
// normally and within seconds (see csrc/finalize.c).
func TestProcessesEndCleanly(t *testing.T) {
	library := testLibrary(t)
	ends := 1
	if testkit.WithRest() {
		ends = 3
	}
	for range ends {
		var last struct {
			NS int64 `json:"end_ns"` // when the script came to its end, so that the import of torch does not count
		}
		runScript(t, library, &last, "exits.py", nil)
		if took := time.Since(time.Unix(0, last.NS)); took > 9*time.Second {
			t.Errorf("the end took %v", took)
		}
	}
}

// On the phantom GPU, kernels of extensions and of Triton run as no-ops, as torch's kernels do. A note names their
// library, since their results are unknown.
func TestForeignKernelsAreNamed(t *testing.T) {
	testkit.Rest(t)
	library, module := withModule(t)
	source := filepath.Join(module, "extension.c")
	write(t, source, `#include <stddef.h>
struct dim3 { unsigned x, y, z; };
int cudaLaunchKernel(const void *, struct dim3, struct dim3, void **, size_t, void *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);
int cuLaunchKernelEx(void *, void *, void **, void **);
static struct dim3 one = {1, 1, 1};
int run(void **arguments) { int status = cudaLaunchKernel(run, one, one, arguments, 0, NULL); return status; }
int run_driver(void **arguments) {
	int status = cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
	return status;
}
int run_driver_ex(void **arguments) { int status = cuLaunchKernelEx(NULL, NULL, arguments, NULL); return status; }
int run_packed(void **arguments) {
    void *values[] = {*(void **)arguments[0], *(void **)arguments[1]};
    size_t bytes = sizeof values;
    void *packed[] = {(void *)1, values, (void *)2, &bytes, NULL};
    int status = cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, packed);
    return status;
}
`, 0o644)
	for _, name := range []string{"some_extension.so", "triton/some_extension.so", "torchinductor_me/some_extension.so",
		"expected/libtorch_some.so"} {
		extension := filepath.Join(module, name)
		if err := os.MkdirAll(filepath.Dir(extension), 0o755); err != nil {
			t.Fatal(err)
		}
		if output, err := exec.Command("gcc", "-w", "-O0", "-shared", "-fPIC", "-o", extension,
			source).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	var got struct {
		Before, After []string
		Known         map[string][]bool
	}
	runScript(t, library, &got, "foreign.py", nil, module)
	want := []string{
		"kernels of some_extension.so ran as no-ops: the values that they compute are unknown",
		"Triton kernels ran as no-ops: the values that they compute are unknown",
	}
	if len(got.Before) != 0 || !slices.Equal(got.After, want) {
		t.Errorf("notes before it ran %q, after it %q", got.Before, got.After)
	}
	if len(got.Known) != 5 {
		t.Errorf("of other launches: %v", got.Known)
	}
	for launch, known := range got.Known {
		want := []bool{false, false, true, true}
		if launch == "expected" {
			want = []bool{true, true, true, true}
		}
		if !slices.Equal(known, want) {
			t.Errorf("after %s the tensors are known: %v, want %v", launch, known, want)
		}
	}
}
