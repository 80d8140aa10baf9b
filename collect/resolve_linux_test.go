package collect

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/nvml"
)

// program writes an executable file.
func program(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	os.MkdirAll(filepath.Dir(path), 0o755)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBuiltinPython(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"DPSIGHT_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX"} {
		t.Setenv(v, "")
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("PATH", filepath.Join(dir, "path"))
	expect := func(override, path, chosen string) {
		t.Helper()
		got, err := BuiltinPython(override)
		if err != nil || got.Path != path || got.Chosen != chosen {
			t.Fatalf("got %+v, %v; want %s (%s)", got, err, path, chosen)
		}
	}
	if _, err := BuiltinPython(""); err == nil {
		t.Fatal("found a Python where there is none")
	}
	const sh = "#!/bin/sh\n"
	inPath := program(t, dir, "path/python3", sh)
	expect("", inPath, "PATH")
	setup := program(t, dir, "setup/python", sh)
	os.MkdirAll(filepath.Join(dir, "cache/dpsight"), 0o755)
	os.WriteFile(filepath.Join(dir, "cache/dpsight/python"), []byte(setup+"\n"), 0o600)
	expect("", setup, "make setup")
	installed := program(t, dir, "prefix/bin/dpsight", sh)
	beside := program(t, dir, "prefix/bin/python3", sh)
	if got := pythonBeside(installed); got != "" {
		t.Errorf("dpsight, which pip did not install, is said to be with %s", got)
	}
	os.MkdirAll(filepath.Join(dir, "prefix/lib/python3.11/site-packages/dpsight"), 0o755)
	if got := pythonBeside(installed); got != beside {
		t.Errorf("dpsight was installed with %s, not with %s", beside, got)
	}
	venv := program(t, dir, "venv/bin/python", sh)
	t.Setenv("VIRTUAL_ENV", filepath.Join(dir, "venv"))
	expect("", venv, "virtual environment")
	named := program(t, dir, "named", sh)
	t.Setenv("DPSIGHT_PYTHON", named)
	expect("", named, "$DPSIGHT_PYTHON")
	expect("python3", inPath, "--python")
	if _, err := BuiltinPython(filepath.Join(dir, "absent")); err == nil || !strings.Contains(err.Error(), "--python") {
		t.Errorf("an absent --python: %v", err)
	}
	t.Setenv("DPSIGHT_PYTHON", filepath.Join(dir, "absent"))
	if _, err := BuiltinPython(""); err == nil {
		t.Error("an absent $DPSIGHT_PYTHON was passed over")
	}
}

// If a launcher such as torchrun is not on PATH, the error's hint says how to call or install it, or where dpsight
// found it.
func TestLauncherHint(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("DPSIGHT_PYTHON", "")
	hint := func(word string) string {
		var usage *UsageError
		if err := notFound(word, exec.ErrNotFound); !errors.As(error(err), &usage) {
			t.Fatalf("%T", err)
		}
		return usage.Hint()
	}
	if h := hint("torchrun"); !strings.Contains(h, "python -m torch.distributed.run") {
		t.Errorf("%q", h)
	}
	if h := hint("accelerate"); !strings.Contains(h, "pip install accelerate") {
		t.Errorf("%q", h)
	}
	const sh = "#!/bin/sh\n"
	t.Setenv("DPSIGHT_PYTHON", program(t, dir, "venv/bin/python", sh))
	launcher := program(t, dir, "venv/bin/torchrun", sh)
	if h := hint("torchrun"); !strings.HasSuffix(h, ": "+launcher) {
		t.Errorf("%q", h)
	}
	if h := hint("train"); strings.Contains(h, "torch") {
		t.Errorf("%q", h)
	}
}

func TestCommandPython(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	const sh = "#!/bin/sh\n"
	python := program(t, dir, "python3.11", sh)
	program(t, dir, "torchrun", "#!"+python+"\nimport torch\n")
	program(t, dir, "accelerate", "#!/bin/sh\n'''exec' \""+python+"\" \"$0\" \"$@\"\n' '''\n")
	program(t, dir, "tool", "#!/usr/bin/env -S python3.11 -u\n")
	program(t, dir, "run.sh", "#!/bin/sh\npython3.11 train.py\n")
	program(t, dir, "nohup", "\x7fELF")
	for _, test := range []struct {
		argv []string
		want string
	}{
		{[]string{"python3.11", "train.py"}, python},
		{[]string{python, "train.py"}, python},
		{[]string{"torchrun", "--nproc-per-node", "2", "train.py"}, python},
		{[]string{"accelerate", "launch", "train.py"}, python},
		{[]string{"tool"}, python},
		{[]string{"nohup", "python3.11", "train.py"}, python},
		{[]string{"run.sh"}, ""},
		{[]string{"absent"}, ""},
	} {
		got := ""
		if i := commandPython(test.argv); i != nil {
			got = i.Path
		}
		if got != test.want {
			t.Errorf("%q: got %q, want %q", test.argv, got, test.want)
		}
	}
}

// fakePython writes a script that answers dpsight's probe as a Python interpreter does. The fake interpreter's torch
// has the given version.py; if versionPy is empty, the interpreter has no torch.
func fakePython(t *testing.T, versionPy string) string {
	t.Helper()
	dir := t.TempDir()
	torch := "[]"
	if versionPy != "" {
		os.MkdirAll(filepath.Join(dir, "torch"), 0o755)
		os.WriteFile(filepath.Join(dir, "torch/version.py"), []byte(versionPy), 0o600)
		torch = `["` + dir + `/torch"]`
	}
	return program(t, dir, "python", `#!/bin/sh
echo "noise of a .pth file"
echo 'dpsight-probe:{"python": "3.11.9", "torch": `+torch+`, "torch_version": "", "opacus": ""}'
`)
}

func TestTorchIsChecked(t *testing.T) {
	broken := program(t, t.TempDir(), "python", "#!/bin/sh\necho 'ImportError: broken' >&2\nexit 1\n")
	silent := program(t, t.TempDir(), "python", "#!/bin/sh\n")
	for _, test := range []struct{ name, python, want string }{
		{"good", fakePython(t, "__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n"), ""},
		{"first that can", fakePython(t, "__version__ = '2.10.0a0+git1'\ncuda = '12.8'\n"), ""},
		{"old", fakePython(t, "__version__ = '2.9.1+cu128'\ncuda = '12.8'\n"), "torch 2.9.1+cu128 is too old"},
		{"very old", fakePython(t, "__version__ = '1.13.1'\ncuda = '11.7'\n"), "torch 1.13.1 is too old"},
		{"CPU only", fakePython(t, "__version__ = '2.11.0+cpu'\ncuda: Optional[str] = None\n"), "is not a CUDA build"},
		{"none", fakePython(t, ""), "has no torch"},
		{"broken", broken, "ImportError: broken"},
		{"no Python", silent, "does not answer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := experiment(t, "")
			script := filepath.Join(t.TempDir(), "train.py")
			if err := os.WriteFile(script, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			e.Command = []string{test.python, script}
			r, err := Run(t.Context(), e)
			if test.want == "" {
				if err != nil || r.Manifest.Interpreter.Chosen != "command" {
					t.Fatalf("%+v, %v", r, err)
				}
				return
			}
			var usage *UsageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), test.want) || usage.Hint() == "" ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one sentence with %q and a hint", err, test.want)
			}
		})
	}
}

func TestOpenMachine(t *testing.T) {
	absent := func() (nvml.Library, error) { return nil, &nvml.UnavailableError{Reason: "no driver"} }
	present := func() (nvml.Library, error) { return fakeLibrary{newFakeGPU()}, nil }
	if hasGPUFile() {
		t.Skip("this machine has a GPU")
	}
	for _, test := range []struct {
		device    string
		open      func() (nvml.Library, error)
		visible   string // CUDA_VISIBLE_DEVICES
		predicted bool
		note      string // a part of the machine's note or of the error
	}{
		{"auto", present, "0", false, "device: Fake GPU"},
		{"", present, "GPU-fa", false, "device: Fake GPU"},
		{"auto", present, "-1", true, "CUDA_VISIBLE_DEVICES hides every GPU"},
		{"auto", absent, "0", true, "phantom GPU, predicting the memory of the NVIDIA H200 (NVML is not available: " +
			"no driver)"},
		{"phantom:h200", present, "0", true, "phantom GPU"},
		{"phantom:a100-40", present, "0", true,
			"the NVIDIA A100-SXM4-40GB; no prediction was ever compared with a real one"},
		{"cuda", present, "0", false, "device: Fake GPU"},
		{"cuda", absent, "0", false, "no GPU was found: NVML is not available: no driver"},
		{"phantom:x", present, "0", false, "unknown device profile"},
		{"cuda:1", present, "0", false, `unknown device "cuda:1"`},
	} {
		t.Setenv("CUDA_VISIBLE_DEVICES", test.visible)
		m, err := openMachine(test.device, test.open)
		text := ""
		if err != nil {
			text = err.Error()
		} else {
			text = m.Note
		}
		if !strings.Contains(text, test.note) || err == nil && m.Predicted != test.predicted {
			t.Errorf("%s: %q, %+v", test.device, text, m)
		}
	}
}

func TestOtherAllocatorIsRefused(t *testing.T) {
	for environ, refused := range map[string]bool{
		"PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync":                             true,
		"PYTORCH_ALLOC_CONF=garbage_collection_threshold:0.8,backend:cudaMallocAsync": true,
		"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True":                            false,
		"NOTE=cudaMallocAsync": false,
	} {
		if err := checkAllocator([]string{"A=b", environ}); (err != nil) != refused {
			t.Errorf("%s: %v", environ, err)
		}
	}
}

func TestRunID(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 15, 0, 0, time.FixedZone("", 3600))
	id := NewRunID(at, "my run/../ü…x")
	if !strings.HasPrefix(id, "20261121T091500Z-my-run-..-x-") || len(id) != len("20261121T091500Z-my-run-..-x-")+6 {
		t.Errorf("id %q", id)
	}
	first, second := NewRunID(at, "a"), NewRunID(at, "a")
	if first == second {
		t.Error("two runs have the same id")
	}
	for in, want := range map[string]string{"": "run", "..": "run", "ghost": "ghost", "-a-": "a",
		strings.Repeat("x", 200): strings.Repeat("x", maxName)} {
		if got := SafeName(in); got != want {
			t.Errorf("SafeName(%q) = %q, want %q", in, got, want)
		}
	}
	for want, argv := range map[string][]string{"train": {"python", "src/train.py", "--x"}, "pkg.mod": {"python", "-m",
		"pkg.mod"}, "sh": {"/bin/sh", "-c", "x"}, "pkg": {"torchrun", "-m", "pkg", "a.py"},
		"mod": {"accelerate", "launch", "--module", "mod", "a.py"},
		"run": {"python", "-m", "torch.distributed.run", "--standalone", "run.py"}, "deep": {"python", "-m",
			"torch.distributed.run", "-m", "deep"}} {
		if got := nameOf(argv); got != want {
			t.Errorf("nameOf(%q) = %q", argv, got)
		}
	}
}
