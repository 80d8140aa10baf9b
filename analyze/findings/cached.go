package findings

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const (
	cachedPercent    = 10 // least percentage of reserved that is free at the highest reserved
	spareablePercent = 2  // least percentage of reserved above the highest allocated: no change can save more
	// leastCached is the smallest possible saving, in bytes, that makes a finding: less is only the size of a few
	// segments.
	leastCached = 64 << 20
)

// CachedFacts are the facts of a [Cached] finding: the layout of the segments just after Event.
type CachedFacts struct {
	Layout     memory.Layout
	Event      int64
	Expandable bool // torch already has expandable segments, so there is nothing to change
}

// A highestReserved is the moment of the highest reserved, with what is free in the segments at that moment.
type highestReserved struct {
	reservedPeak
	steps  []memory.Level
	gaps   map[int64]bool
	seq    int64
	layout *memory.Layout // nil if not all segments are known
}

// highestReserved returns the moment of the highest reserved, or nil if it is unknown what was reserved.
func (x *evidence) highestReserved() *highestReserved {
	steps := memory.ReservedSteps(x.in, x.p)
	if steps == nil {
		return nil
	}
	// If reserved is highest at several moments, take the first of them.
	highest := slices.MaxFunc(steps, func(a, b memory.Level) int { return cmp.Compare(a.Bytes, b.Bytes) })
	r := &highestReserved{x.reserved(highest.Bytes), steps, x.gaps(), highest.Seq, nil}
	if !r.gaps[r.seq] {
		r.seq++ // skips the request for which the segment was made
	}
	if lay := memory.LayoutAt(x.in, x.p, x.l, r.seq); lay != nil && lay.Reserved == highest.Bytes {
		r.layout = lay
	}
	return r
}

// cached reports reserved memory that is free at the moment of the highest reserved.
func (x *evidence) cached() []Finding {
	r := x.highestReserved()
	if r == nil {
		return nil
	}
	lay := r.layout
	if lay == nil {
		x.notLooked = append(x.notLooked, NotLooked{What: CachedBytes})
		return nil
	}
	if !memory.AtLeast(lay.Free(), lay.Reserved, cachedPercent) ||
		!memory.AtLeast(r.spare, lay.Reserved, spareablePercent) || r.spare < leastCached {
		return nil
	}
	at := memory.MomentOf(x.in, x.p, r.seq)
	f := x.finding(Cached)
	f.At = &at
	f.of(lay.Free(), lay.Reserved, r.of)
	facts := CachedFacts{Layout: *lay, Event: r.seq, Expandable: expandable(x.in)}
	f.Facts = facts
	if !facts.Expandable {
		x.savesReserved(&f, r.spare+r.unseen)
	}
	return []Finding{f}
}

// A reservedPeak is the highest reserved that events show, and its name. A reservedPeak is not called the peak reserved
// if torch's counter is higher.
type reservedPeak struct {
	bytes int64
	// spare is by how much the highest reserved exceeds the highest allocated. No change of the allocator's settings
	// saves more.
	spare  int64
	unseen int64 // by how much torch's own peak is above the replayed peak
	of     string
}

func (x *evidence) reserved(recorded int64) reservedPeak {
	r := reservedPeak{bytes: recorded, of: OfPeakReserved}
	allocated := x.d.AllocatedBytes
	if v := identity.Verdict(x.in, x.p); v != nil {
		if t := v.TorchPeakReservedBytes; t != nil && *t > recorded {
			r.unseen = *t - recorded
			r.of = OfRecordedReserved
		}
		if t := v.TorchPeakAllocatedBytes; t != nil {
			allocated = max(allocated, *t)
		}
	}
	r.spare = max(recorded-allocated, 0)
	return r
}

// savesReserved sets the upper bound by which the peak reserved would fall. savesReserved sets no saving if the peak
// allocated was not recorded: most memory was then reserved outside the recorded steps.
func (x *evidence) savesReserved(f *Finding, bytes int64) {
	if x.run.BrokenDown() {
		f.saves(bytes, AtMost)
	}
}

// gaps returns the events that stand for the times between two windows.
func (x *evidence) gaps() map[int64]bool {
	out := map[int64]bool{}
	for i := range x.in.Events {
		if e := &x.in.Events[i]; schemas.Action(e.Action) == schemas.ActionGap && e.Rank == x.p.Rank &&
			e.Device == x.p.Device {
			out[e.Seq] = true
		}
	}
	return out
}
