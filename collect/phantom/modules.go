package phantom

import (
	_ "embed"
	"slices"
)

//go:embed pysrc/phantom_init.py
var initModule []byte

//go:embed pysrc/phantom_ranks.py
var ranksModule []byte

//go:embed pysrc/phantom_launch.py
var ranksLauncher []byte

// InitModule is the source of the Python module that puts off the drawing of large tensors on the host until somebody reads
// them, named phantom_init. Its function install(torch) is to be called like that of [PythonModule].
func InitModule() []byte { return slices.Clone(initModule) }

// RanksModule is the source of the Python module that lets one process be a rank of a world whose other ranks do not run, named
// phantom_ranks. Its function install(torch) is to be called once, in a process that has the variables that torchrun sets.
func RanksModule() []byte { return slices.Clone(ranksModule) }

// RanksLauncher is the source of a script that runs a command once for each of several sets of variables:
// phantom_launch.py NAME=VALUE,…;NAME=VALUE,… COMMAND….
func RanksLauncher() []byte { return slices.Clone(ranksLauncher) }
