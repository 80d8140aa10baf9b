package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// stepping is a script that trains with the batch size of its argument. Line 10 of the script reads the loss, which the
// phantom GPU does not compute. Line 12 reads a known value.
const stepping = `
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(3):
    optimizer.zero_grad()
    loss = model(torch.randn(int(sys.argv[1]), 1024).cuda()).square().mean()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
print("memory", torch.cuda.get_device_properties(0).total_memory, torch.cuda.get_device_name())
assert torch.tensor([3, 4]).cuda().tolist() == [3, 4]
`

// scriptFile writes a script into a folder of its own.
func scriptFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// predictDocument runs dpsight predict --format json in a store, with additional environment variables.
func predictDocument(t *testing.T, store string, environ []string, args ...string) (result,
	predict.PredictionDocument) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("dpsight", append([]string{"predict", "--store", store, "--format", "json"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = t.TempDir(), &stdout, &stderr, append(os.Environ(), environ...)
	_ = cmd.Run() // the exit code in the result says whether the command failed
	r := result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	var doc predict.PredictionDocument
	if r.stdout != "" {
		if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil {
			t.Fatalf("%v\n%s%s", err, r.stdout, r.stderr)
		}
	}
	return r, doc
}

// decoys returns a folder with a fake driver and a fake NVML, which leave a file named mark if anything loads them.
func decoys(t *testing.T) (folder, mark string) {
	t.Helper()
	folder = t.TempDir()
	mark, source := filepath.Join(folder, "loaded"), filepath.Join(folder, "decoy.c")
	text := "#include <fcntl.h>\n__attribute__((constructor)) static void loaded(void) { open(\"" + mark +
		"\", O_CREAT | O_WRONLY, 0600); }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"libcuda.so.1", "libnvidia-ml.so.1"} {
		if out, err := exec.Command("gcc", "-shared", "-fPIC", "-Wl,-soname,"+name, "-o", filepath.Join(folder, name),
			source).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return folder, mark
}

// A prediction says whether a script fits, which categories hold the memory, and where the script read unknown values.
// During a prediction, neither the script nor dpsight loads an installed driver or NVML. The variable
// CUDA_VISIBLE_DEVICES has no influence.
func TestPredict(t *testing.T) {
	interpreter, script, store := python(t), scriptFile(t, stepping), t.TempDir()
	folder, mark := decoys(t)
	r, doc := predictDocument(t, store, []string{"LD_LIBRARY_PATH=" + folder, "CUDA_VISIBLE_DEVICES=5"}, "--",
		interpreter,
		script, "64")
	if r.code != exitDone || len(doc.Runs) != 1 || doc.Schema != predict.PredictionSchema {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a driver, or NVML, was loaded")
	}
	p := &doc.Runs[0]
	if p.Fits == nil || !*p.Fits || p.Source != schemas.Predicted || *p.Profile != "h200" || p.GPU != "NVIDIA H200" ||
		*p.MemoryBytes != 150109880320-552402944 || p.MemoryGiven {
		t.Errorf("%s", r.stdout)
	}
	if *p.SpareBytes != *p.MemoryBytes-*p.PeakReservedBytes || *p.PeakReservedBytes < *p.PeakBytes ||
		*p.AllocatedBytes != *p.PeakBytes {
		t.Errorf("peak %d, reserved %d, spare %d, broken down %d", *p.PeakBytes, *p.PeakReservedBytes, *p.SpareBytes,
			*p.AllocatedBytes)
	}
	sum, last := int64(0), int64(1)<<62
	for _, c := range p.Categories {
		if sum += c.Bytes; c.Bytes > last || c.Bytes == 0 {
			t.Errorf("%s: %d bytes after %d", c.Category, c.Bytes, last)
		}
		last = c.Bytes
	}
	if sum != *p.PeakBytes || *p.At.Phase != schemas.PhaseOptimizer || *p.At.Step != 0 {
		t.Errorf("the categories sum to %d of %d; %+v", sum, *p.PeakBytes, p.At)
	}
	if !p.Complete || len(p.UnknownReads) != 1 || p.UnknownReads[0] != (schemas.Counted{Name: script + ":10", Count: 3}) {
		t.Errorf("read unknown: %+v", p.UnknownReads)
	}
	if p.Confidence == nil || p.Confidence.Level != schemas.Close || len(p.Confidence.Reasons) != 1 ||
		!strings.Contains(p.Confidence.Reasons[0], filepath.Base(script)+
			":10 read values that the phantom GPU does not compute, 3 times") {
		t.Errorf("confidence %+v", p.Confidence)
	}
	if p.Confidence.KnownError == nil ||
		!regexp.MustCompile(`^of \d+ scripts with unknown reads, \d+ were predicted to the byte in allocated`).MatchString(
			*p.Confidence.KnownError) {
		t.Errorf("confidence %+v says not how far off such cases were", p.Confidence)
	}
	for _, args := range [][]string{{"analyze", "breakdown", p.RunID, "--store", store},
		{"predict", "-v", "--store", t.TempDir(), "--", interpreter, script, "8"}} {
		if shown := must(t, t.TempDir(), args...); !strings.Contains(shown.stdout, *p.Confidence.KnownError) {
			t.Errorf("no %q in\n%s", *p.Confidence.KnownError, shown.stdout)
		}
	}
	if ingested, err := schemas.ReadIngestReport(filepath.Join(store, p.RunID)); err != nil ||
		ingested.Prediction.Confidence.Level != schemas.Close {
		t.Errorf("ingest.json holds no confidence, %v", err)
	}
	m, err := schemas.ReadManifest(filepath.Join(store, p.RunID))
	if err != nil || m.Phantom == nil || !m.Phantom.Checked || m.Phantom.Addresses != "h200" || m.Collector.NVML ||
		m.Collector.Samples != 0 {
		t.Errorf("%+v, %v", m.Phantom, err)
	}
	if !testkit.WithRest() {
		return
	}
	text := must(t, t.TempDir(), "predict", "-v", "--store", store, "--device", "t4", "--", interpreter, script, "8")
	for _, want := range []string{"[predicted (phantom t4, indicative)]", "Tesla T4",
		filepath.Base(script) + ":10 read values that the phantom GPU does not compute, 3 times", "workspace"} {
		if !strings.Contains(text.stdout, want) {
			t.Errorf("no %q in\n%s", want, text.stdout)
		}
	}
}

// If a script checks whether unknown values are finite, dpsight lists the line with a count, as it lists unknown
// reads.
func TestPredictListsWhereItWasTakenForFinite(t *testing.T) {
	testkit.Rest(t)
	script, store := scriptFile(t, "import torch\nx = torch.randn(4096, device='cuda')\nfor _ in range(3):\n    "+
		"assert not torch.isnan(x).any()\n"), t.TempDir()
	r := must(t, t.TempDir(), "predict", "-v", "--store", store, "--", python(t), script)
	if want := filepath.Base(script) +
		":4 asked whether values are finite or valid that the phantom GPU does not compute, 3 times: dpsight " +
		"answered yes"; !strings.Contains(r.stdout, want) {
		t.Errorf("no %q in\n%s", want, r.stdout)
	}
	var doc predict.PredictionDocument
	r = must(t, t.TempDir(), "predict", "--store", store, "--format", "json", "--", python(t), script)
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || len(doc.Runs) != 1 ||
		len(doc.Runs[0].UnknownReads) != 0 ||
		!slices.Equal(doc.Runs[0].AssumedAt, []schemas.Counted{{Name: script + ":4", Count: 3}}) {
		t.Errorf("%v\n%s", err, r.stdout)
	}
}

// A loop that stops after several epochs without a better loss runs all its epochs, since the loss is unknown. A loop
// that waits for a threshold runs more than one step.
func TestPredictLoopsThatWatchALoss(t *testing.T) {
	testkit.Rest(t)
	script := scriptFile(t, `
import torch
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.Adam(model.parameters())
def step():
    optimizer.zero_grad()
    loss = model(torch.randn(8, 64, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()
best, bad, epochs, steps = float("inf"), 0, 0, 0
while epochs < 20 and bad < 3:
    now, epochs = step(), epochs + 1
    best, bad = (now, 0) if now < best else (best, bad + 1)
while step() > 0.5:
    steps += 1
print(f"{epochs} epochs, {steps} steps")
`)
	r := must(t, t.TempDir(), "predict", "-v", "--store", t.TempDir(), "--", python(t), script)
	if !strings.Contains(r.stdout+r.stderr, "20 epochs, 43 steps") ||
		!strings.Contains(r.stdout, filepath.Base(script)+":10 read values that the phantom GPU does not compute, "+
			"64 times") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
}

// shownPrediction matches a command in a comment of the page on predictions, and the output that the page shows.
var shownPrediction = regexp.MustCompile(`(?s)<!-- predicted: dpsight (predict .*?) -->\n(.*?)<!-- end -->`)

// The prediction that docs/predict.md shows equals its command's output. The loop of a built-in experiment reads the
// loss only to print it at the end. So its prediction is exact expected on the H200, and close on a T4, which was
// never recorded.
func TestPredictedPage(t *testing.T) {
	testkit.Rest(t) // the test makes six runs
	interpreter, store := python(t), t.TempDir()
	page := filepath.Join("..", "..", "docs", "predict.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	m := shownPrediction.FindSubmatch(text)
	if m == nil {
		t.Fatal("the page shows no prediction")
	}
	command := string(m[1])
	r := must(t, t.TempDir(), append(strings.Fields(command), "--store", store, "--python", interpreter)...)
	shown := "<!-- predicted: dpsight " + command + " -->\n`dpsight " + strings.TrimSuffix(command,
		" --format markdown") + "`\n\n" + r.stdout + "\n<!-- end -->"
	if *update {
		if err := os.WriteFile(page, bytes.Replace(text, m[0], []byte(shown), 1), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(m[0]) != shown {
		t.Errorf("%s shows other output than its command prints: go test ./cmd/dpsight -run TestPredictedPage "+
			"-update; got\n%s", page, r.stdout)
	}
	levels := map[string]string{"h200": schemas.ExactExpected, "t4": schemas.Close}
	peaks := map[string]int64{}
	runs, err := filepath.Glob(filepath.Join(store, "*", schemas.ManifestFile))
	if err != nil || len(runs) < 2 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for _, path := range runs {
		m, err := schemas.ReadManifest(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		if m.Phantom.Garbage != "" { // a run that was made to bound the peak of another run
			continue
		}
		i, err := schemas.ReadIngestReport(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		p := i.Prediction
		if !p.Complete || p.Confidence.Level != levels[*m.Profile] ||
			len(p.Confidence.Unchecked) > 0 != (*m.Profile == "t4") {
			t.Errorf("%s: %+v, %+v", *m.Profile, p, p.Confidence)
		}
		if len(p.UnknownReads) != 1 || !strings.HasPrefix(p.UnknownReads[0].Name, "dpsight_experiments/loop.py:") {
			t.Errorf("%s: read %+v", *m.Profile, p.UnknownReads)
		}
		peaks[*m.Profile] = i.Devices[0].PeakAllocatedBytes
	}
	if peaks["h200"] <= peaks["t4"] {
		t.Errorf("cuBLAS takes less workspace on a T4 than on an H200: %v", peaks)
	}
}

// If a script needs more than --gpu-memory, its request fails as on a device. The run has the status of a run that ran
// out of memory, and shows what held the memory.
func TestPredictBeyondMemory(t *testing.T) {
	testkit.Rest(t)
	interpreter, script, store := python(t), scriptFile(t, stepping), t.TempDir()
	r, doc := predictDocument(t, store, nil, "--gpu-memory", "200MiB", "--", interpreter, script, "64")
	if r.code != exitFailed || len(doc.Runs) != 1 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	p := &doc.Runs[0]
	if p.Fits == nil || *p.Fits || p.Status != schemas.StatusOOM || *p.MemoryBytes != 200<<20 || !p.MemoryGiven ||
		p.Params["gpu_memory"] != float64(200<<20) {
		t.Fatalf("%s", r.stdout)
	}
	if p.Failure == nil || p.Failure.LimitBytes != 200<<20 || p.At.Event != p.Failure.Seq ||
		*p.PeakReservedBytes > 200<<20 {
		t.Errorf("%+v at %+v", p.Failure, p.At)
	}
	var sum int64
	for _, c := range p.Categories {
		sum += c.Bytes
	}
	if sum != *p.AllocatedBytes || sum == 0 || sum > 200<<20 {
		t.Errorf("the categories sum to %d of %d", sum, *p.AllocatedBytes)
	}
	if !strings.Contains(r.stderr, "dpsight: error: train does not fit on NVIDIA H200 with 200.00 MiB for its "+
		"tensors: a request for ") {
		t.Errorf("%s", r.stderr)
	}
	if found := must(t, t.TempDir(), "analyze", "findings", p.RunID, "--store", store); !strings.Contains(found.stdout,
		"failed") {
		t.Errorf("%s", found.stdout)
	}
	c := dpsight(t, t.TempDir(), "collect", "--store", store, "--device", "phantom:a100-40", "--gpu-memory", "100MiB",
		"--", interpreter, script, "64")
	if c.code != exitFailed || !strings.Contains(c.stderr, "its status is oom") ||
		!strings.Contains(c.stderr, "NVIDIA A100") {
		t.Errorf("exit code %d\n%s", c.code, c.stderr)
	}
}

// With --quiet the script's output is only in the run's logs. The prediction and its result are still printed.
func TestPredictQuietly(t *testing.T) {
	store := t.TempDir()
	for _, quiet := range []bool{false, true} {
		args := []string{"--python", python(t), "--", "sh", "-c", "echo of the script; echo aside >&2"}
		if quiet {
			args = append([]string{"--quiet"}, args...)
		}
		r, doc := predictDocument(t, store, nil, args...)
		if r.code != exitFailed || len(doc.Runs) != 1 || !strings.Contains(r.stderr, "dpsight: device: phantom GPU") {
			t.Fatalf("%q: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
		if printed := strings.Contains(r.stderr, "of the script") &&
			strings.Contains(r.stderr, "aside"); printed == quiet || quiet &&
			strings.Contains(r.stdout+r.stderr, "aside") {
			t.Errorf("%q: %s", args, r.stderr)
		}
		for log, want := range map[string]string{"stdout.log": "of the script\n", "stderr.log": "aside\n"} {
			if kept, err := os.ReadFile(filepath.Join(store, doc.Runs[0].RunID, log)); err != nil ||
				string(kept) != want {
				t.Errorf("%q: %s has %q, %v", args, log, kept, err)
			}
		}
	}
}

// If a script fails for a reason other than memory, the prediction does not say whether the script fits.
func TestPredictFailure(t *testing.T) {
	interpreter := python(t)
	script := scriptFile(t, "import torch\nx = torch.zeros(1 << 20, device='cuda')\nraise ValueError('no data')\n")
	r, doc := predictDocument(t, t.TempDir(), nil, "--", interpreter, script)
	if r.code != exitFailed || len(doc.Runs) != 1 || doc.Runs[0].Fits != nil ||
		!strings.Contains(r.stderr, "ended early (failed)") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// A script that uses no device memory does not count as fitting, since it may have been meant to use a device.
func TestPredictOnTheHost(t *testing.T) {
	testkit.Rest(t)
	interpreter := python(t)
	for _, text := range []string{"import torch\ntorch.nn.Linear(5, 5)(torch.randn(2, 5)).sum().backward()\n",
		"import torch\ntorch.cuda.init()\n", "print('hello')\n"} {
		r, doc := predictDocument(t, t.TempDir(), nil, "--", interpreter, scriptFile(t, text))
		if r.code != exitFailed || len(doc.Runs) != 1 || doc.Runs[0].Fits != nil ||
			!strings.Contains(r.stderr, "nothing was allocated on a CUDA device\n") ||
			!strings.Contains(r.stderr, "dpsight: hint: put the model and its inputs on the GPU") ||
			strings.Contains(r.stdout, "live to say") {
			t.Errorf("%q: exit code %d\n%s%s", text, r.code, r.stdout, r.stderr)
		}
	}
}

// A prediction is only close if the script asks how much memory is free or catches a failed request, since both depend
// on what else a device holds. A prediction is also only close if the script reads a time between CUDA events, which
// the phantom GPU does not measure.
func TestPredictAsksTheDevice(t *testing.T) {
	testkit.Rest(t)
	interpreter := python(t)
	for text, want := range map[string]string{
		"import torch\nfree, total = torch.cuda.mem_get_info()\nx = torch.empty(free // 2, dtype=torch.uint8, " +
			"device='cuda')\n": "train.py:2 asked how much memory of the device is free",
		"import torch\ntry:\n    torch.empty(1 << 40, dtype=torch.uint8, device='cuda')\nexcept " +
			"torch.cuda.OutOfMemoryError:\n    torch.empty(1, device='cuda')\n": "which request fails depends on " +
			"the CUDA context",
		"import torch\na, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))\na.record()\nx = " +
			"torch.empty(1, device='cuda')\nb.record()\nprint(a.elapsed_time(b))\n": "times between CUDA events are fake",
	} {
		_, doc := predictDocument(t, t.TempDir(), nil, "--", interpreter, scriptFile(t, text))
		if len(doc.Runs) != 1 || doc.Runs[0].Confidence.Level != schemas.Close ||
			!strings.Contains(strings.Join(doc.Runs[0].Confidence.Reasons, "\n"), want) {
			t.Errorf("%q: %+v", text, doc.Runs)
		}
		if reads := doc.Runs[0].UnknownReads; strings.Contains(text, "elapsed") != (len(reads) == 1 &&
			strings.HasSuffix(reads[0].Name, "train.py:6")) {
			t.Errorf("%q: read %+v", text, reads)
		}
	}
}

// If a script that waits for an unknown value is killed, the prediction still lists the line that read the value, even
// though no step ended.
func TestPredictSaysInTimeWhatWasRead(t *testing.T) {
	testkit.Rest(t)
	script := scriptFile(t, "import torch\nx = torch.randint(9, (4,), device='cuda')\nwhile x.max().item() == 0:\n   "+
		" pass\n")
	r, doc := predictDocument(t, t.TempDir(), nil, "--timeout", "20s", "--", python(t), script)
	if r.code != exitFailed || len(doc.Runs) != 1 || len(doc.Runs[0].UnknownReads) != 1 ||
		doc.Runs[0].UnknownReads[0].Name != script+":3" {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// estimated is a script with library functions whose workspaces are only known on a device, in forward and backward.
const estimated = `
import torch
x = torch.randn(4, 64, device="cuda", requires_grad=True)
torch.fft.irfft(torch.fft.rfft(x)).square().mean().backward()
a = torch.randn(8, 8, device="cuda", requires_grad=True)
torch.linalg.svd(a, full_matrices=False)[1].sum().backward()
torch.linalg.qr(a)[0].sum().backward()
torch.linalg.cholesky(torch.eye(8, device="cuda").requires_grad_()).sum().backward()
torch.linalg.eigh(torch.eye(8, device="cuda").requires_grad_())[0].sum().backward()
torch.linalg.solve(torch.eye(8, device="cuda").requires_grad_(), a).sum().backward()
torch.sparse.mm(torch.eye(8, device="cuda").to_sparse(), a).sum().backward()
`

// dpsight estimates sizes of workspaces that only a device reports. A prediction with such an estimate is indicative.
func TestPredictEstimates(t *testing.T) {
	testkit.Rest(t)
	interpreter := python(t)
	for script, libraries := range map[string][]string{
		caseFile(t, "lstm.py"): {"the workspace of cuDNN's recurrent networks"},
		caseFile(t, "fft.py"):  {"a Fourier transform (cuFFT)"},
		scriptFile(t, estimated): {"a Fourier transform (cuFFT)", "a matrix decomposition (cuSOLVER)",
			"a sparse product (cuSPARSE)"}} {
		r, doc := predictDocument(t, t.TempDir(), nil, "--", interpreter, script)
		if r.code != exitDone || len(doc.Runs) != 1 || doc.Runs[0].Confidence.Level != schemas.Indicative ||
			strings.Contains(r.stderr, "Exception ignored") {
			t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			continue
		}
		reasons := strings.Join(doc.Runs[0].Confidence.Reasons, "\n")
		for _, library := range libraries {
			if !strings.Contains(reasons, library+" was estimated without a device: a real GPU may use another ") {
				t.Errorf("%s is no reason in:\n%s", library, reasons)
			}
		}
	}
}

// cuDNN packs the weights of a recurrent network without gaps, so they take as many bytes as torch's own.
func TestPredictRecurrentWeights(t *testing.T) {
	testkit.Rest(t)
	const recurrent = `
import torch
for kind in ("LSTM", "GRU", "RNN"):
    for more in ({}, {"bias": False}, {"bidirectional": True, "num_layers": 2}, {"proj_size": 3}):
        if "proj_size" in more and kind != "LSTM":
            continue
        net = getattr(torch.nn, kind)(5, 7, **more).cuda()
        flat = net.weight_ih_l0.untyped_storage().nbytes() // 4
        unused = 0 if net.bias else 2 * len(net.weight_ih_l0)  # torch asks cuDNN for biases always
        assert flat == sum(p.numel() for p in net.parameters()) + unused, (kind, more, flat)
        net(torch.randn(4, 2, 5, device="cuda"))[0].sum().backward()
`
	if r, _ := predictDocument(t, t.TempDir(), nil, "--", python(t), scriptFile(t, recurrent)); r.code != exitDone {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// tied is a script that makes two segments of 20 MiB with a free block of 8 MiB each. torch takes the free block at
// the lower address. If that block is in the first segment, the memory that the script frees next lies in two pieces,
// and the last request needs a third segment.
const tied = `
import torch
def take(mib):
    return torch.empty(mib << 20, dtype=torch.uint8, device="cuda")
a1, a2, a3, b1, b2, b3 = (take(n) for n in (8, 6, 6, 8, 6, 6))
del a1, b1
c = take(8)
del a2, a3
d, e = take(9), take(9)
`

// --seeds gives the range of reserved over placements of segments. dpsight makes a run for each placement. The last
// run uses the profile's own placement, and its manifest lists the other runs.
func TestPredictSeeds(t *testing.T) {
	testkit.Rest(t)
	store := t.TempDir()
	r, doc := predictDocument(t, store, nil, "--seeds", "3", "--", python(t), scriptFile(t, tied))
	if r.code != exitDone || len(doc.Runs) != 1 || doc.Runs[0].Band == nil {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	p := &doc.Runs[0]
	m, err := schemas.ReadManifest(filepath.Join(store, p.RunID))
	if err != nil || m.Phantom.Addresses != "h200" || len(m.Phantom.Placements) != 2 {
		t.Fatalf("%+v, %v", m.Phantom, err)
	}
	low, high := *p.PeakReservedBytes, *p.PeakReservedBytes
	for i, policy := range []string{"h200+0", "up"} {
		x := m.Phantom.Placements[i]
		report, err := schemas.ReadIngestReport(filepath.Join(store, x.RunID))
		if err != nil || x.Addresses != policy || x.Status != schemas.StatusOK ||
			report.Devices[0].PeakReservedBytes != x.PeakReservedBytes {
			t.Errorf("%s: %+v, %v", policy, x, err)
		}
		low, high = min(low, x.PeakReservedBytes), max(high, x.PeakReservedBytes)
	}
	if p.Band.Reserved != [2]int64{low, high} || len(p.Band.Policies) != 3 {
		t.Errorf("%+v, want %d to %d", p.Band, low, high)
	}
	if low != 40<<20 || high != 60<<20 {
		t.Errorf("reserved %d to %d bytes", low, high)
	}
	var breakdown struct{ Runs []memory.BreakdownRun }
	text := must(t, t.TempDir(), "analyze", "breakdown", p.RunID, "--store", store, "--format", "json").stdout
	if err := json.Unmarshal([]byte(text), &breakdown); err != nil ||
		*breakdown.Runs[0].Confidence != p.Confidence.Level || len(breakdown.Runs[0].PeakReservedBand) != 2 ||
		*breakdown.Runs[0].UnknownReads != 0 {
		t.Errorf("%v\n%s", err, text)
	}
}

// meeting is a script that joins a process group, and allocates SIZE MiB.
const meeting = `
import os, torch
import torch.distributed as dist
rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl", device_id=torch.device("cuda", local))
kept = torch.empty((SIZE) << 20, dtype=torch.uint8, device="cuda")
dist.destroy_process_group()
`

// dpsight warns if a simulated rank takes its memory from the first device, for example because
// torch.cuda.set_device was forgotten. A rank that hides all other devices gets no warning.
func TestPredictRankOnAnothersDevice(t *testing.T) {
	testkit.Rest(t)
	interpreter := python(t)
	set := "torch.cuda.set_device(local)\ndist.init_process_group(\"nccl\", device_id=torch.device(\"cuda\", local))"
	for with, warned := range map[string]bool{
		"dist.init_process_group(\"nccl\")": true,
		"os.environ[\"CUDA_VISIBLE_DEVICES\"] = os.environ[\"LOCAL_RANK\"]\ndist.init_process_group(\"nccl\")": false,
	} {
		script := scriptFile(t, strings.Replace(strings.Replace(meeting, set, with, 1), "SIZE", "20", 1))
		r, doc := predictDocument(t, t.TempDir(), nil, "--world-size", "4", "--ranks", "3", "--", interpreter, script)
		if r.code != exitDone || len(doc.Runs) != 1 || *doc.Runs[0].PeakBytes != 20<<20 {
			t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
		if strings.Contains(r.stderr, "dpsight: warning: rank 3 used memory of cuda:0, ") != warned {
			t.Errorf("%s: %s", with, r.stderr)
		}
	}
}

// A prediction of several ranks of a larger world lists the ranks, each with its peaks, in the printed table and in
// the JSON document.
func TestPredictRanks(t *testing.T) {
	testkit.Rest(t)
	interpreter, store := python(t), t.TempDir()
	script := scriptFile(t, strings.Replace(meeting, "SIZE", "2 * rank + 20", 1))
	r, doc := predictDocument(t, store, nil, "--world-size", "16", "--gpus-per-node", "4", "--ranks", "0,15", "--",
		interpreter,
		script)
	if r.code != exitDone || len(doc.Runs) != 1 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	p := &doc.Runs[0]
	want := []struct {
		rank   int32
		device string
		bytes  int64
	}{{0, "cuda:0", 20 << 20}, {15, "cuda:3", 50 << 20}}
	if len(p.Ranks) != len(want) {
		t.Fatalf("%+v", p.Ranks)
	}
	for i, w := range want {
		got := p.Ranks[i]
		if got.Rank != w.rank || got.Device != w.device || *got.PeakBytes != w.bytes ||
			*got.PeakReservedBytes < w.bytes || *got.SpareBytes != *p.MemoryBytes-*got.PeakReservedBytes {
			t.Errorf("rank %d on %s: %d bytes, %d reserved, %d spare", got.Rank, got.Device, *got.PeakBytes,
				*got.PeakReservedBytes, *got.SpareBytes)
		}
	}
	if *p.PeakBytes != 50<<20 {
		t.Errorf("%d bytes are not those of the fullest rank", *p.PeakBytes)
	}
	text := must(t, t.TempDir(), "predict", "--store", store, "--world-size", "16", "--gpus-per-node", "4", "--ranks",
		"0,15", "--", interpreter, script).stdout
	for _, row := range []string{`(?m)^ *0 +cuda:0 +20\.00 `, `(?m)^ *15 +cuda:3 +50\.00 `} {
		if !regexp.MustCompile(row).MatchString(text) {
			t.Errorf("no %s in\n%s", row, text)
		}
	}
}
