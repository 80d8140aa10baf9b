package collect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

func phantomExperiment(t *testing.T, command ...string) Experiment {
	t.Helper()
	m, err := OpenMachine("phantom")
	if err != nil {
		t.Fatal(err)
	}
	return Experiment{Store: t.TempDir(), Name: "test", Command: command, Machine: m, Grace: 2 * time.Second}
}

const secretTraining = `
import os, sys, torch
print("value", os.environ["HF_TOKEN"], flush=True)
print(sys.argv, flush=True)
os.write(1, b"hf_planted-"); os.write(1, b"environment-0123\n")
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(8, 64).cuda()).sum().backward()
    optimizer.step()
raise RuntimeError("cannot log in with " + os.environ["HF_TOKEN"] + " and " + sys.argv[2])
`

// No file of a run has a planted secret, whether the collector or ingest wrote the file. The test unpacks the sealed
// journal and reads the values of the tables.
func TestSecretsOfARealRun(t *testing.T) {
	python := testkit.Python(t)
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(secretTraining), 0o600); err != nil {
		t.Fatal(err)
	}
	planted := []string{"hf_planted-environment-0123", "planted-argument-4567", "planted-password-89"}
	e := phantomExperiment(t, python, script, "--api-key", planted[1])
	e.Environ = append(os.Environ(), "HF_TOKEN="+planted[0], "DATABASE_URL=postgres://me:"+planted[2]+"@host/db")
	e.Params = map[string]any{"url": "postgres://me:" + planted[2] + "@host/db"}
	var shown bytes.Buffer
	e.Stdout = &shown
	r := run(t, e)
	m := r.Manifest
	if m.Status != schemas.StatusFailed || !strings.Contains(m.Reason, "RuntimeError: cannot log in with *** and ***") {
		t.Errorf("status %s, reason %q", m.Status, m.Reason)
	}
	if !strings.Contains(shown.String(), "value ***\n") {
		t.Errorf("shown: %q", shown.String())
	}
	if m.Collector.SealedJournals != 1 || m.Environment == nil || len(m.Warnings) > 0 {
		t.Errorf("%d journals, environment %v, warnings %q", m.Collector.SealedJournals, m.Environment, m.Warnings)
	}
	if _, err := ingest.Run(r.Dir, ingest.Options{Version: "test"}); err != nil {
		t.Fatal(err)
	}
	searchRun(t, r.Dir, planted)
}

// searchRun fails the test if a file of a run, or its name, has one of the secrets. searchRun also checks that only the
// user may read the run's files.
func searchRun(t *testing.T, dir string, secrets []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			if info.Mode().Perm() != 0o700 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return nil
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		files++
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch filepath.Ext(path) {
		case ".zst":
			marks, frames, err := spool.Unpack(path)
			if err != nil {
				return err
			}
			b = slices.Concat(b, marks, frames)
		case ".parquet":
			text, err := ingesttest.Text(path)
			if err != nil {
				return err
			}
			b = slices.Concat(b, text)
		}
		for _, secret := range secrets {
			if bytes.Contains(b, []byte(secret)) || strings.Contains(path, secret) {
				t.Errorf("%s holds %s", filepath.Base(path), secret)
			}
		}
		return nil
	})
	if err != nil || files < len(ingest.DerivedFiles())+5 {
		t.Errorf("%d files searched: %v", files, err)
	}
}

const plantedTraining = `
import json, os, sys, torch, dpsight
cases = json.loads(open(os.environ["CASES"]).read().replace("~", ""))
expected = [a for c in cases for a in c.get("argv", [])]
assert sys.argv[1:] == expected, "the script's arguments changed"
for case in cases:
    for name, value in case.get("environ", {}).items():
        assert os.environ[name] == value, name + " changed"
texts = [c["text"] for c in cases if "text" in c]
for case in cases:
    if "config" in case:
        dpsight.config(**case["config"])
print("arguments", sys.argv, flush=True)
print({name: value for case in cases for name, value in case.get("environ", {}).items()}, flush=True)
print(*texts, sep="\n", flush=True)
print(*texts, sep="\n", file=sys.stderr, flush=True)
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    with dpsight.phase(texts[step]):
        model(torch.randn(8, 64).cuda()).sum().backward()
    optimizer.step()
raise RuntimeError("\n".join(texts))
`

// The test plants secrets of many forms in arguments, variables, output, labels, the configuration and an exception.
// The script receives all of them, and no file of the run has any.
func TestSecretsOfAllForms(t *testing.T) {
	python := testkit.Python(t)
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(plantedTraining), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs("mask/testdata/planted.json")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Argv         []string
		Environ      map[string]string
		Name, Secret string
	}
	if err := json.Unmarshal(bytes.ReplaceAll(b, []byte("~"), nil), &cases); err != nil {
		t.Fatal(err)
	}
	e := phantomExperiment(t, python, script)
	e.Environ, e.Name = append(os.Environ(), "CASES="+path), "label"
	var secrets []string
	for _, c := range cases {
		secrets = append(secrets, c.Secret)
		e.Command = append(e.Command, c.Argv...)
		for name, value := range c.Environ {
			e.Environ = append(e.Environ, name+"="+value)
		}
		if c.Name != "" {
			e.Name += " " + c.Name
		}
	}
	r := run(t, e)
	if m := r.Manifest; m.Status != schemas.StatusFailed || !strings.Contains(m.Reason, "RuntimeError") ||
		m.Collector.SealedJournals != 1 {
		stderr, _ := os.ReadFile(filepath.Join(r.Dir, StderrFile))
		t.Fatalf("status %s, reason %q, %d journals\n%s", m.Status, m.Reason, m.Collector.SealedJournals, stderr)
	}
	if _, err := ingest.Run(r.Dir, ingest.Options{Version: "test"}); err != nil {
		t.Fatal(err)
	}
	searchRun(t, r.Dir, secrets)
}

func TestBuiltinExperimentOnThePhantom(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	e := phantomExperiment(t)
	var err error
	if e.Params, err = experiments.Resolve(map[string]string{"method": "dpsgd", "preset": "tiny",
		"seq_len": "32"}); err != nil {
		t.Fatal(err)
	}
	e.Command, e.Python = nil, python
	var seen []Progress
	e.Progress = func(p Progress) { seen = append(seen, p) }
	r := run(t, e)
	m := r.Manifest
	if m.Status != schemas.StatusOK || m.Source != schemas.Predicted || m.Profile == nil || *m.Profile != "h200" {
		stderr, _ := os.ReadFile(filepath.Join(r.Dir, StderrFile))
		t.Fatalf("status %s (%s), source %s\n%s", m.Status, m.Reason, m.Source, stderr)
	}
	if m.Interpreter.Chosen != "--python" || m.Environment == nil || m.Environment.Torch == "" || m.Privacy == nil {
		t.Errorf("interpreter %+v, environment %+v, privacy %+v", m.Interpreter, m.Environment, m.Privacy)
	}
	if last := seen[len(seen)-1]; last.Status != schemas.StatusOK || last.Steps < 5 {
		t.Errorf("last progress %+v", last)
	}
	if m.Isolation == nil || m.Isolation.Verified || m.Isolation.Reason == "" || m.Isolation.WaitedNS != 0 ||
		len(m.Warnings) > 0 {
		t.Errorf("isolation %+v, warnings %q", m.Isolation, m.Warnings)
	}
	journals, err := spool.ReadDir(filepath.Join(r.Dir, spool.Dir))
	if err != nil || len(journals) != 1 || journals[0].End == nil || journals[0].Torn != nil {
		t.Errorf("%d journals, %v", len(journals), err)
	}
}

const compiledTraining = `
import os, pathlib, sys, torch
x = torch.ones(512, 1024, device="cuda", requires_grad=True)
constant = float(sys.argv[1])
@torch.compile
def loss(y):  # of what is transposed kernels have several variants
    return (x.t() * constant + y).sin().sum()
for step in range(2):
    loss(torch.ones(1024, 512, device="cuda")).backward()
timed = list(pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).rglob("*.best_config"))
print(torch.cuda.memory_stats()["allocation.all.allocated"], "allocations", "and kernels timed" if timed else "")
`

// A prediction must not reuse kernels that TorchInductor compiled and timed in an earlier prediction. If a run finds
// the fastest kernel in TorchInductor's cache, it does not time the kernels, and so makes fewer allocations. The
// script's constant is new each time, so that no earlier test has compiled its kernels.
func TestPredictionsCompileAnew(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(compiledTraining), 0o644); err != nil {
		t.Fatal(err)
	}
	constant := fmt.Sprintf("1.%09d", time.Now().UnixNano()%1e9)
	var said []string
	for range 2 {
		r := run(t, phantomExperiment(t, python, script, constant))
		out, err := os.ReadFile(filepath.Join(r.Dir, StdoutFile))
		if err != nil || r.Manifest.Status != schemas.StatusOK {
			stderr, _ := os.ReadFile(filepath.Join(r.Dir, StderrFile))
			t.Fatalf("status %s (%s), %v\n%s", r.Manifest.Status, r.Manifest.Reason, err, stderr)
		}
		said = append(said, string(out))
	}
	if said[0] != said[1] || !strings.Contains(said[0], "kernels timed") {
		t.Errorf("the first prediction made %s, the second %s", said[0], said[1])
	}
}

// If a Python process loads torch without the agent, the manifest lists it and has a warning.
func TestUninjected(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	e := phantomExperiment(t, python, "-I", "-c", "import torch, time; time.sleep(8)")
	m := run(t, e).Manifest
	if len(m.Collector.Uninjected) != 1 || len(m.Warnings) != 1 ||
		!strings.Contains(m.Warnings[0], "without the agent") {
		t.Errorf("uninjected %q, warnings %q", m.Collector.Uninjected, m.Warnings)
	}
}

func TestDoctor(t *testing.T) {
	python := testkit.Python(t)
	got := map[string]Check{}
	found := Doctor(t.Context(), python, t.TempDir())
	for _, c := range found.Checks {
		got[c.Name] = c
		if !c.OK && c.Hint == "" {
			t.Errorf("%s is not OK and has no hint: %s", c.Name, c.Detail)
		}
	}
	for _, name := range []string{"platform", "python", "torch", "opacus", "gcc", "phantom gpu", "store", "cache"} {
		if !got[name].OK {
			t.Errorf("%s: %s", name, got[name].Detail)
		}
	}
	works := 0
	for _, f := range found.Features {
		if f.OK {
			works++
		} else if f.Needed || got["torch features"].OK {
			t.Errorf("%+v, and the check says %+v", f, got["torch features"])
		}
	}
	if works < 30 {
		t.Errorf("%d of %d features work", works, len(found.Features))
	}
}

const rankTraining = `
import os, torch
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.randn(32, 64)), batch_size=8, num_workers=1)
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    optimizer.zero_grad()
    model(x.cuda()).sum().backward()
    optimizer.step()
if os.environ["RANK"] == "1":
    raise SystemExit(3)
import time
time.sleep(1000)
`

// If a rank under torchrun fails, dpsight ends all ranks, although each has a session of its own. torchrun itself and
// the workers of data loaders, which also load torch, record nothing, and dpsight does not warn about them.
func TestLauncher(t *testing.T) {
	python := testkit.Python(t)
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(rankTraining), 0o600); err != nil {
		t.Fatal(err)
	}
	e := phantomExperiment(t, filepath.Join(filepath.Dir(python), "torchrun"), "--standalone", "--nproc-per-node", "2",
		script)
	r := run(t, e)
	m := r.Manifest
	if m.Status != schemas.StatusFailed || m.Interpreter == nil || m.Collector.SealedJournals != 2 ||
		len(m.Collector.Uninjected) > 0 {
		stderr, _ := os.ReadFile(filepath.Join(r.Dir, StderrFile))
		t.Errorf("status %s (%s), interpreter %+v, %d journals, uninjected %q\n%s", m.Status, m.Reason, m.Interpreter,
			m.Collector.SealedJournals, m.Collector.Uninjected, stderr)
	}
}
