package collect

import (
	"os/exec"
	"path/filepath"
)

// launcherHint says where a launcher may be found that is not on PATH.
func launcherHint(name string) string {
	if python, err := BuiltinPython(""); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(python.Path), name)); err == nil {
			return "use the " + name + " beside dpsight's Python: " + path
		}
	}
	if name == "torchrun" {
		return "torchrun comes with torch: activate torch's environment, or write python -m torch.distributed.run instead"
	}
	return "activate the environment that has torch, then pip install " + name
}
