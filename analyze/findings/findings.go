package findings

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
)

// Schema is the version of [Document].
const Schema = "dpsight.findings/1"

// Document is what "dpsight analyze findings --format json" prints.
type Document struct {
	Schema string `json:"schema"`
	Runs   []Run  `json:"runs"`
}

// Run is what is worth saying of one run, first what grows from step to step and what ended it, then by what it
// would save, then by size.
type Run struct {
	identity.Identity
	Findings []Finding `json:"findings"`
	// NotLooked says what could not be looked at, and why: without allocator events no finding on bytes is possible.
	NotLooked []string `json:"not_looked"`
	Warnings  []string `json:"warnings"`

	experiment string // see [Document.Experiments]
}

// A Finding is an observation with the figures that it stands on. Thresholds are in docs/findings.md.
type Finding struct {
	ID     string         `json:"id"` // stable: one of the Finding… constants
	Device *string        `json:"device"`
	Rank   *int32         `json:"rank"`
	At     *memory.Moment `json:"at"` // of a finding that is of a moment
	// Bytes or MS is what the finding is about; both are null where it has no size.
	Bytes *int64   `json:"bytes"`
	MS    *float64 `json:"ms"`
	// Share is the size's share of Of: one of the Of… constants; null without a size.
	Share *float64 `json:"share"`
	Of    string   `json:"of,omitempty"`
	// Sentence says what was found. It can be pasted into a paper.
	Sentence string   `json:"sentence"`
	Figures  []Figure `json:"figures"`
	// Change is what to change; empty where nothing is to be.
	Change string `json:"change,omitempty"`
	// SavesBytes is by how much the peak reserved would fall where Of is of what is reserved, else the peak allocated,
	// SavesMS by how much a step would; null where that is not known. Assumption says under what condition, and goes
	// with them.
	SavesBytes *int64   `json:"saves_bytes"`
	SavesMS    *float64 `json:"saves_ms"`
	// CostsMS is by how much a step would become longer, where a change that saves bytes is known to cost time.
	CostsMS    *float64 `json:"costs_ms,omitempty"`
	Assumption string   `json:"assumption,omitempty"`

	failed *memory.FailedRequest // of a request that failed
	// instead are the methods whose runs tell what doing without would save.
	instead []string
	// besides is the part of the change that no such method's run says anything of.
	besides string
}

// Figure is one figure of a finding. From says where it comes from: table, column, category, event, or a run.
type Figure struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // "bytes", "ms", "count", "percent"
	From  string  `json:"from"`
}

// The findings.
const (
	Growth             = "growth"
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
	RepeatsPeak        = "repeats-peak"
	RepeatsTime        = "repeats-time"
	PhaseOnly          = "phase-only"
	Unattributed       = "unattributed"
	AmbiguousTags      = "ambiguous-tags"
	NotConserved       = "not-conserved"
	PeakNotBrokenDown  = "peak-not-broken-down"
)

// What the share of a finding is of.
const (
	OfPeakAllocated = "peak_allocated"
	OfPeakReserved  = "peak_reserved"
	// Where torch counted more than the events show, at a moment that was not recorded:
	OfHighestRecorded  = "highest_recorded" // allocated
	OfRecordedReserved = "highest_recorded_reserved"
	OfStep             = "step"
	// torch's: of the device with what its CUDA context takes, or a lower one that the process has set
	OfLimit = "limit"
)

// Find gathers what was found in each run and adds what only several runs tell: repeats that disagree, and what
// other methods of the same experiment cost. around are the other runs to compare with, such as the rest of the store;
// a run that is among inspected too counts once.
func Find(inspected []Checked, around []analyze.Summary) Document {
	doc := Document{Schema: Schema, Runs: []Run{}}
	all := make([]analyze.Summary, 0, len(inspected)+len(around))
	for i := range inspected {
		all = append(all, inspected[i].Summary)
	}
	for i := range around {
		if !slices.ContainsFunc(all, func(s analyze.Summary) bool { return s.RunID == around[i].RunID }) {
			all = append(all, around[i])
		}
	}
	for i := range inspected {
		n := &inspected[i]
		run := Run{Identity: n.Summary.Identity, Findings: append([]Finding{}, n.findings...),
			NotLooked: n.notLooked, Warnings: n.Summary.Warnings, experiment: experimentOfFindings(&n.Summary)}
		run.Findings = append(run.Findings, repeatsDisagree(&n.Summary, all)...)
		run.Findings = append(run.Findings, cheaperMethod(&n.Summary, all[:len(inspected)], all)...)
		for k := range run.Findings {
			run.Findings[k].measureAgainst(&n.Summary, all)
			run.Findings[k].dropIdleAdvice()
			if run.Findings[k].Figures == nil {
				run.Findings[k].Figures = []Figure{}
			}
		}
		slices.SortStableFunc(run.Findings, byWeight(&n.Summary))
		doc.Runs = append(doc.Runs, run)
	}
	identity.Distinguish(doc.Runs, func(r *Run) *identity.Identity { return &r.Identity })
	return doc
}

// dropIdleAdvice says of a change that saves neither bytes nor time that it does not, in the place of advising it.
func (f *Finding) dropIdleAdvice() {
	if f.Change == "" || f.SavesBytes == nil || *f.SavesBytes > 0 || f.SavesMS != nil && *f.SavesMS > 0 {
		return
	}
	f.Change = ""
	f.Sentence += " Doing without would save nothing: as much is allocated at another moment."
}

// byWeight puts first what grows from step to step, which no setting of the allocator helps against, and what
// ended the run, then what saves the larger share, be it of bytes or of a step, then the larger share.
func byWeight(s *analyze.Summary) func(a, b Finding) int {
	weight := func(f *Finding) (fatal int, saves, share float64) {
		switch {
		case f.ID == Growth:
			fatal = 2
		case f.failed != nil && f.failed.Fatal:
			fatal = 1
		}
		return fatal, max(savedBytes(s, f), savedTime(s, f)), timing.OrZero(f.Share)
	}
	return func(a, b Finding) int {
		fa, sa, ha := weight(&a)
		fb, sb, hb := weight(&b)
		return cmp.Or(cmp.Compare(fb, fa), cmp.Compare(sb, sa), cmp.Compare(hb, ha), cmp.Compare(a.ID, b.ID))
	}
}

// OfReserved reports whether the finding is of what is reserved, and not of what is allocated.
func (f *Finding) OfReserved() bool { return f.Of == OfPeakReserved || f.Of == OfRecordedReserved }

// savedBytes is the share of the run's peak that doing without would save, savedTime that of a step; 0 where it is not
// known.
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

// bytes adds a figure.
func (f *Finding) bytes(what string, n int64, from string) {
	f.Figures = append(f.Figures, Figure{what, float64(n), "bytes", from})
}

func (f *Finding) milliseconds(what string, ms float64, from string) {
	f.Figures = append(f.Figures, Figure{what, ms, "ms", from})
}

func (f *Finding) count(what string, n int, from string) {
	f.Figures = append(f.Figures, Figure{what, float64(n), "count", from})
}

// of says how large the finding is in bytes, and of what.
func (f *Finding) of(bytes, whole int64, name string) {
	f.Bytes, f.Of = new(bytes), name
	if whole > 0 {
		f.Share = new(float64(bytes) / float64(whole))
	}
}

// ofStep says how large it is in milliseconds a step.
func (f *Finding) ofStep(ms, step float64) {
	f.MS, f.Of = new(ms), OfStep
	if step > 0 {
		f.Share = new(ms / step)
	}
}

// saves says what a change would bring. A saving of nothing is none.
func (f *Finding) saves(bytes int64, assumption string) {
	f.SavesBytes, f.Assumption = new(max(bytes, 0)), assumption
}
