package phantom

import "embed"

//go:embed pysrc/*.py
var modules embed.FS

// module is a copy of a Python module's source.
func module(name string) []byte {
	b, err := modules.ReadFile("pysrc/" + name)
	if err != nil {
		panic(err) // the names are constants
	}
	return b
}

// InitModule is the source of the Python module that puts off the drawing of large tensors on the host until somebody
// reads them, named phantom_init. Its function install(torch) is to be called like that of [PythonModule].
func InitModule() []byte { return module("phantom_init.py") }

// RanksModule is the source of the Python module that lets one process be a rank of a world whose other ranks do not
// run, named phantom_ranks. Its function install(torch) is to be called once, in a process that has the variables that
// torchrun sets.
func RanksModule() []byte { return module("phantom_ranks.py") }

// RanksLauncher is the source of a script that runs a command once for each of several sets of variables:
// phantom_launch.py NAME=VALUE,…;NAME=VALUE,… COMMAND….
func RanksLauncher() []byte { return module("phantom_launch.py") }

// Files are all that the phantom GPU is made of: C sources, Python modules and device profiles.
func Files() []embed.FS { return []embed.FS{sources, modules, profileFiles} }
