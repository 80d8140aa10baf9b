package schemas

// ModuleTime is one row of module_times.parquet: the GPU time, between CUDA events, of one module's own work in one
// phase of one instrumented step. The work of a module that it calls counts for the called module. So the rows of a
// step and phase sum to the phase's GPU time. Bare steps, whose times are published, have no rows, and neither have
// runs without a real GPU.
type ModuleTime struct {
	RunID  string `parquet:"run_id,dict"`             // the run's id, as in run.json
	Rank   int32  `parquet:"rank,dict"`               // the process's RANK, from 0
	Step   int64  `parquet:"step,delta"`              // number of the step, from 0
	Phase  string `parquet:"phase,dict"`              // phase of the work
	Module int64  `parquet:"module_id,dict,optional"` // module that did the work; null = inside no module's call
	DPHook bool   `parquet:"dp_hook"`                 // a DP hook computed norms or per-sample gradients for the module
	GPUNS  int64  `parquet:"gpu_ns"`                  // ns
}

// ModuleTimes is module_times.parquet. Runs that older versions recorded have no such table.
var ModuleTimes = Table[ModuleTime]{Name: "module_times", Version: 1}

// CompareDPHook orders the rows of one module: the module's own time comes before the time of its DP hook.
func CompareDPHook(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
