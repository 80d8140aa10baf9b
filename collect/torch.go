package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The oldest torch that can be recorded: 2.10 brought the metadata that ties allocator events to marks.
const oldestMajor, oldestMinor = 2, 10

// probeTime bounds the question to an interpreter; a cold file system takes seconds.
const probeTime = 60 * time.Second

// Install is an interpreter and what it would import, found without importing it: to import torch takes seconds, and may fail.
type Install struct {
	Python string // version
	Torch  string // version, "" = absent
	CUDA   string // that torch was built for, "" = none
	Opacus string // version, "" = absent
}

// The marker tells the answer from what a .pth file or a sitecustomize of the user's may print.
const probeMarker = "dpsight-probe:"

const probeProgram = `
import importlib.metadata, importlib.util, json, sys
def where(name):
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    return list(spec.submodule_search_locations or []) if spec else []
def version(name):
    try:
        return importlib.metadata.version(name)
    except Exception:
        return ""
print("` + probeMarker + `" + json.dumps({"python": sys.version.split()[0], "torch": where("torch"), "torch_version": version("torch"),
      "opacus": where("opacus") and version("opacus")}))
`

var (
	torchVersionLine = regexp.MustCompile(`(?m)^__version__\s*(?::[^=]*)?=\s*['"]([^'"]+)['"]`)
	torchCUDALine    = regexp.MustCompile(`(?m)^cuda\s*(?::[^=]*)?=\s*['"]([^'"]+)['"]`)
)

// Probe asks an interpreter what it has. env is the environment that it will run in.
func Probe(ctx context.Context, python string, env []string) (*Install, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-c", probeProgram)
	cmd.Env, cmd.Stderr, cmd.WaitDelay = env, &stderr, time.Second
	out, err := cmd.Output()
	if err != nil {
		detail := lastLine(stderr.String())
		if detail == "" {
			detail = err.Error()
		}
		return nil, &UsageError{fmt.Sprintf("%s does not run as a Python interpreter: %s", python, detail), "name another one with --python"}
	}
	_, text, ok := strings.Cut(string(out), probeMarker)
	if !ok {
		return nil, &UsageError{fmt.Sprintf("%s does not answer as a Python interpreter", python), "name another one with --python"}
	}
	var answer struct {
		Python       string   `json:"python"`
		Torch        []string `json:"torch"`
		TorchVersion string   `json:"torch_version"`
		Opacus       any      `json:"opacus"` // a list when absent
	}
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", python, err)
	}
	in := &Install{Python: answer.Python}
	in.Opacus, _ = answer.Opacus.(string)
	for _, dir := range answer.Torch {
		b, err := os.ReadFile(filepath.Join(dir, "version.py"))
		if err != nil {
			continue
		}
		in.Torch = answer.TorchVersion
		if m := torchVersionLine.FindSubmatch(b); m != nil {
			in.Torch = string(m[1])
		}
		if m := torchCUDALine.FindSubmatch(b); m != nil {
			in.CUDA = string(m[1])
		}
		break
	}
	return in, nil
}

// check says in one sentence why experiments cannot be recorded with this install, nil if they can.
func (in *Install) check(python string) error {
	const install = "pip install torch (2.10 or later, a CUDA build), or name another interpreter"
	switch major, minor := torchVersion(in.Torch); {
	case in.Torch == "":
		return &UsageError{fmt.Sprintf("%s (Python %s) has no torch", python, in.Python), install}
	case major < oldestMajor || major == oldestMajor && minor < oldestMinor:
		return &UsageError{fmt.Sprintf("torch %s is too old to be recorded: %d.%d or later is needed", in.Torch, oldestMajor, oldestMinor),
			"upgrade torch; memory snapshots made with it can be read by dpsight ingest"}
	case in.CUDA == "":
		return &UsageError{fmt.Sprintf("torch %s of %s is not a CUDA build", in.Torch, python),
			"install a CUDA build of torch: the phantom GPU needs one too, though no GPU"}
	}
	return nil
}

func torchVersion(v string) (major, minor int) {
	parts := strings.SplitN(v, ".", 3)
	if len(parts) < 2 {
		return 0, 0
	}
	major, _ = strconv.Atoi(parts[0])
	minor, _ = strconv.Atoi(strings.TrimFunc(parts[1], func(r rune) bool { return r < '0' || r > '9' }))
	return major, minor
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
