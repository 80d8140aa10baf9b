package grammar

// An ExitCode is a number with which dpsight may exit.
type ExitCode struct{ Code, Means string }

// ExitCodes are all exit codes of dpsight. Users' scripts depend on them.
var ExitCodes = []ExitCode{
	{"0", "Done."},
	{"1", "An experiment or a check failed."},
	{"2", "Bad usage or bad input."},
}

// A Variable is an environment variable that a user may set.
type Variable struct{ Name, Means string }

// Environment are all variables that a user may set. dpsight itself sets other variables that begin with DPSIGHT_ or
// PHANTOM_ for the processes that it starts.
var Environment = []Variable{
	{"DPSIGHT_STORE", "The folder of runs where --store is not given."},
	{"DPSIGHT_PYTHON", "The interpreter of the built-in experiments where --python is not given."},
	{"DPSIGHT_ATTACH", "1 records each Python process that imports torch, where the package dpsight is installed " +
		"(docs/attach.md)."},
	{"DPSIGHT_ATTACH_STORE", "The folder into which such a process writes its runs (default: runs)."},
	{"DPSIGHT_ATTACH_NAME", "The name of these runs."},
	{"DPSIGHT_ATTACH_EVENTS", "The number of allocator events that torch keeps for them at most (default: 200000)."},
	{"DPSIGHT_ATTACH_JOURNAL_MIB", "The size of the journal at which recording begins again (default: 64)."},
	{"DPSIGHT_ATTACH_DUMPS", "The number of failed requests that have a run each; of later ones the 1st, 2nd, 4th, 8th " +
		"… has one (default: 3)."},
	{"DPSIGHT_ATTACH_SIGNALS", "0 leaves SIGUSR2 to the process; else it writes a run."},
	{"PHANTOM_INIT", "eager computes weights that a script draws on the host at once, and not when it reads them."},
	{"CUDA_VISIBLE_DEVICES", "The GPUs that dpsight and the script see."},
	{"COLUMNS", "The width of tables, where it is not the terminal's."},
	{"NO_COLOR", "Any value turns colours off."},
	{"XDG_CACHE_HOME", "The folder of caches, which has the compiled phantom GPU (default: ~/.cache)."},
}
