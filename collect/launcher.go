package collect

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// launchModules are launchers as Python modules; launchers are programs, with what stands between them and their options.
var (
	launchModules = []string{"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"}
	launchers     = map[string]string{"torchrun": "", "deepspeed": "", "accelerate": "launch"}
)

// launched gives the words behind a launcher, which are its options, the script and the script's arguments; nil where the
// command is none.
func launched(argv []string) []string {
	name := filepath.Base(argv[0])
	if second, ok := launchers[name]; ok {
		switch {
		case second == "":
			return argv[1:]
		case len(argv) > 1 && argv[1] == second:
			return argv[2:]
		}
		return nil
	}
	if !pythonName.MatchString(name) {
		return nil
	}
	for i, word := range argv[1:] {
		if word == "-m" && i+2 < len(argv) && slices.Contains(launchModules, argv[i+2]) {
			return argv[i+3:]
		}
		if !strings.HasPrefix(word, "-") {
			break
		}
	}
	return nil
}

// startsModule reports whether a launcher's option says that what it starts is a module: torchrun and accelerate have both spellings,
// deepspeed the long one.
func startsModule(word string) bool { return word == "-m" || word == "--module" }

func isLauncher(name string) bool { _, ok := launchers[name]; return ok }

// launcherHint says where a launcher that is not on PATH may be found.
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

// ranksOf is how many processes a launcher starts on this machine, 1 where none can be seen.
func ranksOf(argv []string) int {
	words := launched(argv)
	for i, word := range words {
		if startsModule(word) || !strings.HasPrefix(word, "-") && strings.HasSuffix(word, ".py") {
			break // what follows is the script's
		}
		name, value, given := strings.Cut(strings.ReplaceAll(word, "-", "_"), "=")
		if !given && i+1 < len(words) {
			value = words[i+1]
		}
		switch name {
		case "__nproc_per_node", "__num_processes", "__num_gpus":
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				return n
			}
		}
	}
	return 1
}
