// Package interpreter finds out what a Python interpreter would import, without importing it: importing torch takes
// seconds, and may fail.
package interpreter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// An Answer has an interpreter's facts about itself.
type Answer struct {
	Executable   string   `json:"executable"` // as its sys.executable gives it
	Version      string   `json:"python"`     // such as 3.11.7
	Prefix       string   `json:"prefix"`
	Torch        []string `json:"torch"`         // folders of the package torch; none if there is no torch
	TorchVersion string   `json:"torch_version"` // as torch's installer noted it; empty if it did not
	Nvidia       []string `json:"nvidia"`        // folders of NVIDIA's packages
	Opacus       string   `json:"opacus"`        // version; "" if absent
	// Package has the folders of an installed package dpsight, and PackageVersion its version.
	Package        []string `json:"dpsight"`
	PackageVersion string   `json:"dpsight_version"`
}

// An Error reports that a program is not a usable Python interpreter.
type Error struct {
	Python  string
	Problem string
}

func (e *Error) Error() string { return e.Python + " " + e.Problem }

// Marker is the beginning of the answer's line, since a .pth file or the user's sitecustomize may print too.
const Marker = "dpsight-probe:"

const program = `
import importlib.metadata, importlib.util, json, sys
def where(name):
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    return list(spec.submodule_search_locations or []) if spec else []
def version(name):
    try:
        return importlib.metadata.version(name) or ""
    except Exception:
        return ""
print("` + Marker + `" + json.dumps({
      "executable": sys.executable, "python": sys.version.split()[0], "prefix": sys.prefix,
      "torch": where("torch"), "torch_version": version("torch"), "nvidia": where("nvidia"),
      "opacus": version("opacus") if where("opacus") else "",
      "dpsight": where("dpsight"), "dpsight_version": version("dpsight")}))
`

// Ask queries an interpreter in an environment; env nil is this process's own. For a program that is no Python
// interpreter it returns an [Error].
func Ask(ctx context.Context, python string, env []string) (*Answer, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-c", program)
	cmd.Env, cmd.Stderr, cmd.WaitDelay = env, &stderr, time.Second
	out, err := cmd.Output()
	if err != nil {
		detail := reason(stderr.String())
		if detail == "" {
			detail = err.Error()
		}
		return nil, &Error{python, "does not run as a Python interpreter: " + detail}
	}
	_, text, ok := strings.Cut(string(out), Marker)
	if !ok {
		return nil, &Error{python, "does not answer as a Python interpreter"}
	}
	a := new(Answer)
	if err := json.NewDecoder(strings.NewReader(text)).Decode(a); err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", python, err)
	}
	return a, nil
}

var (
	versionLine = regexp.MustCompile(`(?m)^__version__\s*(?::[^=]*)?=\s*['"]([^'"]+)['"]`)
	cudaLine    = regexp.MustCompile(`(?m)^cuda\s*(?::[^=]*)?=\s*['"]([^'"]+)['"]`)
)

// TorchBuild reads the version of the torch in a folder, and the CUDA version that torch was built for. A version that
// torch does not state is "".
func TorchBuild(folder string) (version, cuda string, err error) {
	b, err := os.ReadFile(filepath.Join(folder, "version.py"))
	if err != nil {
		return "", "", err
	}
	if m := versionLine.FindSubmatch(b); m != nil {
		version = string(m[1])
	}
	if m := cudaLine.FindSubmatch(b); m != nil {
		cuda = string(m[1])
	}
	return version, cuda, nil
}

// reason returns the line of a failed program's output that states the problem. For a Python exception that is the last
// line. For other programs, such as pyenv, it is the first line, which advice follows.
func reason(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := lines[0]
	for _, l := range lines {
		switch {
		case strings.HasPrefix(l, "Fatal Python error:"):
			return strings.TrimSpace(l)
		case strings.HasPrefix(l, "Traceback "):
			line = lines[len(lines)-1]
		}
	}
	return strings.TrimSpace(line)
}
