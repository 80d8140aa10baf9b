package schemas

// Sample is one row of samples.parquet: one NVML reading of one device, in NVML's own integers; optional values are
// null if the device or driver does not answer.
type Sample struct {
	RunID     string `parquet:"run_id,dict"`   // the run's id, as in run.json
	Rank      int32  `parquet:"rank"`          // always 0: samples belong to a device, not to a rank
	Device    int32  `parquet:"device"`        // NVML's index of the device
	TimeNS    int64  `parquet:"time_ns,delta"` // ns, Unix time
	UsedBytes int64  `parquet:"used_bytes"`    // memory in use on the whole device, by any process
	// memory that the driver reserves for itself; null with memory API version 1, whose UsedBytes includes it
	ReservedBytes  int64  `parquet:"reserved_bytes,optional"`
	FreeBytes      int64  `parquet:"free_bytes"`              // free memory of the device
	MemoryAPI      int32  `parquet:"memory_api"`              // version of NVML's memory call: 1 or 2
	ProcessBytes   *int64 `parquet:"process_bytes,optional"`  // device memory of all processes of the run
	OtherProcesses int32  `parquet:"other_processes"`         // number of compute processes that do not belong to the run
	SMPercent      *int32 `parquet:"sm_percent,optional"`     // share of the time in which some kernel ran
	MemoryPercent  *int32 `parquet:"memory_percent,optional"` // share of the time in which memory was read or written
	PowerMW        *int64 `parquet:"power_mw,optional"`       // milliwatt
	// energy since the driver was loaded, in millijoules; sampled once a second, since a call takes milliseconds
	EnergyMJ        *int64 `parquet:"energy_mj,optional"`
	TemperatureC    *int32 `parquet:"temperature_c,optional"`    // degrees Celsius
	SMClockMHz      *int32 `parquet:"sm_clock_mhz,optional"`     // MHz
	MemoryClockMHz  *int32 `parquet:"memory_clock_mhz,optional"` // MHz
	ThrottleReasons *int64 `parquet:"throttle_reasons,optional"` // NVML's bit mask
}

// Samples is samples.parquet.
var Samples = Table[Sample]{Name: "samples", Version: 1}

// HostSample is one row of host.parquet: the memory and CPU time of the run's process tree, as the kernel reports them.
type HostSample struct {
	RunID  string `parquet:"run_id,dict"`   // the run's id, as in run.json
	Rank   int32  `parquet:"rank"`          // always 0: the sample is of the whole process tree
	TimeNS int64  `parquet:"time_ns,delta"` // ns, Unix time
	// resident memory of the process tree; a page that processes share counts in each of them
	RSSBytes    int64  `parquet:"rss_bytes"`
	CPUNS       int64  `parquet:"cpu_ns,delta"`          // user and system time of the tree's living processes, in ns
	Processes   int32  `parquet:"processes"`             // number of living processes
	PinnedBytes *int64 `parquet:"pinned_bytes,optional"` // torch's page-locked memory, where torch reports it
}

// HostSamples is host.parquet.
var HostSamples = Table[HostSample]{Name: "host", Version: 1}
