package phantom

import (
	"embed"
	"os"
	"path"
	"path/filepath"
)

//go:embed pysrc/*.py
var modules embed.FS

// plugins are the Python modules that a process on the phantom GPU loads, in this order. Each has a function
// install(torch), which is called once after torch is imported, before or after CUDA is initialised.
//
//   - phantom_torch has the private parts of torch that the others use, and installs nothing.
//   - phantom_values follows small values on the phantom device, by the library that the variable PHANTOM_VALUES names.
//     With this module, small tensors with known inputs have their true values, and operators whose output size depends
//     on values (unique, nonzero, ...) get an answer. Reads of unknown values return zeros, or slowly falling numbers
//     for single floating-point values, and are listed.
//   - phantom_init defers the drawing of large tensors on the host until they are read.
//   - phantom_ranks lets one process be a rank of a world whose other ranks do not run. That process needs the
//     variables that torchrun sets.
var plugins = []string{"phantom_torch.py", "phantom_values.py", "phantom_init.py", "phantom_ranks.py"}

// RanksLauncher is the name of a script among the modules that runs a command once for each of several sets of
// variables: phantom_launch.py NAME=VALUE,…;NAME=VALUE,… COMMAND….
const RanksLauncher = "phantom_launch.py"

// Unpack writes the Python modules into a folder and returns the paths of those that a process must load, in that
// order.
func Unpack(dir string) ([]string, error) {
	entries, err := modules.ReadDir("pysrc")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		source, err := modules.ReadFile(path.Join("pysrc", entry.Name()))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, entry.Name()), source, 0o600); err != nil {
			return nil, err
		}
	}
	var paths []string
	for _, name := range plugins {
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths, nil
}

// Modules returns the sources of the Python modules.
func Modules() embed.FS { return modules }

// Files returns all files of the phantom GPU: C sources, Python modules and device profiles.
func Files() []embed.FS { return []embed.FS{sources, modules, profileFiles} }
