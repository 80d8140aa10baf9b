package schemas

import (
	"fmt"
	"strings"
)

// IngestReportFile is the name of ingest's own report in a run folder.
const IngestReportFile = "ingest.json"

// IngestReportSchema is the version that this package writes.
const IngestReportSchema = "dpsight.ingested/2"

// undigestedReport is the version before [IngestReportSchema]. Reports of this version can still be read. Reports of
// version dpsight.ingested/1 have no digests and no verdict bounded.
const undigestedReport = "dpsight.ingested/1"

// IngestReport (ingest.json) is ingest's verdict on a run: whether the tables beside it are reliable.
type IngestReport struct {
	Schema    string           `json:"schema"`
	RunID     string           `json:"run_id"`
	Version   string           `json:"version"` // version of dpsight that wrote the report
	Rules     int              `json:"rules"`   // version of the attribution rules
	RulesHash string           `json:"rules_hash"`
	Devices   []DeviceVerdict  `json:"devices"`
	Ranks     []RankVerdict    `json:"ranks"`
	Steps     StepDerivation   `json:"steps"`
	Cost      []InstrumentCost `json:"instrument_cost"`
	OOMs      []OOM            `json:"ooms"`
	Metrics   []Metric         `json:"metrics"`
	// Prediction lists the unknown values and estimates on which the figures of a predicted run depend; null for other
	// runs, and in older reports.
	Prediction *Prediction `json:"prediction,omitempty"`
	Warnings   []string    `json:"warnings"`
	// Tables has the digests of the tables that were written with the report, by file name; null in reports of older
	// versions.
	Tables map[string]string `json:"tables,omitempty"` // digests as "sha256:" and 64 hexadecimal digits
	// Gone lists the files of tables that ingest wrote and that a reader did not find beside the report.
	Gone []string `json:"-"`
}

// DeviceVerdict is the result of the conservation check for one device of one rank, with its peaks.
type DeviceVerdict struct {
	Rank    int32  `json:"rank"`    // the process's RANK, from 0
	Device  int32  `json:"device"`  // torch's ordinal of the device, from 0
	Events  int64  `json:"events"`  // number of events in the journal
	Verdict string `json:"verdict"` // [Exact], [Bounded], [Lossy] or [Unverifiable]
	Reason  string `json:"reason,omitempty"`
	// ResidueBytes is the largest absolute difference between replayed and counted live bytes over all checkpoints.
	ResidueBytes  int64 `json:"residue_bytes"`  // bytes
	MissingEvents int64 `json:"missing_events"` // number of events that torch counted and the journal does not have
	AmbiguousTags int64 `json:"ambiguous_tags"` // tags that fit several blocks
	UnboundTags   int64 `json:"unbound_tags"`   // tags of an address that no traced block ever had
	// DifferingBlocks counts the blocks in the allocator's last list of its blocks that differ from the replayed
	// blocks.
	DifferingBlocks    int64 `json:"differing_blocks"`     // number of blocks
	PeakSeq            int64 `json:"peak_seq"`             // first event at which the allocated is highest
	PeakAllocatedBytes int64 `json:"peak_allocated_bytes"` // highest allocated, as replay computes it
	PeakReservedBytes  int64 `json:"peak_reserved_bytes"`  // highest reserved, as replay computes it
	// PeakLowBytes and PeakHighBytes bound the peak; null unless the verdict is [Bounded].
	PeakLowBytes  *int64 `json:"peak_low_bytes,omitempty"`  // bytes, as replay computes them
	PeakHighBytes *int64 `json:"peak_high_bytes,omitempty"` // bytes, as replay computes them
	// highest allocated by torch's counter, or from an imported file of figures; null = not reported
	TorchPeakAllocatedBytes *int64 `json:"torch_peak_allocated_bytes"`
	TorchPeakReservedBytes  *int64 `json:"torch_peak_reserved_bytes"` // by torch's counter; null = not reported
	// InstrumentedPeakSeq is the first event in set-up or in an instrumented step at which the allocated is as high as
	// the peak; null if only a bare step reached this height.
	InstrumentedPeakSeq *int64 `json:"instrumented_peak_seq"` // the event's number
	// BareSteps says where the categories of steps without tags come from. For a long recording, BareSteps lists only
	// the first thousand of these steps, and the step of the peak.
	BareSteps []BareStep `json:"bare_steps,omitempty"`
}

// The values of [BareStep.How]: how a bare step resembles the instrumented step from which its categories come.
const (
	LikeExact  = "exact"  // both steps made the same allocations
	LikeScaled = "scaled" // the same allocations in other sizes, as with another batch size
	LikeParts  = "parts"  // the bare step is put together from parts of several instrumented steps
)

// BareStep says from which instrumented step the categories of a step without tags come.
type BareStep struct {
	Step int64 `json:"step"` // number of the step, from 0
	// the instrumented step from which the step's categories come; null = no instrumented step allocated alike
	Like   *int64 `json:"like"`
	How    string `json:"how,omitempty"` // [LikeExact], [LikeScaled] or [LikeParts]
	Blocks int64  `json:"blocks"`        // number of blocks that the step allocated
	// number of blocks that take their categories from Like; the categories of other blocks follow from lifetime and phase
	Known int64 `json:"blocks_from_like"`
}

// RankVerdict describes the state of one rank's journal.
type RankVerdict struct {
	Rank   int32 `json:"rank"`   // the process's RANK, from 0
	Marks  int64 `json:"marks"`  // number of marks that were read
	Frames int64 `json:"frames"` // number of frames that were read
	// Torn is true when the journal ends in the middle of a frame: the process died while writing.
	Torn       bool   `json:"torn"`
	TornReason string `json:"torn_reason,omitempty"`
	Complete   bool   `json:"complete"` // the agent wrote its last frame, so the process ended in order
	// FailedHooks are the hooks of the agent that failed and were removed. Recording of the allocator's events
	// continued, unless a failure is fatal.
	FailedHooks []FailedHook `json:"failed_hooks,omitempty"`
}

// FailedHook is a hook of the agent that failed. From the hook's failure on, what the hook would have observed is
// unknown.
type FailedHook struct {
	Hook  string `json:"hook"`  // the hook's name in the agent: "the forward hook"
	Error string `json:"error"` // the error, in one line
	Step  int64  `json:"step"`  // step of the failure, from 0; -1 = before the first
	Fatal bool   `json:"fatal"` // after the failure nothing at all was recorded
}

// Silenced is the failure after which an agent could record no more; nil if no agent had such a failure.
func (r *IngestReport) Silenced() *FailedHook {
	if r == nil {
		return nil
	}
	for i := range r.Ranks {
		for k := range r.Ranks[i].FailedHooks {
			if f := &r.Ranks[i].FailedHooks[k]; f.Fatal {
				return f
			}
		}
	}
	return nil
}

// lostWith says, for each hook of the agent, which facts are unknown once the hook has failed.
var lostWith = map[string]string{
	"following the script's lines":                "the lines of later allocations are unknown",
	"the forward hook":                            "later forward passes and their modules are unknown",
	"following backward through modules":          "the modules of later backward passes are unknown",
	"the backward hook":                           "later backward passes are unknown",
	"the optimizer hook":                          "later updates, and so later steps, are unknown",
	"the scaler hook":                             "dpsight does not know which later steps a GradScaler skips",
	"the hook of checkpoints":                     "later recomputes count as backward",
	"the hook of compiled code":                   "dpsight does not tell later compiled code from other code",
	"the hook of a library's phases":              "dpsight does not tell later clipping, accumulation and noise apart",
	"the hook of a library's samplers":            "later computation in the library's hooks counts as backward",
	"the hook of expanded weights":                "later per-sample gradients may count as activation gradients",
	"tagging a gradient":                          "later gradients may count as activation gradients",
	"recording an out-of-memory error":            "later failed requests have no breakdown",
	"timing":                                      "later steps have no GPU times",
	"reading the privacy configuration":           "the privacy configuration may be incomplete",
	"reading the privacy accountant":              "the privacy spent is unknown",
	"recording an exception":                      "the exception that ended the script is unknown",
	"ending the recording":                        "events after the last drain are lost",
	"marking a stage":                             "later stages of the set-up are unknown",
	"a drain":                                     "a later drain takes the events, or they count as missing",
	"draining by the clock":                       "if the process is killed, more events of its last step may be lost",
	"noting the hooks of tensors":                 "later memory that only a tensor's hook keeps is unknown",
	"looking for what held the memory":            "breakdowns of failed requests and of the script's memory are partial",
	"looking for who keeps the memory":            "dpsight does not know who keeps later memory",
	"looking at what the script holds":            "later memory that only the script holds is unknown",
	"the hook of autocast":                        "later casts that autocast keeps may count as other",
	"keeping events for the script":               "the script's own memory snapshots are incomplete",
	"sharing the recording":                       "the script's own memory snapshots are incomplete",
	"going on after the script's recording":       "events near the script's own recording may be missing",
	"waiting for autograd's threads":              "repeats of this prediction may have other peaks",
	"waiting for NCCL's watchdog":                 "repeats of this prediction may have other peaks",
	"watching the garbage collector":              "what the garbage collector frees later is unknown",
	"collecting garbage at once":                  "Python now collects garbage at its own times",
	"hooking classes of a library":                "dpsight does not see what such a class of the library does",
	"the hook of DDP's reducer":                   "later buckets of DDP are unknown",
	"marking the end of a stage":                  "later stages of the set-up are unknown",
	"asking the phantom GPU what it guessed":      "later guesses of the phantom GPU are unknown",
	"asking the phantom GPU why the script exits": "dpsight does not know which read may have made the script fail",
}

// Words returns a sentence that says which hook failed, in which step, and which facts are lost.
func (f *FailedHook) Words() string {
	where := "before the first step"
	if f.Step >= 0 {
		where = fmt.Sprintf("at step %d", f.Step)
	}
	lost := lostWith[f.Hook]
	switch {
	case f.Fatal:
		lost = "the agent stopped recording"
	case strings.HasPrefix(f.Hook, "taggers."):
		lost = "the categories of some memory are unknown"
	case lost == "":
		lost = "what the hook reports is unknown from then on"
	}
	return fmt.Sprintf("%s failed %s (%s): %s", f.Hook, where, f.Error, lost)
}

// StepDerivation says by which rule the steps of a rank were found.
type StepDerivation struct {
	Rule       string `json:"rule"`       // "optimizer", "dpsight.step" or "backward"
	Derived    int64  `json:"derived"`    // number of steps that were found
	Optimizers int64  `json:"optimizers"` // number of optimizers that stepped
}

// InstrumentCost is what the agent cost one rank.
type InstrumentCost struct {
	Rank       int32 `json:"rank"`        // the process's RANK, from 0
	Drains     int64 `json:"drains"`      // number of drains
	DrainNS    int64 `json:"drain_ns"`    // ns of wall time in drains
	RecordedNS int64 `json:"recorded_ns"` // ns of wall time from the first mark to the last
	Marks      int64 `json:"marks"`       // number of marks
	// BareStepNS and InstrumentedStepNS are median step times (GPU time if measured, else wall time); null if the run
	// has no step of that kind.
	BareStepNS         *int64 `json:"bare_step_ns"`         // ns
	InstrumentedStepNS *int64 `json:"instrumented_step_ns"` // ns
	// InstrumentNS is what instrumentation adds to a step if batches vary: the difference of the median times per
	// sample, for a bare step of median size. InstrumentNS is null if all batches have the same size, or if the script
	// does not report samples.
	InstrumentNS *int64 `json:"instrument_ns,omitempty"` // ns
	// BareSteps and InstrumentedSteps count the steps after warm-up that the medians cover. RecordedSteps counts all
	// steps with events, and Windows the windows that they lie in. Older reports have 0 for each.
	BareSteps         int64 `json:"bare_steps,omitempty"`         // number of steps
	InstrumentedSteps int64 `json:"instrumented_steps,omitempty"` // number of steps
	RecordedSteps     int64 `json:"recorded_steps,omitempty"`     // number of steps
	Windows           int64 `json:"windows,omitempty"`            // number of windows
	// number of captured steps after warm-up, which no median includes; see [Captured]
	CapturedSteps int64 `json:"captured_steps,omitempty"`
	// LinesNS is the estimated time that following the script's lines took: LineEvents times the cost of one event,
	// which is measured when CUDA is initialised. LinesNS is null if no lines were followed, and in older reports.
	LinesNS    *int64 `json:"lines_ns,omitempty"`    // ns
	LineEvents int64  `json:"line_events,omitempty"` // number of events
}

// OOM is one request for memory that failed because memory was short, whether it ended the run or not.
type OOM struct {
	Rank            int32 `json:"rank"`              // the process's RANK, from 0
	Device          int32 `json:"device"`            // torch's ordinal of the device, from 0
	Seq             int64 `json:"seq"`               // events 1..Seq came before the failed request
	RequestedBytes  int64 `json:"requested_bytes"`   // bytes that the failed request asked for
	DeviceFreeBytes int64 `json:"device_free_bytes"` // bytes free on the device at that moment, by the driver
	// torch's limit: the whole device including its CUDA context, or the limit that the process has set; 0 = unknown, as
	// in an imported trace
	LimitBytes int64  `json:"limit_bytes"`
	Step       int64  `json:"step"` // number of the step, from 0; -1 = before the first
	Phase      string `json:"phase"`
	Module     string `json:"module"`
	Fatal      bool   `json:"fatal"`
	// EndUnknown is true if it is unknown whether the failed request ended the run, as for an imported trace or an
	// attached process.
	EndUnknown bool `json:"end_unknown,omitempty"`
	// Raised says, for a convolution's request, whether the error reached Python, where the script could catch it. If
	// the error did not reach Python, torch itself handled it: torch tries cuDNN's algorithms in turn and takes the
	// first whose workspace is available. Raised is null for all other requests, and in recordings of older agents.
	Raised *bool `json:"raised,omitempty"`
	// Line is the number, in lines.parquet, of the line of the script that made the request, from 1; 0 = not known.
	Line int64 `json:"line_id,omitempty"`
}

// Absorbed reports whether torch itself recovered from the failed request, so that the script did not notice it.
func (o *OOM) Absorbed() bool { return !o.Fatal && o.Raised != nil && !*o.Raised }

// FailuresUnread reports whether the report cannot say if requests for memory failed: version 1 of ingest.json did not
// read failed requests in imported traces.
func (r *IngestReport) FailuresUnread(m *Manifest) bool {
	return m.Import != nil && r.Schema == undigestedReport
}

// Metric is a value that the script reported with dpsight.metric.
type Metric struct {
	Rank   int32   `json:"rank"`    // the process's RANK, from 0
	K      int64   `json:"k"`       // the number of the mark, from 1
	TimeNS int64   `json:"time_ns"` // ns, Unix time
	Name   string  `json:"name"`
	Value  float64 `json:"value"` // the value in the script's own unit
}
