package collect

import (
	"os/exec"
	"path/filepath"
)

// launcherHint says where a launcher may be found that is not on PATH.
func launcherHint(name string) string {
	if python, err := BuiltinPython(""); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(python.Path), name)); err == nil {
			return "it is not on PATH, but lies beside the Python that dpsight uses: " + path
		}
	}
	if name == "torchrun" {
		return "torch brings it: activate torch's environment, or write python -m torch.distributed.run in its place"
	}
	return "pip install " + name + ", into the environment that has torch, and activate that"
}
