package ranks

import (
	"errors"
	"slices"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// Tables lists the tables that a comparison of ranks needs.
const Tables = grouping.Tables

// Schema is the version of [Document].
const Schema = "dpsight.ranks/1"

// BoundPercent is by how many per cent a peak must differ from the median of the other peaks for it to lie apart.
const BoundPercent = 1

// Document is what "dpsight ranks --format json" prints.
type Document struct {
	Schema       string  `json:"schema"`
	BoundPercent float64 `json:"bound_percent"`
	Runs         []Run   `json:"runs"`
}

// NewDocument makes the document of these runs.
func NewDocument(runs ...Run) Document {
	if runs == nil {
		runs = []Run{}
	}
	identity.Distinguish(runs, func(r *Run) *identity.Identity { return &r.Identity })
	return Document{Schema, BoundPercent, runs}
}

// Run is one run's devices, by rank.
type Run struct {
	identity.Identity
	Ranks []Peak `json:"ranks"`
	// Outlier is the device whose peak differs most from the median of the others; null if no peak lies apart.
	Outlier *Outlier `json:"outlier"`
	// NotIngested is whether the run has no tables yet.
	NotIngested bool `json:"-"`
}

// Place is one device of one rank.
type Place struct {
	Rank   int32  `json:"rank"`
	Device string `json:"device"`
}

// Peak has the highest allocated and reserved of a device.
type Peak struct {
	Place
	AllocatedBytes *int64  `json:"peak_allocated_bytes"` // highest allocated; null = not known
	ReservedBytes  *int64  `json:"peak_reserved_bytes"`  // highest reserved; null = not known
	Step           *int64  `json:"step"`                 // step of the peak; null before the first, and if not recorded
	Phase          *string `json:"phase"`
	// OthersMedianBytes is the median of the other devices' peaks. DeltaBytes is this device's peak minus that median.
	// OthersMedianBytes and DeltaBytes are null if no other peak is known.
	OthersMedianBytes *int64 `json:"others_median_bytes"`
	DeltaBytes        *int64 `json:"delta_bytes"`
	Apart             bool   `json:"apart"`
}

// An Outlier compares the device whose peak lies farthest apart with the device whose peak is nearest to the median of
// the others.
type Outlier struct {
	Place
	DeltaBytes int64 `json:"delta_bytes"` // difference to the median of the other ranks
	Beside     Place `json:"beside"`
	// PartsBytes is the difference of the allocated bytes of both devices at their highest recorded moments. PartsBytes
	// is the sum of the parts' differences. If either device has no events, PartsBytes is null and there are no parts.
	PartsBytes *int64 `json:"parts_delta_bytes"`
	// Categories and the lists after it have the parts that differ, the largest difference first.
	Categories []Part `json:"categories"`
	Modules    []Part `json:"modules"` // parts by category and module
	Lines      []Part `json:"lines"`
}

// Part has the bytes of both devices in one category, in one category and module, or requested by one line.
type Part struct {
	Category schemas.Category `json:"category,omitempty"`
	Module   string           `json:"module,omitempty"` // path, up to the first number by which like modules differ
	Line     string           `json:"line,omitempty"`   // line of the script that asked for the blocks
	Source   string           `json:"source,omitempty"` // the text of the line, if its file is available

	Bytes       int64 `json:"bytes"`
	BesideBytes int64 `json:"beside_bytes"`
	DeltaBytes  int64 `json:"delta_bytes"`
}

// Of compares the devices of a run. A device without allocator events is compared by torch's counters only.
func Of(in schemas.Tables) (Run, error) {
	run := Run{Identity: identity.Of(&in), Ranks: []Peak{}, NotIngested: in.Report == nil}
	ledgers := memory.NewLedgers(&in)
	whole, err := memory.BreakdownWith(&in, memory.At{}, ledgers)
	if none := (*memory.NoEventsError)(nil); err != nil && !errors.As(err, &none) {
		return run, err
	}
	for _, p := range identity.Places(&in) {
		run.Ranks = append(run.Ranks, peakOf(&in, p, deviceOf(&whole, p)))
	}
	far, beside := run.compare()
	if far < 0 {
		return run, nil
	}
	o := &Outlier{Place: run.Ranks[far].Place, DeltaBytes: *run.Ranks[far].DeltaBytes, Beside: run.Ranks[beside].Place,
		Categories: []Part{}, Modules: []Part{}, Lines: []Part{}}
	run.Outlier = o
	places := identity.Places(&in)
	a, b := deviceOf(&whole, places[far]), deviceOf(&whole, places[beside])
	if a != nil && b != nil {
		t := newTally(&in, o.DeltaBytes < 0)
		t.count(ledgers.Of(places[far]), places[far].Rank, a.At.Event, false)
		t.count(ledgers.Of(places[beside]), places[beside].Rank, b.At.Event, true)
		o.PartsBytes = new(a.AllocatedBytes - b.AllocatedBytes)
		o.Categories, o.Modules, o.Lines = t.categories.list(t.less), t.modules.list(t.less), t.lines.list(t.less)
	}
	return run, nil
}

// deviceOf returns a place's breakdown; nil if it has none.
func deviceOf(whole *memory.BreakdownRun, p identity.Place) *memory.DeviceBreakdown {
	for i := range whole.Devices {
		if d := &whole.Devices[i]; d.Rank == p.Rank && d.Device == p.String() {
			return d
		}
	}
	return nil
}

// peakOf returns the peak of a place. If torch counted more than the events show, the time of the peak is unknown.
func peakOf(in *schemas.Tables, p identity.Place, d *memory.DeviceBreakdown) Peak {
	out := Peak{Place: Place{p.Rank, p.String()}}
	if v := identity.Verdict(in, p); v != nil {
		out.AllocatedBytes = identity.Higher(v.Events, &v.PeakAllocatedBytes, v.TorchPeakAllocatedBytes)
		out.ReservedBytes = identity.Higher(v.Events, &v.PeakReservedBytes, v.TorchPeakReservedBytes)
	}
	if d != nil && out.AllocatedBytes != nil && d.AllocatedBytes == *out.AllocatedBytes {
		out.Step, out.Phase = d.At.Step, d.At.Phase
	}
	return out
}

// compare sets each peak's difference from the median of the others. compare returns the device that lies farthest
// apart and the device to compare it with; both are -1 if no peak lies apart. If there are only two peaks and they
// differ, the higher one lies apart, since it decides how much memory devices need.
func (r *Run) compare() (far, beside int) {
	far, beside = -1, -1
	for i := range r.Ranks {
		x := &r.Ranks[i]
		others := r.others(i)
		if x.AllocatedBytes == nil || len(others) == 0 {
			continue
		}
		x.OthersMedianBytes = new(median(others))
		x.DeltaBytes = new(*x.AllocatedBytes - *x.OthersMedianBytes)
		x.Apart = memory.AtLeast(magnitude(*x.DeltaBytes), *x.OthersMedianBytes, BoundPercent) &&
			(len(others) > 1 || *x.DeltaBytes > 0)
		if x.Apart && (far < 0 || farther(*x.DeltaBytes, *r.Ranks[far].DeltaBytes)) {
			far = i
		}
	}
	if far < 0 {
		return far, beside
	}
	away := func(i int) int64 { return magnitude(*r.Ranks[i].AllocatedBytes - *r.Ranks[far].OthersMedianBytes) }
	for i := range r.Ranks {
		if i != far && r.Ranks[i].AllocatedBytes != nil && (beside < 0 || away(i) < away(beside)) {
			beside = i
		}
	}
	return far, beside
}

// others returns the known peaks of all devices except the given one, sorted.
func (r *Run) others(but int) (out []int64) {
	for i := range r.Ranks {
		if i != but && r.Ranks[i].AllocatedBytes != nil {
			out = append(out, *r.Ranks[i].AllocatedBytes)
		}
	}
	slices.Sort(out)
	return out
}

// median returns the median of sorted values.
func median(sorted []int64) int64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func magnitude(n int64) int64 { return max(n, -n) }

// farther reports whether difference a is larger than difference b in absolute value. Of two differences with the same
// absolute value, the positive one counts as larger.
func farther(a, b int64) bool {
	return magnitude(a) > magnitude(b) || magnitude(a) == magnitude(b) && a > b
}
