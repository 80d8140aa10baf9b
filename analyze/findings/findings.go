package findings

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// Found has the findings of several runs.
type Found struct {
	Runs []Run
}

// Run has the findings of one run. Memory that an exception keeps comes first, then growth from step to step, then the
// request that ended the run. All other findings follow by what they would save, then by size.
type Run struct {
	identity.Identity
	Findings []Finding
	// NotLooked lists checks that were not possible, and why: without allocator events there is no finding about
	// bytes.
	NotLooked []NotLooked
	Remarks   []analyze.Remark
	Lines     bool // lines of the script were recorded

	experiment string // see [Found.Experiments]
}

// A Finding is an observation with its figures. docs/findings.md lists the thresholds.
type Finding struct {
	ID     string // stable name of the finding: one of the constants below
	Device *string
	Rank   *int32
	At     *memory.Moment // moment of the finding, if it concerns one
	// Highest is the highest recorded moment of the device, for a finding about held bytes.
	Highest Highest
	// Bytes or MS is the size of the finding; both are null if the finding has no size.
	Bytes *int64
	MS    *float64
	// Share is the size as a share of Of, one of the Of… constants; null without a size.
	Share *float64
	Of    string
	// Line is the line of the script that requested more of the bytes than any other line. Line is nil if no line is
	// known, or if OfBlocks is false: the finding is then not about bytes of blocks.
	Line     *LinePart
	OfBlocks bool
	// Phase and Module are the phase and the module that requested more than half of the bytes, and Holder is what
	// keeps more than half. Phase, Module and Holder are each empty if none has so large a part.
	Phase  string
	Module *schemas.Module
	Holder string
	// Cycle is true if objects that only keep each other keep more than half of the bytes. Holder is then the largest
	// such cycle.
	Cycle bool
	// Edits lists the lines of the script to change, if they are known.
	Edits []schemas.Line
	// Caught is the line of the except clause for the exception that keeps the bytes; nil if unknown or if no exception
	// does.
	Caught *schemas.Line
	// Facts are further facts that only this check reports, of the type declared beside the check; nil if the other
	// fields are sufficient.
	Facts any
	// SavesBytes is by how much the peak would fall: the peak reserved if Of concerns reserved, else the peak
	// allocated. SavesMS is by how much a step would get shorter. SavesBytes and SavesMS are each null if unknown.
	SavesBytes *int64
	SavesMS    *float64
	Confidence Confidence // how certain the saving is
	// CostsMS is by how much a step would become longer with a change that saves bytes; nil unless such a cost is
	// known.
	CostsMS *float64
	// Methods are the runs of other methods from which SavesBytes and SavesMS come; nil if these are bounds.
	Methods *Methods
	// Idle is true if a change would save nothing, since as much is allocated at another moment.
	Idle bool

	instead []string // methods whose runs show what the change would save
}

// Highest is the highest recorded moment of a device. Highest is not the peak if torch's counter is higher.
type Highest struct {
	At             memory.Moment
	AllocatedBytes int64
	IsPeak         bool
}

// The ids of findings; docs/findings.md describes each.
const (
	Growth             = "growth"
	EvaluationGraphs   = "evaluation-graphs"
	KeptGraphs         = "kept-graphs"
	GradientGraphs     = "gradient-graphs"
	ViewKeepsBase      = "view-keeps-base"
	KeptException      = "kept-exception"
	RetainedGraph      = "retained-graph"
	WholeCheckpoint    = "whole-checkpoint"
	FrozenActivations  = "frozen-activations"
	AdapterDropout     = "lora-dropout"
	EarlierGraph       = "earlier-graph"
	BucketCopies       = "ddp-gradient-copies"
	AutocastCache      = "autocast-cache"
	IdleModels         = "idle-models"
	PreviousValue      = "previous-value"
	ScriptTensors      = "script-tensors"
	UntrainedGradients = "untrained-gradients"
	OOM                = "oom"
	Cached             = "cached"
	Fragmentation      = "fragmentation"
	KeptGradients      = "kept-gradients"
	SharedHooks        = "shared-hooks"
	OwnHooks           = "own-hooks"
	StreamWorkspaces   = "stream-workspaces"
	ThreadWorkspaces   = "thread-workspaces"
	PerSample          = "per-sample-gradients"
	PerSampleEmbedding = "per-sample-embedding"
	ClipTemporaries    = "clip-temporaries"
	OutputCopies       = "output-copies"
	OptimizerPeak      = "optimizer-temporaries"
	Slack              = "slack"
	RuleOfThumb        = "rule-of-thumb"
	CheaperMethod      = "cheaper-method"
	Throttled          = "throttled"
	OtherProcess       = "other-process"
	NotIsolated        = "not-isolated"
	UnsteadySteps      = "unsteady-steps"
	HostGrowth         = "host-growth"
	RepeatsPeak        = "repeats-peak"
	RepeatsTime        = "repeats-time"
	PhaseOnly          = "phase-only"
	Unattributed       = "unattributed"
	AmbiguousTags      = "ambiguous-tags"
	NotConserved       = "not-conserved"
	PeakNotBrokenDown  = "peak-not-broken-down"
)

// Confidence says whether the saving of a finding is measured, predicted, replayed, a bound or unknown.
type Confidence string

// The values of [Confidence].
const (
	NotKnown  Confidence = "unknown"   // the saving is unknown
	Replayed  Confidence = "replayed"  // the saving comes from a replay of all events without the blocks in question
	AtMost    Confidence = "at_most"   // a replay without the blocks, which does not count what replaces them
	AtLeast   Confidence = "at_least"  // a replay without the blocks, which leaves out other blocks that also go
	Measured  Confidence = "measured"  // other runs or steps without the cause were measured
	Predicted Confidence = "predicted" // runs without the cause were predicted
)

// The values of [Finding.Of]: the whole that a finding's share refers to.
const (
	OfPeakAllocated = "peak_allocated"
	OfPeakReserved  = "peak_reserved"
	// The next two values replace the two peaks above if torch counted a higher peak than the events show, at a moment
	// that was not recorded.
	OfHighestRecorded  = "highest_recorded" // bytes allocated at the highest recorded moment
	OfRecordedReserved = "highest_recorded_reserved"
	OfStep             = "step"
	// OfLimit is the memory that torch may use: the whole device including its CUDA context, or a lower limit that the
	// process has set.
	OfLimit = "limit"
	// OfHostMemory is the host memory, of the kind that the finding is about, that the process holds at its end.
	OfHostMemory = "host_memory"
)

// Find merges the findings of each run and adds those that need several runs: repeats that disagree, and what other
// methods of the same experiment cost. around are other runs to compare with, such as the rest of the store. A run that
// is in both lists counts once.
func Find(inspected []Checked, around []analyze.Summary) Found {
	var found Found
	all := make([]analyze.Summary, 0, len(inspected)+len(around))
	for i := range inspected {
		all = append(all, inspected[i].Summary)
	}
	for i := range around {
		if !slices.ContainsFunc(all, func(s analyze.Summary) bool { return s.RunID == around[i].RunID }) {
			all = append(all, around[i])
		}
	}
	repeats := repeatsOf(all)
	for i := range inspected {
		n := &inspected[i]
		run := Run{Identity: n.Summary.Identity, Findings: append([]Finding{}, n.findings...),
			NotLooked: n.notLooked, Remarks: n.Summary.Remarks, Lines: n.lines, experiment: n.Summary.RunID}
		if group := repeats[n.Summary.RunID]; group != nil {
			run.experiment = group[0].RunID
		}
		run.Findings = append(run.Findings, repeatsDisagree(&n.Summary, repeats[n.Summary.RunID])...)
		run.Findings = append(run.Findings, cheaperMethod(&n.Summary, all[:len(inspected)], all)...)
		for k := range run.Findings {
			run.Findings[k].measureAgainst(&n.Summary, all)
			run.Findings[k].Idle = run.Findings[k].idle()
			run.Findings[k].Confidence = cmp.Or(run.Findings[k].Confidence, NotKnown)
		}
		slices.SortStableFunc(run.Findings, byWeight(&n.Summary))
		causesFirst(run.Findings)
		found.Runs = append(found.Runs, run)
	}
	identity.Distinguish(found.Runs, func(r *Run) *identity.Identity { return &r.Identity })
	return found
}

// idle reports whether the advised change would save neither bytes nor time. A finding whose Methods name no better
// method is not idle, since its text says so.
func (f *Finding) idle() bool {
	return f.SavesBytes != nil && *f.SavesBytes <= 0 && (f.SavesMS == nil || *f.SavesMS <= 0) &&
		(f.Methods == nil || f.Methods.Best != nil)
}

// byWeight sorts findings. First comes memory that an exception keeps alive, then memory that grows from step to step:
// no allocator setting helps against these two. Next come findings about what ended the run. The remaining findings are
// sorted by the share of bytes or of a step that they save, then by their share. In byWeight, a saving that is only an
// upper bound counts half. In byWeight, a saving of reserved memory, which torch can still use, also counts half. In
// byWeight, a saving of library workspaces counts a tenth, since a larger batch or model does not enlarge workspaces.
func byWeight(s *analyze.Summary) func(a, b Finding) int {
	weight := func(f *Finding) (fatal int, saves, share float64) {
		if failed, is := f.Facts.(OOMFacts); is && failed.Request.Fatal {
			fatal = 1
		}
		if grows, is := f.Facts.(GrowthFacts); is && !grows.GivenBack {
			fatal = 2
		}
		if f.ID == KeptException {
			fatal = 3
		}
		bytes := savedBytes(s, f)
		if f.Confidence == AtMost {
			bytes /= 2
		}
		if f.OfReserved() {
			bytes /= 2
		}
		if f.ID == StreamWorkspaces || f.ID == ThreadWorkspaces { // these bytes are as large with a larger model
			bytes /= 10
		}
		return fatal, max(bytes, savedTime(s, f)), timing.OrZero(f.Share)
	}
	return func(a, b Finding) int {
		fa, sa, ha := weight(&a)
		fb, sb, hb := weight(&b)
		return cmp.Or(cmp.Compare(fb, fa), cmp.Compare(sb, sa), cmp.Compare(hb, ha), cmp.Compare(a.ID, b.ID))
	}
}

// causes maps a finding to another finding that explains the same bytes.
var causes = map[string]string{PerSample: PerSampleEmbedding, Cached: Fragmentation}

// causesFirst moves a finding before another one if it explains at least half of the other finding's bytes.
func causesFirst(list []Finding) {
	for of, by := range causes {
		effect := slices.IndexFunc(list, func(f Finding) bool { return f.ID == of })
		cause := slices.IndexFunc(list, func(f Finding) bool { return f.ID == by })
		if effect < 0 || cause < effect || !memory.AtLeast(*list[cause].Bytes, *list[effect].Bytes, 50) {
			continue
		}
		f := list[cause]
		copy(list[effect+1:cause+1], list[effect:cause])
		list[effect] = f
	}
}

// OfReserved reports whether the finding's share refers to reserved memory instead of allocated.
func (f *Finding) OfReserved() bool { return f.Of == OfPeakReserved || f.Of == OfRecordedReserved }

// savedBytes returns what the finding's change would save as a share of the run's peak. savedTime returns it as a share
// of a step's time. Each share is 0 if unknown.
func savedBytes(s *analyze.Summary, f *Finding) float64 {
	whole := s.PeakBytes
	if f.OfReserved() {
		if whole = s.ReservedAlone; whole == nil {
			whole = s.PeakReservedBytes
		}
	}
	if f.SavesBytes == nil || whole == nil || *whole == 0 {
		return 0
	}
	return float64(*f.SavesBytes) / float64(*whole)
}

func savedTime(s *analyze.Summary, f *Finding) float64 {
	if f.SavesMS == nil || s.StepMS == nil || s.StepMS.Median == 0 {
		return 0
	}
	return *f.SavesMS / s.StepMS.Median
}

// of sets the size of the finding in bytes, and the whole that it is a share of.
func (f *Finding) of(bytes, whole int64, name string) {
	f.Bytes, f.Of = new(bytes), name
	if whole > 0 {
		f.Share = new(float64(bytes) / float64(whole))
	}
}

// ofStep sets the size of the finding in milliseconds a step.
func (f *Finding) ofStep(ms, step float64) {
	f.MS, f.Of = new(ms), OfStep
	if step > 0 {
		f.Share = new(ms / step)
	}
}

// saves sets how many bytes the finding's change would save, and how that is known. A negative saving counts as 0.
func (f *Finding) saves(bytes int64, known Confidence) {
	f.SavesBytes, f.Confidence = new(max(bytes, 0)), known
}
