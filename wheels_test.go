package dpsight_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

// pack is a Python program. With scripts/wheels.py, it packs wheels of all platforms with a made-up program, and the
// source distribution. pack writes them into the folder that its argument names.
const pack = `
import pathlib, sys
sys.path.insert(0, "scripts")
import wheels
out = pathlib.Path(sys.argv[1])
for platform in wheels.PLATFORMS:
    wheels.write_wheel(out / "program", platform, out)
wheels.write_sdist(out)
`

func packed(t *testing.T) (folder string, wheels []string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "program"), []byte("#!/bin/sh\necho \"$0 $*\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-B", "-c", pack, folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wheels, err := filepath.Glob(filepath.Join(folder, "*.whl"))
	if err != nil || len(wheels) != 5 {
		t.Fatalf("%d wheels, %v", len(wheels), err)
	}
	return folder, wheels
}

// TestWheels checks the content of each wheel, and that packing again gives the same bytes.
func TestWheels(t *testing.T) {
	_, wheels := packed(t)
	_, again := packed(t)
	for i, wheel := range wheels {
		checkWheel(t, wheel)
		if !bytes.Equal(contents(t, wheel), contents(t, again[i])) {
			t.Errorf("%s is packed in two ways", filepath.Base(wheel))
		}
	}
}

// pip chooses the wheel for this machine among the packed wheels.
func TestRightWheel(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skipf("another wheel is right for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	folder, _ := packed(t)
	cmd := exec.Command("python3", "-m", "pip", "install", "--dry-run", "--quiet", "--no-index", "--ignore-installed",
		"--find-links", folder, "--report", "-", "dpsight")
	cmd.Env = append(os.Environ(), "PIP_BREAK_SYSTEM_PACKAGES=1", "PIP_FIND_LINKS=")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "manylinux_2_28_x86_64.whl\"") {
		t.Errorf("%v\n%s", err, out)
	}
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkWheel(t *testing.T, path string) {
	t.Helper()
	name := filepath.Base(path)
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	recorded := map[string]string{}
	var names []string
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Name)
		sum := sha256.Sum256(data)
		recorded[f.Name] = fmt.Sprintf("sha256=%s,%d", base64.RawURLEncoding.EncodeToString(sum[:]), len(data))
		if script := strings.Contains(f.Name, ".data/scripts/"); script != (f.Mode()&0o111 != 0) {
			t.Errorf("%s: %s has mode %v", name, f.Name, f.Mode())
		}
		if strings.HasSuffix(f.Name, "/WHEEL") {
			tag := strings.TrimSuffix(strings.SplitN(name, "-", 3)[2], ".whl")
			if !strings.Contains(string(data), "\nTag: "+tag+"\n") {
				t.Errorf("%s says of itself: %s", name, data)
			}
		}
		if strings.HasSuffix(f.Name, "/RECORD") {
			rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
			if err != nil || len(rows) != len(archive.File) {
				t.Fatalf("%s: RECORD has %d rows, the archive %d files: %v", name, len(rows), len(archive.File), err)
			}
			for _, row := range rows[:len(rows)-1] {
				if got := row[1] + "," + row[2]; got != recorded[row[0]] {
					t.Errorf("%s: RECORD has %s of %s, which is %s", name, got, row[0], recorded[row[0]])
				}
			}
		}
	}
	for _, want := range []string{"py.typed", "api.py", "recorder/core.py", "__main__.py"} {
		want = "dpsight/" + want
		if !slices.Contains(names, want) {
			t.Errorf("%s lacks %s", name, want)
		}
	}
	if slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, "sitecustomize.py") }) {
		t.Errorf("%s would run in every process", name)
	}
}

// TestSourcesAreComplete checks that the source distribution has every package of the program.
func TestSourcesAreComplete(t *testing.T) {
	list := func(command ...string) []string {
		t.Helper()
		out, err := exec.Command(command[0], command[1:]...).Output()
		if err != nil {
			t.Fatalf("%v: %v", command, err)
		}
		return strings.Fields(string(out))
	}
	has := map[string]bool{}
	for _, name := range list("python3", "-c",
		"import sys; sys.path.insert(0, 'scripts'); import wheels; print(*wheels.sources(), sep='\\n')") {
		has[path.Dir(name)] = true
	}
	const module = "github.com/dpsight/dpsight/"
	n := 0
	for _, name := range list("go", "list", "-deps", "./cmd/dpsight") {
		if folder, ours := strings.CutPrefix(name, module); ours {
			n++
			if !has[folder] {
				t.Errorf("the source distribution has no %s", folder)
			}
		}
	}
	if n == 0 {
		t.Error("the program has no package of this module")
	}
}

// TestInstalled installs the source distribution into a new environment, with the machine's Go. The environment then
// has the program on its PATH, python -m dpsight, and the Python package.
func TestInstalled(t *testing.T) {
	testkit.Rest(t)
	folder, _ := packed(t)
	sdist, err := filepath.Glob(filepath.Join(folder, "*.tar.gz"))
	if err != nil || len(sdist) != 1 {
		t.Fatalf("%v, %v", sdist, err)
	}
	checkout, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	venv := filepath.Join(folder, "venv")
	at := func(name string) string { return filepath.Join(venv, "bin", name) }
	run := func(command ...string) string {
		t.Helper()
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
		return string(out)
	}
	run("python3", "-m", "venv", venv)
	run(at("pip"), "install", "--quiet", "--no-index", "--disable-pip-version-check", sdist[0])
	version := run(at("dpsight"), "--version")
	commit := run("git", "-C", checkout, "rev-parse", "HEAD")
	if !strings.HasPrefix(version, "dpsight ") || !strings.Contains(version, strings.TrimSpace(commit)) {
		t.Errorf("--version prints %q", version)
	}
	if got := run(at("python"), "-m", "dpsight", "--version"); got != version {
		t.Errorf("python -m dpsight prints %q, the program %q", got, version)
	}
	typed, err := filepath.Abs("collect/agent/tests/typed.py")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", run("python3", filepath.Join(checkout, "scripts/measure_limits.py"), at("python")))
	if got := run(at("python"), typed); got != "" {
		t.Errorf("an unrecorded script prints %q", got)
	}
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("CONDA_PREFIX", "")
	t.Setenv("DPSIGHT_PYTHON", "")
	// The environment has no torch, so doctor exits with 1.
	out, _ := exec.Command(at("dpsight"), "doctor", "--store", folder).Output()
	for _, want := range []string{at("python3") + " (installed with)", "is the same"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("doctor does not say %q:\n%s", want, out)
		}
	}
}
