package interpreter

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func script(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a shell script stands in for the interpreter")
	}
	path := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// Ask finds the versions of torch and Opacus without importing them. The test gives a real interpreter packages that
// fail if they are imported.
func TestAsk(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	site := t.TempDir()
	for file, text := range map[string]string{
		"torch/__init__.py": "raise SystemExit('torch was imported')",
		"torch/version.py": "from typing import Optional\n__version__ = '2.11.0+cu130'\ncuda: " +
			"Optional[str] = '13.0'\n",
		"torch-2.11.0.dist-info/METADATA":     "Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0\n",
		"opacus/__init__.py":                  "raise SystemExit('opacus was imported')",
		"opacus-1.6.0.dist-info/METADATA":     "Metadata-Version: 2.1\nName: opacus\nVersion: 1.6.0\n",
		"nvidia/cuda_runtime/include/empty.h": "",
		"sitecustomize.py":                    "print('noise')",
	} {
		path := filepath.Join(site, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := Ask(t.Context(), python, append(os.Environ(), "PYTHONPATH="+site))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Torch) != 1 || a.Torch[0] != filepath.Join(site, "torch") || a.TorchVersion != "2.11.0" ||
		a.Opacus != "1.6.0" ||
		len(a.Nvidia) == 0 || !strings.HasPrefix(a.Version, "3.") || a.Executable == "" || a.Prefix == "" {
		t.Errorf("%+v", a)
	}
	version, cuda, err := TorchBuild(a.Torch[0])
	if version != "2.11.0+cu130" || cuda != "13.0" || err != nil {
		t.Errorf("%q, %q, %v", version, cuda, err)
	}
	if _, _, err := TorchBuild(site); err == nil {
		t.Error("a folder without torch has a version")
	}
	if a, err = Ask(t.Context(), python, append(os.Environ(), "PYTHONPATH=")); err != nil || a.Opacus == "1.6.0" {
		t.Errorf("without the packages: %+v, %v", a, err)
	}
}

func TestAskNoInterpreter(t *testing.T) {
	const no = "python does not run as a Python interpreter: "
	for text, want := range map[string]string{
		"echo ' first ' >&2; echo last >&2; exit 3":                                                  no + "first",
		"echo odd >&2; echo 'Traceback (most recent…' >&2; echo '  …' >&2; echo 'E: no' >&2; exit 3": no + "E: no",
		"echo odd >&2; echo 'Fatal Python error: no' >&2; echo '<no frame>' >&2; exit 3": no +
			"Fatal Python error: no",
		"exit 3":                   no + "exit status 3",
		"echo hello":               "python does not answer as a Python interpreter",
		"echo '" + Marker + "{no'": "the answer of",
	} {
		_, err := Ask(t.Context(), script(t, text), nil)
		var none *Error
		if err == nil || !strings.Contains(err.Error(), want) || errors.As(err, &none) == strings.HasPrefix(want,
			"the answer") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
