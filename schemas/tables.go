package schemas

// Want is a set of tables to load, as bits.
type Want uint

// The tables. Manifest and ingest report are always read.
const (
	WantMemory Want = 1 << iota // allocations and owners
	WantTimes                   // steps and phases
	// NVML samples and processes (processes also with memory or times, if a run has several devices or ranks)
	WantSamples
	WantEvents    // events that change reserved; other events are not loaded
	WantGradients // when each gradient was written
	// adds to WantMemory: where blocks were born, names and modules of owners, modules, stacks and windows (windows also
	// without WantDetail, if requests failed)
	WantDetail
	WantClock       // when each event happened
	WantModuleTimes // GPU time by module, and modules
	WantReserved    // bytes reserved
	// the blocks with their owners in columns, for sums of bytes only; if requests failed, with memory as well
	WantLives
	WantHost      // the host's memory, and the marks that the script set
	WantHostMarks // host memory that each process took at its marks
)

// Tables has the data of one run for analysis. A field is empty if it was not requested (see [Want]), or if the run
// does not have it.
type Tables struct {
	Manifest *Manifest
	Report   *IngestReport // nil if the run was never ingested
	// Confidence is for a predicted run whose report has none. If Confidence is nil, Report has the confidence, or it
	// has not been determined.
	Confidence  *Confidence
	Allocations []Allocation // identity, sizes and life of blocks; with WantDetail also where they were born
	Owners      []Owner      // with WantDetail also their names and modules
	Steps       []Step
	Phases      []Phase
	Processes   []Process
	Samples     []Sample
	Host        []HostSample
	HostMarks   []HostMark // only with WantHostMarks
	UserMarks   []UserMark
	Events      []Event // only events of segments
	Gradients   []GradientWrite
	Modules     []Module     // only with WantDetail
	Stacks      []StackFrame // only with WantDetail
	Lines       []Line       // only with WantDetail
	Holders     []Holder     // only with WantDetail
	// Sources has the lines of each source file that Lines names, if the file is available and has not changed since
	// the run. Sources is no table.
	Sources     map[string][]string // only with WantDetail
	Clocks      []EventClock
	ModuleTimes []ModuleTime
	Reserved    []ReservedLevel // only with WantReserved or WantEvents
	Lives       []Lives
	Segments    []SegmentBlock // with WantDetail or failed requests: the lists with which later windows open
}
