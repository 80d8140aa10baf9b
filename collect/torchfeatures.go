package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/dpsight/dpsight/collect/agent"
	"github.com/dpsight/dpsight/collect/interpreter"
	"github.com/dpsight/dpsight/schemas"
)

// probesTime limits the time of the probes, which import torch and rarely used parts of it.
const probesTime = 3 * time.Minute

const probesProgram = `
import sys
sys.path.insert(0, sys.argv[1])
from dpsight import torch_probes
print("` + interpreter.Marker + `", end="")
torch_probes.main()
`

// TorchFeatures tests the agent's features in an interpreter's torch. TorchFeatures hides the GPUs, so that the probes
// use none.
func TorchFeatures(ctx context.Context, python string) ([]schemas.TorchFeature, error) {
	ctx, cancel := context.WithTimeout(ctx, probesTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "dpsight-probes-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := agent.Unpack(dir); err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-W", "ignore", "-c", probesProgram, dir+"/python")
	cmd.Env = append(os.Environ(), "CUDA_VISIBLE_DEVICES=", "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr, cmd.WaitDelay = &stderr, time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the probes did not run: %w: %s", err, lastLine(stderr.String()))
	}
	_, text, _ := strings.Cut(string(out), interpreter.Marker)
	var features []schemas.TorchFeature
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&features); err != nil {
		return nil, fmt.Errorf("the answer of the probes: %w", err)
	}
	return features, nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
