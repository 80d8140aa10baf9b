package memory

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// BreakdownTables lists the tables that a breakdown reads. LedgerTables lists the tables that an analysis of single
// blocks needs.
const (
	BreakdownTables = schemas.WantLives | schemas.WantTimes | schemas.WantReserved
	LedgerTables    = schemas.WantMemory | schemas.WantTimes | schemas.WantEvents
)

// BreakdownSchema is the version of [BreakdownDocument].
const BreakdownSchema = "dpsight.breakdown/1"

// BreakdownDocument is what "dpsight breakdown --format json" prints.
type BreakdownDocument struct {
	Schema string         `json:"schema"`
	Runs   []BreakdownRun `json:"runs"`
}

// NewBreakdownDocument makes the document of these runs.
func NewBreakdownDocument(runs ...BreakdownRun) BreakdownDocument {
	if runs == nil {
		runs = []BreakdownRun{}
	}
	identity.Distinguish(runs, func(r *BreakdownRun) *identity.Identity { return &r.Identity })
	return BreakdownDocument{BreakdownSchema, runs}
}

// BreakdownRun is one run's breakdown. Devices is empty for a run without allocator events, or without the requested
// moment.
type BreakdownRun struct {
	identity.Identity
	Devices []DeviceBreakdown `json:"devices"`
	// Missing says which requested moment a run with allocator events lacks; "" if the run has it.
	Missing string `json:"missing,omitempty"`
	// Confidence and the two fields after it are for predicted runs; null if not known.
	Confidence       *string  `json:"confidence"`
	PeakReservedBand []int64  `json:"peak_reserved_band"`
	UnknownReads     *int64   `json:"unknown_reads"`
	Warnings         []string `json:"warnings"` // sentences that report makes of Remarks

	Remarks []Remark `json:"-"`
}

// DeviceBreakdown divides one device's allocated bytes at one moment into categories.
type DeviceBreakdown struct {
	Device                  string          `json:"device"` // "cuda:0"
	Rank                    int32           `json:"rank"`
	At                      Moment          `json:"at"`
	AllocatedBytes          int64           `json:"allocated_bytes"`     // sum of the categories' bytes
	ReservedBytes           *int64          `json:"reserved_bytes"`      // bytes reserved at that moment; null = not known
	PeakReservedBytes       *int64          `json:"peak_reserved_bytes"` // highest reserved of the run; null = not known
	TorchPeakAllocatedBytes *int64          `json:"torch_peak_allocated_bytes"`
	Categories              []CategoryBytes `json:"categories"` // categories with MaxBytes > 0, in the order of precedence
	Conservation            Conservation    `json:"conservation"`
	Warnings                []string        `json:"warnings"` // sentences that report makes of Remarks
	Remarks                 []Remark        `json:"-"`
	AtPeak                  bool            `json:"-"` // At is the peak
}

// Moment is the point just after an event. Step is null before the first step.
type Moment struct {
	Event int64   `json:"event"`
	Step  *int64  `json:"step"`
	Phase *string `json:"phase"`
}

// CategoryBytes is one category's part of a breakdown.
type CategoryBytes struct {
	Category schemas.Category `json:"category"`
	// Bytes are the bytes that count under the category: the requested bytes of blocks whose first owner, in the order
	// of precedence, has the category. For slack they are the bytes beyond requests.
	Bytes int64 `json:"bytes"`
	// HeldBytes are the bytes of blocks that the category holds according to tags, alone or with other categories.
	HeldBytes int64 `json:"held_bytes"`
	// SharedBytes is the part of HeldBytes that, by tags, another category holds too. HeldBytes - SharedBytes is what
	// the category costs alone: the bytes that would be free without the category.
	SharedBytes int64 `json:"shared_bytes"`
	// SharedWith divides SharedBytes by the other category. A block that three categories hold counts under both other
	// categories.
	SharedWith map[schemas.Category]int64 `json:"shared_with,omitempty"`
	// Evidence divides Bytes by how it is known that they belong to the category.
	Evidence
	Blocks   int64 `json:"blocks"`    // number of blocks counted in Bytes; for slack, of blocks larger than their request
	MaxBytes int64 `json:"max_bytes"` // the highest that Bytes was at any moment of the run
}

// Evidence divides bytes by how their categories are known. The parts of an Evidence sum to the bytes.
type Evidence struct {
	TaggedBytes int64 `json:"tagged_bytes"` // bytes whose category a tag proves
	// LifetimeBytes are known by a rule on allocation and free. LifetimeBytes include slack, which follows from the
	// blocks' sizes.
	LifetimeBytes  int64 `json:"lifetime_bytes"`
	StackBytes     int64 `json:"stack_bytes,omitempty"` // bytes by a rule on the stack, in imported snapshots only
	PhaseOnlyBytes int64 `json:"phase_only_bytes"`      // bytes of which only the phase of birth is known
}

// Add counts bytes that are known by e.
func (k *Evidence) Add(bytes int64, e schemas.Evidence) {
	switch e {
	case schemas.Tagged:
		k.TaggedBytes += bytes
	case schemas.ByStack:
		k.StackBytes += bytes
	case schemas.ByPhase:
		k.PhaseOnlyBytes += bytes
	default:
		k.LifetimeBytes += bytes
	}
}

// Merge adds the bytes of another Evidence.
func (k *Evidence) Merge(o *Evidence) {
	k.TaggedBytes += o.TaggedBytes
	k.LifetimeBytes += o.LifetimeBytes
	k.StackBytes += o.StackBytes
	k.PhaseOnlyBytes += o.PhaseOnlyBytes
}

// Conservation says whether replayed bytes equal torch's own counters, and by how much they differ if not.
type Conservation struct {
	Verdict string `json:"verdict"` // exact, bounded, lossy or unverifiable
	// ResidueBytes is the largest difference found between replay and allocator, or between the categories' sum and
	// replay.
	ResidueBytes  int64  `json:"residue_bytes"`
	AmbiguousTags int64  `json:"ambiguous_tags"`
	Reason        string `json:"reason"` // ingest's reason; report's own if Sum is set
	// Sum is the sum of the categories and Replayed what the sum should be. Sum and Replayed are nil if they agree.
	Sum, Replayed *int64 `json:"-"`
	// PeakLowBytes and PeakHighBytes are the bounds of the device's peak, null unless the verdict is bounded. OpenBytes
	// is how many more bytes of slack may have been allocated at the breakdown's moment.
	PeakLowBytes  *int64 `json:"peak_low_bytes,omitempty"`
	PeakHighBytes *int64 `json:"peak_high_bytes,omitempty"`
	OpenBytes     int64  `json:"open_bytes,omitempty"`
}

// ConservationOf returns ingest's verdict on a device, without the fields about a single moment.
func ConservationOf(v *schemas.DeviceVerdict) Conservation {
	return Conservation{Verdict: v.Verdict, ResidueBytes: v.ResidueBytes, AmbiguousTags: v.AmbiguousTags,
		Reason: v.Reason, PeakLowBytes: v.PeakLowBytes, PeakHighBytes: v.PeakHighBytes}
}

// Category returns the named category's part, zero if the device has no such part.
func (d *DeviceBreakdown) Category(name schemas.Category) CategoryBytes {
	for _, c := range d.Categories {
		if c.Category == name {
			return c
		}
	}
	return CategoryBytes{Category: name}
}

// Known divides the bytes of a breakdown by how well they are known. The parts of Known sum to AllocatedBytes.
type Known struct {
	Evidence
	// UnownedBytes are the bytes in the categories other and untraced, with any evidence.
	UnownedBytes int64
}

// Known sums the evidence of all categories.
func (d *DeviceBreakdown) Known() (k Known) {
	for i := range d.Categories {
		c := &d.Categories[i]
		k.Merge(&c.Evidence)
		if c.Category == schemas.Other || c.Category == schemas.Untraced {
			k.UnownedBytes += c.Bytes
		}
	}
	return k
}

// A NoEventsError says why a run has nothing to break down.
type NoEventsError struct {
	RunID  string
	Reason error
}

func (e *NoEventsError) Error() string {
	return fmt.Sprintf("run %s has no allocator events: %s", e.RunID, e.Reason)
}

func (e *NoEventsError) Unwrap() error { return e.Reason }

// A NoMomentError says why a run with allocator events does not have the requested moment. Another run may have it.
type NoMomentError struct {
	RunID  string
	Reason string
	At     At
}

func (e *NoMomentError) Error() string { return fmt.Sprintf("run %s: %s", e.RunID, e.Reason) }

// NoEvents returns an error if the run has no allocator events, and so nothing to break down.
func NoEvents(in *schemas.Tables) error {
	if len(in.Allocations) > 0 || len(in.Lives) > 0 {
		return nil
	}
	return &NoEventsError{in.Manifest.RunID, withoutEvents(in)}
}

func withoutEvents(in *schemas.Tables) error {
	switch {
	case in.Manifest.Bare:
		return errors.New("it is a bare run, which has counters and timers only")
	case in.Report == nil:
		return errors.New("it has not been ingested")
	case in.Manifest.FiguresOnly():
		return fmt.Errorf("it was imported from %s, which has figures at moments and no blocks", in.Manifest.Import.Kind)
	case in.Manifest.Status != schemas.StatusOK:
		return fmt.Errorf("it ended (%s) before it allocated anything", in.Manifest.Status)
	case len(in.Manifest.Collector.Uninjected) > 0:
		return confidence.NothingTaken(len(in.Manifest.Collector.Uninjected))
	case unsaid(in):
		return errors.New("a process did not live to say what it had allocated")
	}
	for i := range in.Report.Devices { // some processes used devices, and it is unknown what they did there
		if d := &in.Report.Devices[i]; d.Verdict == schemas.Lossy && d.Events > 0 {
			return errors.New("none that could be counted: " + d.Reason)
		}
	}
	return errors.New("it never allocated on a CUDA device")
}

// unsaid reports whether a process of a predicted run ended before it reported its use of devices.
func unsaid(in *schemas.Tables) bool {
	return in.Report.Prediction != nil && !in.Report.Prediction.Complete
}

// Breakdown divides each device's bytes at a moment into categories. For a run without allocator events, Breakdown
// returns its identity, no devices and a [*NoEventsError]. For a run without the moment it returns a [*NoMomentError].
func Breakdown(in schemas.Tables, at At) (BreakdownRun, error) {
	return BreakdownWith(&in, at, NewLedgers(&in))
}

// BreakdownWith is [Breakdown] with ledgers that the caller has already made.
func BreakdownWith(in *schemas.Tables, at At, ledgers *Ledgers) (BreakdownRun, error) {
	run := BreakdownRun{Identity: identity.Of(in), Devices: []DeviceBreakdown{}, Warnings: []string{}}
	if in.Report != nil {
		for _, w := range in.Report.Warnings {
			run.Remarks = append(run.Remarks, Remark{Kind: RemarkOfIngest, Text: w})
		}
	}
	if in.Report != nil {
		for _, name := range in.Report.Gone {
			run.Remarks = append(run.Remarks, Remark{Kind: RemarkGone, Text: name})
		}
	}
	if died := diedOf(in); died != nil && at == (At{}) {
		run.Remarks = append(run.Remarks, Remark{Kind: RemarkDied, Failed: died})
	}
	run.Confidence = identity.OrNull(run.Identity.Confidence)
	if in.Report != nil && in.Report.Prediction != nil {
		p := in.Report.Prediction
		if p.Complete {
			run.UnknownReads = new(confidence.SumOf(confidence.UnknownReads(p)))
		}
		if p.Band != nil {
			run.PeakReservedBand = p.Band.Reserved[:]
		}
	}
	if err := NoEvents(in); err != nil {
		return run, err
	}
	if !anyAt(in, at) {
		_, err := FindMoment(in, identity.Places(in)[0], at)
		run.Missing = err.Error()
		return run, &NoMomentError{in.Manifest.RunID, run.Missing, at}
	}
	for _, p := range identity.Places(in) {
		l := ledgers.Of(p)
		if l.Len() == 0 {
			continue
		}
		m, err := FindMoment(in, p, at)
		if err != nil { // another rank has the moment: this rank did not make that step
			run.Remarks = append(run.Remarks, Remark{Kind: RemarkNoMoment, Err: err})
			continue
		}
		d := BreakdownAt(in, p, l, m.At, m.Allocated)
		d.AtPeak = at == (At{})
		if m.Failed != nil {
			d.Remarks = append(d.Remarks, Remark{Kind: RemarkFailedHere, Device: d.Device, Failed: m.Failed})
		}
		if r := untaggedRemark(in, p, &d); r != nil {
			d.Remarks = append(d.Remarks, *r)
		}
		run.Devices = append(run.Devices, d)
	}
	return run, nil
}

// anyAt reports whether some device of the run has the moment.
func anyAt(in *schemas.Tables, at At) bool {
	for _, p := range identity.Places(in) {
		if _, err := FindMoment(in, p, at); err == nil {
			return true
		}
	}
	return false
}

// BreakdownAt counts device p's blocks at a moment. replayed is the allocated at this moment according to ingest's
// replay, or -1 if unknown.
func BreakdownAt(in *schemas.Tables, p identity.Place, l *Ledger, at Moment, replayed int64) DeviceBreakdown {
	seq := at.Event
	d := DeviceBreakdown{Device: p.String(), Rank: p.Rank, At: at, ReservedBytes: ReservedAt(in, p, seq),
		Categories: []CategoryBytes{}, Conservation: Conservation{Verdict: schemas.Unverifiable}, Warnings: []string{}}

	parts, open := make([]CategoryBytes, NCategories), int64(0)
	for i := range l.Len() {
		if l.LiveAt(i, seq) {
			l.Count(parts, i, seq)
			open += l.lives.Open[i]
		}
	}
	for i, highest := range maxima(l.Changes()) {
		d.AllocatedBytes += parts[i].Bytes
		if highest > 0 || parts[i].HeldBytes > 0 {
			parts[i].Category, parts[i].MaxBytes = schemas.Categories[i], highest
			d.Categories = append(d.Categories, parts[i])
		}
	}
	if v := identity.Verdict(in, p); v != nil {
		d.TorchPeakAllocatedBytes = v.TorchPeakAllocatedBytes
		d.PeakReservedBytes = identity.Higher(v.Events, &v.PeakReservedBytes, v.TorchPeakReservedBytes)
		d.Conservation = ConservationOf(v)
	}
	d.Conservation.OpenBytes = open
	d.checkSum(replayed)
	return d
}

// Count adds block i, which is live just after event seq, to the categories' parts.
func (l *Ledger) Count(parts []CategoryBytes, i int, seq int64) {
	requested := l.lives.Requested[i]
	first, evidence := l.Category(i, seq)
	c := &parts[first]
	c.Bytes += requested
	c.Blocks++
	c.Add(requested, evidence)
	if slack := l.lives.Block[i] - requested; slack != 0 {
		parts[SlackPlace].Bytes += slack
		parts[SlackPlace].Add(slack, "")
		parts[SlackPlace].Blocks++
	}
	// Only tags prove that a category holds a block, since rules on lifetime and phase only apply to blocks without a
	// tag.
	holders := make([]int, 0, 8) // holders by the index of their category, each once
	for k := l.lives.OwnersFrom[i]; k < l.lives.OwnersFrom[i+1]; k++ {
		if p := int(l.lives.Place[k]); l.evidence(k) == schemas.Tagged && l.lives.HoldsAt(k, seq) &&
			!slices.Contains(holders, p) {
			holders = append(holders, p)
		}
	}
	for _, p := range holders {
		h := &parts[p]
		h.HeldBytes += requested
		if len(holders) == 1 {
			continue
		}
		h.SharedBytes += requested
		if h.SharedWith == nil {
			h.SharedWith = map[schemas.Category]int64{}
		}
		for _, q := range holders {
			if q != p {
				h.SharedWith[schemas.Categories[q]] += requested
			}
		}
	}
}

// checkSum compares the sum of the categories with the replay's own figure, and adds a remark if they differ.
func (d *DeviceBreakdown) checkSum(replayed int64) {
	if replayed < 0 || replayed == d.AllocatedBytes {
		if d.Conservation.Verdict == schemas.Lossy {
			d.Remarks = append(d.Remarks, Remark{Kind: RemarkLossy, Device: d.Device, Conservation: new(d.Conservation)})
		}
		return
	}
	residue := replayed - d.AllocatedBytes
	if residue < 0 {
		residue = -residue
	}
	d.Conservation.Verdict, d.Conservation.Reason = schemas.Lossy, ""
	d.Conservation.ResidueBytes = max(d.Conservation.ResidueBytes, residue)
	d.Conservation.Sum, d.Conservation.Replayed = new(d.AllocatedBytes), &replayed
	d.Remarks = append(d.Remarks, Remark{Kind: RemarkSumDiffers, Device: d.Device, Conservation: new(d.Conservation)})
}

// Level is a number of bytes that holds from event Seq until the event of the next Level.
type Level struct{ Seq, Bytes int64 }

// ReservedSteps returns the bytes that a device had reserved: before the first event, then after each event that may
// change them. ReservedSteps returns nil if they are not known.
func ReservedSteps(in *schemas.Tables, p identity.Place) []Level {
	var steps []Level
	for i := range in.Reserved {
		if r := &in.Reserved[i]; r.Rank == p.Rank && r.Device == p.Device {
			steps = append(steps, Level{r.Seq, r.Bytes})
		}
	}
	return steps
}

// ReservedAt returns the bytes reserved just after event seq; nil if not known.
func ReservedAt(in *schemas.Tables, p identity.Place, seq int64) *int64 {
	steps := ReservedSteps(in, p)
	if steps == nil {
		return nil
	}
	at := steps[0].Bytes
	for _, s := range steps {
		if s.Seq <= seq {
			at = s.Bytes
		}
	}
	return &at
}

// PlaceOf returns the rank and the ordinal of the device that a breakdown is about.
func PlaceOf(in *schemas.Tables, d *DeviceBreakdown) identity.Place {
	for _, p := range identity.Places(in) {
		if p.Rank == d.Rank && p.String() == d.Device {
			return p
		}
	}
	return identity.Place{}
}
