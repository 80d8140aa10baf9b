package schemas

import (
	"slices"
	"time"
)

// ManifestFile is the name of a run's manifest.
const ManifestFile = "run.json"

// ManifestSchema is the version that this package writes.
const ManifestSchema = "dpsight.run/2"

// undigestedManifest is the version before [ManifestSchema]. Manifests of this version can still be read, and have no
// digests.
const undigestedManifest = "dpsight.run/1"

// Manifest (run.json) says what was run, where, and how it ended. collect writes it (or ingest, for an imported
// file), and no later stage changes it. Secrets in Command and Params are masked as "***".
type Manifest struct {
	Schema string `json:"schema"`
	RunID  string `json:"run_id"`
	Name   string `json:"name"`
	Source string `json:"source"` // [Measured], [Predicted] or [Imported]
	// Profile is the device profile of a predicted run ("h200").
	Profile *string `json:"profile"`
	// Phantom is the device of a predicted run; null for other runs, and if an older version predicted.
	Phantom *Phantom `json:"phantom,omitempty"`
	Status  string   `json:"status"`
	// Reason is one line that says why Status is not ok.
	Reason string `json:"reason,omitempty"`
	// Interrupted is true if the collector was told to stop. For an interrupted run it is not known how the experiment
	// would have ended.
	Interrupted bool     `json:"interrupted,omitempty"`
	ExitCode    *int     `json:"exit_code"` // the command's exit code; null = ended by a signal, or not known
	Signal      *string  `json:"signal"`
	Command     []string `json:"command"`
	// Params are the experiment's parameters. Params have no fixed names; the values are JSON scalars.
	Params map[string]any `json:"params"`
	// Bare is true for a bare run, which has counters and timers but no allocator events.
	Bare        bool         `json:"bare"`
	Suite       *SuiteRef    `json:"suite"`
	Start       time.Time    `json:"start"`
	End         *time.Time   `json:"end"`
	Host        Host         `json:"host"`
	GPUs        []GPU        `json:"gpus"`
	Driver      *string      `json:"driver"`
	Interpreter *Interpreter `json:"interpreter"`
	Environment *Environment `json:"environment"` // the environment as the agent reported it
	Privacy     *Privacy     `json:"privacy"`     // the DP configuration as the agent saw it
	Git         *Git         `json:"git"`
	// Code is the user's own code that the run's Python processes executed. Code is null if an older version recorded
	// the run, or if no process could report its code.
	Code      *Code      `json:"code,omitempty"`
	Isolation *Isolation `json:"isolation"`
	Collector Collector  `json:"collector"`
	// Attached says how a process that dpsight did not start was recorded; null for all other runs.
	Attached *Attached `json:"attached,omitempty"`
	// Import names the source file of an imported run.
	Import   *Import  `json:"import"`
	Warnings []string `json:"warnings"`
	// Tables has the digests of the tables that the collector wrote, by file name. Tables is null in older manifests,
	// and if the collector did not see the end of the run.
	Tables map[string]string `json:"tables,omitempty"` // digests as "sha256:" and 64 hexadecimal digits
}

// Attached describes a run that dpsight.attach() wrote. The process of an attached run continued afterwards, and may
// have written further runs.
type Attached struct {
	Reason       string `json:"reason"`        // why the run was written: a request that failed, dpsight.dump(), a signal
	PID          int    `json:"pid"`           // process id as the process itself knows it
	BeganAnew    int    `json:"began_anew"`    // how often recording began again because its journal was full
	Events       int64  `json:"events"`        // largest number of allocator events that torch keeps
	RingBytes    int64  `json:"ring_bytes"`    // most bytes of host memory that these events take
	JournalBytes int64  `json:"journal_bytes"` // size of the journal at which recording begins again
	// UntracedBytes are the bytes that were allocated when recording began. Models and Optimizers count the models and
	// optimizers whose tensors were tagged at that moment.
	UntracedBytes int64 `json:"untraced_bytes"`
	Models        int   `json:"models"`     // number of models
	Optimizers    int   `json:"optimizers"` // number of optimizers
}

// SampledTables are the tables that the collector writes.
func SampledTables() []string { return []string{Samples.File(), HostSamples.File()} }

// Sampled reports whether the file is one of [SampledTables]. No command can make a sampled table again, since the
// journal does not have its data.
func Sampled(file string) bool { return slices.Contains(SampledTables(), file) }

// Undigested reports whether files of the run have no digests, so that damage to them cannot be noticed. Files have no
// digests if an older version recorded the run or made its tables. The report may be nil.
func Undigested(m *Manifest, r *IngestReport) bool {
	return m.Schema == undigestedManifest || r != nil && r.Schema == undigestedReport
}

// SuiteRef says which run of which suite a run is.
type SuiteRef struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Key        string `json:"key"`        // hash of the experiment's content
	Repetition int    `json:"repetition"` // number of the repetition, from 0
	// Search is true for the suite of a predict --vary search. Runs of a search's suite are trials. Commands that
	// select runs leave out a trial unless the user names it, or unless there are only trials.
	Search bool `json:"search,omitempty"`
}

// Host is the machine of the run.
type Host struct {
	Name        string `json:"name"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`        // number of cores that the operating system shows
	MemoryBytes int64  `json:"memory_bytes"` // memory of the machine
}

// GPU is one GPU as NVML describes it, or as the profile of the phantom GPU does.
type GPU struct {
	Index      int    `json:"index"` // NVML's index of the GPU, from 0
	Name       string `json:"name"`
	UUID       string `json:"uuid"`
	TotalBytes int64  `json:"total_bytes"` // memory of the GPU
}

// Interpreter is the Python that ran the experiment, and why it was chosen.
type Interpreter struct {
	Path string `json:"path"`
	// "--python", "$DPSIGHT_PYTHON", "virtual environment", "installed with", "make setup", "PATH", "command"
	Chosen string `json:"chosen"`
}

// Environment has the versions and settings that the agent read inside the experiment's process. Unknown values are
// null.
type Environment struct {
	Python            string            `json:"python"`
	Torch             string            `json:"torch"`
	CUDA              *string           `json:"cuda"`
	CuDNN             *string           `json:"cudnn"`
	Opacus            *string           `json:"opacus"`
	AllocatorBackend  *string           `json:"allocator_backend"`
	AllocatorSettings map[string]any    `json:"allocator_settings"`
	TF32Matmul        *bool             `json:"tf32_matmul"`
	TF32CuDNN         *bool             `json:"tf32_cudnn"`
	MatmulPrecision   *string           `json:"matmul_precision"`
	SDPABackends      []string          `json:"sdpa_backends"`
	CuDNNBenchmark    *bool             `json:"cudnn_benchmark"`
	Deterministic     *bool             `json:"deterministic"`
	Seed              *int64            `json:"seed"`      // torch's initial seed
	Variables         map[string]string `json:"variables"` // the few environment variables that change memory or speed
}

// Privacy is the DP configuration that the agent saw when the script called make_private or made a DPOptimizer.
type Privacy struct {
	NoiseMultiplier *float64 `json:"noise_multiplier"` // standard deviation of the noise over MaxGradNorm
	MaxGradNorm     *float64 `json:"max_grad_norm"`    // L2 norm to which gradients are clipped
	SampleRate      *float64 `json:"sample_rate"`      // share of the data in a batch, 0 to 1
	Poisson         *bool    `json:"poisson"`
	Clipping        *string  `json:"clipping"`
	GradSampleMode  *string  `json:"grad_sample_mode"`
	LossReduction   *string  `json:"loss_reduction"`
	Accountant      *string  `json:"accountant"`
	Delta           *float64 `json:"delta"`   // δ of the privacy guarantee (ε, δ)
	Epsilon         *float64 `json:"epsilon"` // ε of the privacy guarantee (ε, δ)
}

// Git is the revision of the repository that contains the script, or else of the repository in which the script was
// started.
type Git struct {
	Revision string `json:"revision"`
	Dirty    bool   `json:"dirty"`
	// Committed is when the revision was committed; null if an older version recorded the run.
	Committed *time.Time `json:"committed,omitempty"`
}

// Isolation describes the devices before the run.
type Isolation struct {
	// Verified is true if no other process was on the devices, their memory was at its idle level, their clocks were
	// not throttled, and all of this could be checked.
	Verified bool   `json:"verified"`
	Reason   string `json:"reason,omitempty"` // why Verified is false
	// IdleBytes is the device memory in use before the run, as NVML counts it.
	IdleBytes *int64 `json:"idle_bytes"` // sum over all devices
	// OtherProcesses is how many processes had a compute context on the devices; null if NVML does not say.
	OtherProcesses *int `json:"other_processes"` // number of processes
	// ThrottleReasons is NVML's mask, of all devices together (see [ThrottleNames]); null if NVML does not state
	// it.
	ThrottleReasons *int64 `json:"throttle_reasons"` // a bit for each reason
	// WaitedNS is how long the run waited for idle devices. Polls is how often the collector slept between its checks.
	WaitedNS int64 `json:"waited_ns"` // ns
	Polls    int   `json:"polls"`     // number of sleeps
	// CooldownNS is the pause between finding the devices idle and the run.
	CooldownNS int64 `json:"cooldown_ns"` // ns
}

// Collector describes the process that recorded the run from outside, and its cost. If one collector records several
// runs at the same time, the CPU time in each run's manifest is for all these runs together.
type Collector struct {
	Version string `json:"version"`
	// Built says which code recorded the run; null if an older version recorded the run, and for an imported file.
	Built            *Built `json:"built,omitempty"`
	SampleIntervalNS int64  `json:"sample_interval_ns"` // ns between two readings
	// CPUNS is the CPU time that the collector itself took while the experiment ran. If SetupCPUNS is known, it
	// includes the supervisor, which holds the experiment's processes.
	CPUNS int64 `json:"cpu_ns"` // ns
	// SetupCPUNS is the collector's CPU time before the experiment started. For the first of several runs, SetupCPUNS
	// includes opening NVML. SealCPUNS is the collector's CPU time from the experiment's end until the run was on disk.
	// SetupCPUNS and SealCPUNS are null if the recording version did not measure them.
	SetupCPUNS     *int64   `json:"setup_cpu_ns"` // ns
	SealCPUNS      *int64   `json:"seal_cpu_ns"`  // ns
	Samples        int64    `json:"samples"`      // number of readings taken
	MissedTicks    int64    `json:"missed_ticks"` // number of readings that came too late to be taken
	NVML           bool     `json:"nvml"`
	NVMLReason     string   `json:"nvml_reason,omitempty"`
	LeftRunning    int      `json:"left_running"`    // number of processes of the run that the collector had to end
	Uninjected     []string `json:"uninjected"`      // processes that loaded torch without the agent
	SealedJournals int      `json:"sealed_journals"` // number of journals compressed after the end
}

// Built says from which code a binary of dpsight is made. Runs with equal Agent were recorded by the same agent, and
// predictions with equal Phantom used the same phantom GPU, even if their versions and commits differ.
type Built struct {
	// Revision is the commit that was built, and Modified says whether files had been changed since. Revision and
	// Modified are null if the build does not state them (go build -buildvcs=true does).
	Revision *string `json:"revision"`
	Modified *bool   `json:"modified"`
	// Agent is a digest of the agent's files. Phantom is a digest of the phantom GPU's sources, modules and device
	// profiles.
	Agent   string `json:"agent"`   // "sha256:" and 16 hexadecimal digits
	Phantom string `json:"phantom"` // "sha256:" and 16 hexadecimal digits
}

// Commit returns the commit as text, or "" if it is not known.
func (b *Built) Commit() string {
	switch {
	case b.Revision == nil:
		return ""
	case b.Modified != nil && *b.Modified:
		return "commit " + *b.Revision + " and changes, "
	}
	return "commit " + *b.Revision + ", "
}

// The kinds of imported files. A snapshot has blocks and usually events. Files of all other kinds have only figures at
// certain moments.
const (
	ImportSnapshot       = "torch snapshot"
	ImportComponents     = "a component profiler's result"
	ImportSweep          = "a sweep profiler's results"
	ImportStages         = "a sweep profiler's stages"
	ImportSweepTable     = "a sweep profiler's table"
	ImportTrainerLog     = "a trainer profiler's log"
	ImportTrainerSummary = "a trainer profiler's summary"
	ImportTrace          = "a trace of torch.profiler"
	ImportMemoryTimeline = "a memory timeline of torch.profiler"
)

// Import is the provenance of an imported run.
type Import struct {
	Kind   string `json:"kind"`   // kind of file; see [ImportSnapshot]
	File   string `json:"file"`   // base name of the file
	SHA256 string `json:"sha256"` // digest of the file's unpacked content; in older versions, of the file
	// CopySHA256 is the digest of the run's copy, which may be compressed in another way. CopySHA256 is empty in
	// older manifests.
	CopySHA256 string `json:"copy_sha256,omitempty"`
	// StackRules are the user's own stack rules, which come before dpsight's.
	StackRules []StackRule `json:"stack_rules,omitempty"`
	// Part says which of the file's runs this is, from 0.
	Part int `json:"part,omitempty"`
	// Ranks are the files of a run of several ranks, by rank. With Ranks, File is the name of the first rank's file,
	// SHA256 a digest of all files' digests, and CopySHA256 empty.
	Ranks []ImportedRank `json:"ranks,omitempty"`
}

// ImportedRank is the file of one rank, with the digests that [Import] has of a single file.
type ImportedRank struct {
	Rank       int32  `json:"rank"` // number of the rank, from 0
	File       string `json:"file"` // base name of the file
	SHA256     string `json:"sha256"`
	CopySHA256 string `json:"copy_sha256"`
}

// FiguresOnly reports whether the run was imported from a file that has figures at moments, and no blocks.
func (m *Manifest) FiguresOnly() bool { return m.Import != nil && m.Import.Kind != ImportSnapshot }

// StackRule says what memory is for if a frame with a matching file and function requests it. Patterns are Go regular
// expressions; an empty pattern matches everything. A rule sets the category, or the role of the module from which the
// category follows, or the phase that the program is in.
type StackRule struct {
	Role     string   `json:"role,omitempty" yaml:"role"`
	Category Category `json:"category,omitempty" yaml:"category"`
	Phase    string   `json:"phase,omitempty" yaml:"phase"`
	File     string   `json:"file,omitempty" yaml:"file"`
	Function string   `json:"function,omitempty" yaml:"function"`
}
