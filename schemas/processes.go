package schemas

// Process is one row of processes.parquet: one device that a recording process used. A process that used no device
// has one row without a UUID.
type Process struct {
	RunID string `parquet:"run_id,dict"` // the run's id, as in run.json
	Rank  int32  `parquet:"rank"`        // the process's RANK, from 0
	PID   int64  `parquet:"pid"`         // process id, as the kernel numbers it
	// torch's ordinal of the device, which CUDA_VISIBLE_DEVICES maps to a GPU; it is no NVML index
	Device int32 `parquet:"device,optional"`
	// UUID of the GPU as in the manifest; if the manifest lists no such GPU (a MIG instance, a phantom GPU), as torch
	// reports it; null = not known
	UUID    string `parquet:"gpu_uuid,optional"`
	StartNS int64  `parquet:"start_ns"`        // ns, Unix time
	EndNS   int64  `parquet:"end_ns,optional"` // ns, Unix time; null = not known
	Ended   string `parquet:"ended,dict"`      // exit, exception, or unknown (no last mark: killed, os._exit or exec)
}

// Processes is processes.parquet.
var Processes = Table[Process]{Name: "processes", Version: 1}
