package dpsight_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

// release runs scripts/release.py without publishing.
func release(python string, arguments ...string) (string, error) {
	cmd := exec.Command(python, append([]string{"-B", "scripts/release.py", "--dry-run"}, arguments...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestReleaseRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for want, arguments := range map[string][]string{
		"the tag says v9.9.9": {"v9.9.9", "-o", t.TempDir()},
		"the tag says 0.":     {strings.TrimPrefix(releaseTag(t), "v"), "-o", t.TempDir()},
		"has files already":   {releaseTag(t), "-o", full},
	} {
		if out, err := release("python3", arguments...); err == nil || !strings.Contains(out, want) {
			t.Errorf("%v: %v, %s", arguments, err, out)
		}
	}
}

func releaseTag(t *testing.T) string {
	t.Helper()
	return "v" + firstMatch(t, "cmd/dpsight/version.go", `(?m)^const version = "(.+)"$`)
}

func firstMatch(t *testing.T, file, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindSubmatch(contents(t, file))
	if match == nil {
		t.Fatalf("%s has no %s", file, pattern)
	}
	return string(match[1])
}

// The scripts that the release workflow runs exist, and the image has the same versions of torch as the tests.
func TestReleaseWorkflow(t *testing.T) {
	workflow := string(contents(t, ".github/workflows/release.yml"))
	called := regexp.MustCompile(`(?:\.ci|scripts|requirements)/[\w./-]+`).FindAllString(workflow, -1)
	for _, file := range called {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("the workflow calls %s: %v", file, err)
		}
	}
	for _, wanted := range []string{".ci/run", "scripts/release.py"} {
		if !slices.Contains(called, wanted) {
			t.Errorf("the workflow does not call %s", wanted)
		}
	}
	for _, target := range regexp.MustCompile(`run: make (\w+)`).FindAllStringSubmatch(workflow, -1) {
		firstMatch(t, "Makefile", `(?m)^(`+target[1]+`):`)
	}
	image := string(contents(t, "Containerfile"))
	for line := range strings.FieldsSeq(string(contents(t, "requirements/torch-2.11.txt"))) {
		if !strings.Contains(image, line) {
			t.Errorf("the image lacks %s", line)
		}
	}
}

// TestRelease makes a release for two platforms without publishing it. TestRelease checks the files, their checksums,
// their bills of materials, and the commands that would publish them.
func TestRelease(t *testing.T) {
	testkit.Rest(t)
	python, err := exec.Command("scripts/venv.sh", "requirements/wheels.txt").Output()
	if err != nil {
		t.Fatal(err)
	}
	tag, folder := releaseTag(t), filepath.Join(t.TempDir(), "dist")
	printed, err := release(strings.TrimSpace(string(python)), "-o", folder, tag,
		"manylinux_2_28_x86_64", "win_amd64")
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	sums := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	sums.Dir = folder
	out, err := sums.CombinedOutput()
	if err != nil || strings.Count(string(out), ": OK\n") != 7 {
		t.Errorf("%v\n%s", err, out)
	}
	name := "dpsight-" + tag[1:]
	for _, command := range []string{"docker build ", "docker push ", "gh release create " + tag, "uv publish "} {
		if !strings.Contains(printed, "\n"+command) {
			t.Errorf("nothing is published by %s:\n%s", command, printed)
		}
	}
	checkMaterials(t, filepath.Join(folder, name+"-linux-amd64.cdx.json"), tag)

	program, linux := filepath.Join(t.TempDir(), "dpsight"), linuxProgram(t, folder, name)
	for _, torch := range []string{"2.11", "2.15"} {
		pinned := firstMatch(t, "requirements/torch-"+torch+".txt", `torch==(\S+)`)
		if !bytes.Contains(linux, []byte("prebuilt/"+pinned+"+cu")) {
			t.Errorf("the phantom GPU for torch %s is not inside", pinned)
		}
	}
	if err := os.WriteFile(program, linux, 0o755); err != nil {
		t.Fatal(err)
	}
	version, err := exec.Command(program, "--version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(version), "dpsight "+tag[1:]+" (commit ") {
		t.Errorf("%v, %s", err, version)
	}
	windows, err := zip.OpenReader(filepath.Join(folder, name+"-windows-amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer windows.Close()
	if got := windows.File[0].Name; got != name+"-windows-amd64/dpsight.exe" {
		t.Errorf("the archive for Windows begins with %s", got)
	}
}

// linuxProgram returns the program from the release's archive for Linux. linuxProgram checks that the wheel has the
// same program.
func linuxProgram(t *testing.T, folder, name string) []byte {
	t.Helper()
	packed, err := gzip.NewReader(bytes.NewReader(contents(t, filepath.Join(folder, name+"-linux-amd64.tar.gz"))))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(packed)
	header, err := archive.Next()
	if err != nil || header.Name != name+"-linux-amd64/dpsight" || header.Mode != 0o755 {
		t.Fatalf("%+v, %v", header, err)
	}
	program, err := io.ReadAll(archive)
	if err != nil {
		t.Fatal(err)
	}
	wheel, err := zip.OpenReader(filepath.Join(folder, name+"-py3-none-manylinux_2_28_x86_64.whl"))
	if err != nil {
		t.Fatal(err)
	}
	defer wheel.Close()
	file, err := wheel.Open(name + ".data/scripts/dpsight")
	if err != nil {
		t.Fatal(err)
	}
	if inWheel, err := io.ReadAll(file); err != nil || !bytes.Equal(inWheel, program) {
		t.Errorf("the program is another than the wheel's: %v", err)
	}
	return program
}

// checkMaterials checks that a bill of materials lists the program and a module of go.mod.
func checkMaterials(t *testing.T, path, tag string) {
	t.Helper()
	var bill struct {
		Format   string `json:"bomFormat"`
		Metadata struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(contents(t, path), &bill); err != nil {
		t.Fatal(err)
	}
	c := bill.Metadata.Component
	if bill.Format != "CycloneDX" || c.Version != tag || !strings.Contains(c.Name, "dpsight") {
		t.Errorf("%+v", bill.Metadata)
	}
	kong := firstMatch(t, "go.mod", `github.com/alecthomas/kong (\S+)`)
	if !slices.Contains(bill.Components, struct{ Name, Version string }{"github.com/alecthomas/kong", kong}) {
		t.Errorf("%d components, kong %s not among them", len(bill.Components), kong)
	}
}
