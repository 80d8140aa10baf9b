package predict

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// Tables lists the tables that a prediction is reduced from.
const Tables = analyze.SummaryTables | schemas.WantDetail

// PredictionSchema is the version of [PredictionDocument].
const PredictionSchema = "dpsight.prediction/1"

// PredictionDocument is what "dpsight predict --format json" prints.
type PredictionDocument struct {
	Schema string          `json:"schema"`
	Runs   []PredictionRun `json:"runs"`
}

// NewPredictionDocument makes the document of these runs.
func NewPredictionDocument(runs ...PredictionRun) PredictionDocument {
	if runs == nil {
		runs = []PredictionRun{}
	}
	return PredictionDocument{PredictionSchema, runs}
}

// PredictionRun says whether a predicted run fits on its device, and what takes the memory.
type PredictionRun struct {
	identity.Identity
	GPU string `json:"gpu"`
	// MemoryBytes is how many bytes of the device a process can take. MemoryGiven is true if the user stated
	// MemoryBytes. MemoryBytes and MemoryGiven are null if an older version of dpsight made the prediction.
	MemoryBytes *int64 `json:"memory_bytes"`
	MemoryGiven bool   `json:"memory_given"`
	// Fits is null if the script ended early for another reason than memory, or allocated nothing on a device, since
	// its full need is then unknown. A run that its time limit ended after the first step fits if it had not run out of
	// memory until then. A run that ended well fits, even if its script caught failed requests. In a search such a run
	// may count as not fitting, see [NewFitRun]. Why adds what the status leaves out; package report derives it from
	// Because.
	Fits       *bool   `json:"fits"`
	Why        string  `json:"why,omitempty"`
	Because    Because `json:"-"`
	CaughtOOMs int     `json:"caught_ooms"` // number of failed requests that the script caught
	// AbsorbedOOMs counts the failed requests that torch itself recovered from. The script did not notice them.
	AbsorbedOOMs      int    `json:"absorbed_ooms"`
	PeakBytes         *int64 `json:"peak_bytes"`
	PeakReservedBytes *int64 `json:"peak_reserved_bytes"`
	// SpareBytes is MemoryBytes minus the highest reserved. If several processes share the device, their CUDA contexts
	// are subtracted too. SpareBytes is null if the run does not fit or did not end well. A run near the limit releases
	// cached memory and goes on, so a run with 0 spare bytes still works.
	SpareBytes *int64 `json:"spare_bytes"`
	// MarginBytes is the recommended minimum of SpareBytes, see [MarginBytes]; null if an older version of dpsight made
	// the prediction. A run that leaves less is still predicted to fit.
	MarginBytes *int64 `json:"margin_bytes"`
	// Ranks has one row for each device of each rank that ran, by rank. The other figures of PredictionRun are those of
	// the fullest device.
	Ranks []RankPeaks `json:"ranks"`
	// Device, At and Categories describe the fullest device at its peak or, for a run that ran out of memory, at the
	// failed request. Module is the module that made the request at that moment. Categories has the largest first, and
	// leaves out empty ones.
	Device         *string                `json:"device"`
	At             *memory.Moment         `json:"at"`
	Module         *string                `json:"module"`
	AllocatedBytes *int64                 `json:"allocated_bytes"` // bytes allocated at that moment; the sum of Categories
	Categories     []memory.CategoryBytes `json:"categories"`
	// Others has the breakdowns of the run's other devices, each at that device's peak. The field is absent if the run
	// has one device, and for a run that ran out of memory.
	Others  []OtherDevice `json:"others,omitempty"`
	Failure *schemas.OOM  `json:"failure"` // the failed request that ended the run
	// Confidence is how sure the peak allocated is, with every reason; see [confidence.Assess].
	Confidence   *schemas.Confidence `json:"confidence"`
	Complete     bool                `json:"told"` // all processes reported before their end what they had read
	UnknownReads []schemas.Counted   `json:"unknown_reads"`
	// AssumedAt lists the places in the script where unknown values were assumed to be finite.
	AssumedAt []schemas.Counted `json:"assumed_at"`
	// CopiedReads lists the places where the script read a value that all ranks compute together, and where the phantom
	// GPU used this rank's value.
	CopiedReads []schemas.Counted      `json:"copied_reads,omitempty"`
	Guesses     []schemas.Counted      `json:"guesses"`
	Notes       []string               `json:"notes"`
	Band        *schemas.PlacementBand `json:"band"`
	// Ended says after which step the prediction ended the script, and why; absent if the script ended by itself.
	Ended    *schemas.Ended `json:"ended,omitempty"`
	Warnings []string       `json:"warnings"` // sentences that report makes of Remarks and Survived

	Remarks []analyze.Remark `json:"-"`
	// OfDeviceBytes is Failure's limit if the limit is the whole device; 0 otherwise.
	OfDeviceBytes int64 `json:"-"`
	// Survived are the requests that failed and that the script caught.
	Survived []schemas.OOM `json:"-"`
}

// Because says why a run does not fit, or why that is unknown, if the run's status alone does not show it.
type Because struct {
	Cause          Cause
	Status, Reason string // for [CauseEnded], [CauseSoFar] and [CauseSteps]
	Caught         int    // number of failed requests, for [CauseCaught]
	Unheard        int    // number of processes that left no journal, for [CauseNothing]
}

// Cause is a kind of reason.
type Cause string

const (
	CauseEnded   Cause = "ended"   // the script ended early, but not because memory was short
	CauseSoFar   Cause = "so far"  // its time limit ended the run, after it had trained or evaluated
	CauseSteps   Cause = "steps"   // the prediction ended the run after a number of steps
	CauseCaught  Cause = "caught"  // the script caught failed requests and went on
	CauseUnsaid  Cause = "unsaid"  // a process died before it reported what it had read
	CauseNothing Cause = "nothing" // the script took no memory of a device
)

// OtherDevice is the breakdown, at its peak, of a device that is not the run's fullest.
type OtherDevice struct {
	Device         string                 `json:"device"`
	At             memory.Moment          `json:"at"`
	Module         *string                `json:"module"` // module that made the failed request
	AllocatedBytes int64                  `json:"allocated_bytes"`
	Categories     []memory.CategoryBytes `json:"categories"` // categories at the failed request, the largest first
}

// RankPeaks has the highest allocated and reserved of one rank on one device.
type RankPeaks struct {
	Rank              int32  `json:"rank"`
	Device            string `json:"device"`
	PeakBytes         *int64 `json:"peak_bytes"`
	PeakReservedBytes *int64 `json:"peak_reserved_bytes"`
	// SpareBytes is the device's memory minus the highest reserved of all processes on the device together.
	SpareBytes *int64 `json:"spare_bytes"`
}

// ranks returns the peaks of each rank on the devices from which it took memory.
func ranks(in *schemas.Tables, memory *int64) []RankPeaks {
	out := []RankPeaks{}
	if in.Report == nil {
		return out
	}
	for i := range in.Report.Devices {
		v := &in.Report.Devices[i]
		r := RankPeaks{Rank: v.Rank, Device: identity.Place{Rank: v.Rank, Device: v.Device}.String(),
			PeakBytes: identity.Higher(v.Events,
				&v.PeakAllocatedBytes, v.TorchPeakAllocatedBytes),
			PeakReservedBytes: identity.Higher(v.Events, &v.PeakReservedBytes, v.TorchPeakReservedBytes)}
		if r.PeakBytes == nil || *r.PeakBytes == 0 { // a later window lists every device
			continue
		}
		if memory != nil && r.PeakReservedBytes != nil {
			r.SpareBytes = new(*memory - *r.PeakReservedBytes)
			switch u, known := confidence.SharedAs(in.Manifest, in.Report, v.Device); {
			case !known: // the device may be any of the GPUs
				r.SpareBytes = new(analyze.SpareWith(*r.SpareBytes, *memory, in.Manifest.Phantom.Devices))
			case u != nil:
				r.SpareBytes = new(min(*r.SpareBytes, *memory-u.TakenBytes))
			}
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b RankPeaks) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Device, b.Device))
	})
	return out
}

// Predict evaluates a predicted run. Predict needs all tables, with detail.
func Predict(in schemas.Tables) PredictionRun {
	s := analyze.Summarize(in)
	p := PredictionRun{Identity: s.Identity, Confidence: confidence.Of(&in), GPU: s.GPU, PeakBytes: s.PeakBytes,
		PeakReservedBytes: s.PeakReservedBytes, Categories: []memory.CategoryBytes{},
		UnknownReads: []schemas.Counted{}, AssumedAt: []schemas.Counted{}, Guesses: []schemas.Counted{},
		Notes: []string{}, Warnings: []string{}, Remarks: s.Remarks}
	if f := in.Manifest.Phantom; f != nil {
		p.MemoryBytes, p.MemoryGiven = &f.MemoryBytes, f.MemoryGiven
		p.MarginBytes = new(MarginBytes(f.MemoryBytes, f.Checked, nil))
	}
	p.Ranks = ranks(&in, p.MemoryBytes)
	if p.MemoryBytes != nil && p.PeakReservedBytes != nil {
		p.SpareBytes = new(analyze.SpareWith(*p.MemoryBytes-*p.PeakReservedBytes, *p.MemoryBytes,
			in.Manifest.Phantom.Devices))
	}
	if in.Report != nil && in.Report.Prediction != nil {
		r := in.Report.Prediction
		p.AssumedAt, p.CopiedReads = append(p.AssumedAt, r.AssumedAt...), r.CopiedReads
		p.Complete, p.UnknownReads, p.Guesses, p.Notes, p.Band = r.Complete, confidence.UnknownReads(r), r.Guesses, r.Notes,
			r.Band
		p.Ended = r.Ended
	}
	p.Failure = fatal(&in)
	if p.Failure != nil && memory.WholeDevice(&in, p.Failure.LimitBytes) {
		p.OfDeviceBytes = p.Failure.LimitBytes
	}
	p.Survived, p.AbsorbedOOMs = survived(&in)
	p.CaughtOOMs = len(p.Survived)
	p.verdict(&in)
	if p.Fits != nil && *p.Fits && in.Report != nil && confidence.TookNothing(in.Manifest, in.Report) {
		p.Fits, p.Because = nil, Because{Cause: CauseNothing, Unheard: len(in.Manifest.Collector.Uninjected)}
		if p.Because.Unheard == 0 && !p.Complete {
			p.Because.Cause = CauseUnsaid
		}
		// Because already says that there is nothing to break down.
		p.Remarks = slices.DeleteFunc(slices.Clone(p.Remarks), func(r analyze.Remark) bool {
			return r.Kind == analyze.RemarkNoBlocks
		})
	}
	if p.Fits == nil || !*p.Fits { // the run would have needed more memory, or its need is unknown
		p.SpareBytes = nil
		for i := range p.Ranks {
			p.Ranks[i].SpareBytes = nil
		}
	}
	d := s.Main()
	if p.Failure != nil {
		if failed := failedBreakdown(&in); failed != nil {
			d = failed
		}
	}
	if d == nil {
		return p
	}
	p.Device, p.At, p.AllocatedBytes = &d.Device, &d.At, &d.AllocatedBytes
	p.Module = moduleAt(&in, memory.PlaceOf(&in, d), d.At.Event)
	if p.Failure != nil {
		p.Module = identity.OrNull(p.Failure.Module)
	}
	p.Categories = largestFirst(d.Categories)
	if p.Failure == nil {
		p.Others = others(&in, &s, d)
	}
	return p
}

// others returns the devices other than the fullest on which something was allocated.
func others(in *schemas.Tables, s *analyze.Summary, fullest *memory.DeviceBreakdown) (out []OtherDevice) {
	for i := range s.Breakdown.Devices {
		d := &s.Breakdown.Devices[i]
		if d == fullest || d.AllocatedBytes == 0 {
			continue
		}
		out = append(out, OtherDevice{Device: d.Device, At: d.At, AllocatedBytes: d.AllocatedBytes,
			Module: moduleAt(in, memory.PlaceOf(in, d), d.At.Event), Categories: largestFirst(d.Categories)})
	}
	return out
}

// largestFirst sorts categories by their bytes, the largest first, and leaves out empty ones.
func largestFirst(categories []memory.CategoryBytes) []memory.CategoryBytes {
	out := []memory.CategoryBytes{}
	for _, c := range categories {
		if c.Bytes > 0 {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b memory.CategoryBytes) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

// verdict sets whether a run fits, from how it ended. Failed requests that the script caught do not matter: the script
// tried what fits, or had set itself a limit.
func (p *PredictionRun) verdict(in *schemas.Tables) {
	switch {
	case p.Status == schemas.StatusOOM:
		p.Fits = new(false)
	case p.Status == schemas.StatusTimeout && gotFar(in):
		p.Fits, p.Because = new(true), Because{Cause: CauseSoFar, Status: p.Status, Reason: p.Reason}
	case p.Status == schemas.StatusOK && p.Ended != nil:
		p.Fits, p.Because = new(true), Because{Cause: CauseSteps, Status: p.Status, Reason: p.Reason}
	case p.Status != schemas.StatusOK:
		p.Because = Because{Cause: CauseEnded, Status: p.Status, Reason: p.Reason}
	default:
		p.Fits = new(true)
	}
}

// gotFar reports whether a run that its time limit ended still shows whether the script fits: a step has ended, or a
// model was called more than once.
func gotFar(in *schemas.Tables) bool {
	calls := 0
	for i := range in.Phases {
		if p := in.Phases[i].Phase; p == schemas.PhaseForward || p == schemas.PhaseEval {
			calls++
		}
	}
	return slices.ContainsFunc(in.Steps, func(s schemas.Step) bool { return s.Step >= 1 }) ||
		len(in.Steps) == 0 && calls > 1
}

// fatal returns the failed request that ended the run, or nil if no request did.
func fatal(in *schemas.Tables) *schemas.OOM {
	if in.Report == nil {
		return nil
	}
	for i := range in.Report.OOMs {
		if in.Report.OOMs[i].Fatal {
			return &in.Report.OOMs[i]
		}
	}
	return nil
}

// survived returns the failed requests that the script caught, and the number of failed requests that torch itself
// recovered from.
func survived(in *schemas.Tables) (caught []schemas.OOM, absorbed int) {
	if in.Report == nil {
		return nil, 0
	}
	for i := range in.Report.OOMs {
		switch o := &in.Report.OOMs[i]; {
		case o.Absorbed():
			absorbed++
		case !o.Fatal:
			caught = append(caught, *o)
		}
	}
	return caught, absorbed
}

// failedBreakdown returns the breakdown at the failed request that ended the run; nil if the journal does not have the
// events around it.
func failedBreakdown(in *schemas.Tables) *memory.DeviceBreakdown {
	i := slices.IndexFunc(in.Report.OOMs, func(o schemas.OOM) bool { return o.Fatal })
	o := &in.Report.OOMs[i]
	if o.Seq == 0 {
		return nil
	}
	p := identity.Place{Rank: o.Rank, Device: o.Device}
	f, err := memory.FailureAt(in, p, memory.Nth(in, i))
	if err != nil {
		return nil
	}
	d := memory.BreakdownAt(in, p, memory.NewLedgers(in).Of(p), f.At, -1)
	return &d
}

// moduleAt returns the path of the module that made the request of event seq, or nil if no module or a root module made
// it.
func moduleAt(in *schemas.Tables, p identity.Place, seq int64) *string {
	for i := range in.Allocations {
		a := &in.Allocations[i]
		if a.Rank != p.Rank || a.Device != p.Device || a.AllocSeq != seq || a.Module == 0 {
			continue
		}
		for k := range in.Modules {
			if m := &in.Modules[k]; m.Rank == p.Rank && m.ID == a.Module {
				return identity.OrNull(cmp.Or(m.Path, m.Class))
			}
		}
	}
	return nil
}

// Reads returns how many times the script read unknown values.
func (p *PredictionRun) Reads() int64 { return confidence.SumOf(p.UnknownReads) }
