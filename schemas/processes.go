package schemas

// Process is one row of processes.parquet: one process that recorded.
type Process struct {
	RunID   string `parquet:"run_id,dict"`
	Rank    int32  `parquet:"rank"`
	PID     int64  `parquet:"pid"`
	Device  int32  `parquet:"device,optional"` // the device it first used
	UUID    string `parquet:"gpu_uuid,optional"`
	StartNS int64  `parquet:"start_ns"`
	EndNS   int64  `parquet:"end_ns,optional"`
	Ended   string `parquet:"ended,dict"` // exit, exception, unknown (no last mark: killed, os._exit or exec)
}

// Processes is processes.parquet.
var Processes = Table[Process]{Name: "processes", Version: 1}
