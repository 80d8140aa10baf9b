package findings

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const (
	cachedPercent    = 10 // of what is reserved, free at the highest reserved
	spareablePercent = 2  // of what is reserved, above the highest allocated: no change saves more
	// leastCached leaves out what is no more than the sizes of a few segments.
	leastCached = 64 << 20
)

const expandable = "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, so that segments grow in place and free " +
	"bytes are not split among them"

// A highestReserved is the moment of the highest reserved, with what of the segments is free then.
type highestReserved struct {
	reservedPeak
	steps  []memory.Level
	gaps   map[int64]bool
	seq    int64
	layout *memory.Layout // nil where the segments are not all known
}

// highestReserved is nil where nothing says what was reserved.
func (x *evidence) highestReserved() *highestReserved {
	steps := memory.ReservedSteps(x.in, x.p)
	if steps == nil {
		return nil
	}
	// the first of equals
	highest := slices.MaxFunc(steps, func(a, b memory.Level) int { return cmp.Compare(a.Bytes, b.Bytes) })
	r := &highestReserved{x.reserved(highest.Bytes), steps, x.gaps(), highest.Seq, nil}
	if !r.gaps[r.seq] {
		r.seq++ // the request that the segment was made for is served
	}
	if lay := memory.LayoutAt(x.in, x.p, x.l, r.seq); lay != nil && lay.Reserved == highest.Bytes {
		r.layout = lay
	}
	return r
}

// cached looks at what of the highest reserved holds nothing.
func (x *evidence) cached() []Finding {
	r := x.highestReserved()
	if r == nil {
		return nil
	}
	lay := r.layout
	if lay == nil {
		x.notLooked = append(x.notLooked, "cached bytes: the segments of the highest reserved are not all known")
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
	x.layoutFigures(&f, lay, r.seq)
	f.Sentence = fmt.Sprintf("When what torch reserved was %s, %s %s, %s (%s) of it held nothing: %s in segments "+
		"without any block, and %s between blocks, which no call of empty_cache gives back.",
		r.words, prose.MiB(lay.Reserved), memory.When(&at), prose.MiB(lay.Free()),
		prose.Share(float64(lay.Free()), float64(lay.Reserved)), prose.MiB(lay.Idle), prose.MiB(lay.Gaps))
	f.Change = expandable
	x.savesReserved(&f, r.spare+r.unseen, "at most: reserved would have to follow allocated to the byte, so that "+
		"the highest of both are equal")
	return []Finding{f}
}

// A reservedPeak is the highest reserved that events show, and what it is called: it is not the peak where torch
// counted more.
type reservedPeak struct {
	bytes int64
	// of it, above the highest allocated: no change of the allocator's settings saves more of it
	spare                  int64
	unseen                 int64 // by how much torch's own peak is above it
	of, title, words, most string
}

func (x *evidence) reserved(recorded int64) reservedPeak {
	r := reservedPeak{bytes: recorded, of: OfPeakReserved, title: "peak reserved", words: "highest", most: "at most"}
	allocated := x.d.AllocatedBytes
	if v := identity.Verdict(x.in, x.p); v != nil {
		if t := v.TorchPeakReservedBytes; t != nil && *t > recorded {
			r.unseen = *t - recorded
			r.of, r.title, r.words, r.most = OfRecordedReserved, "highest recorded reserved", "the highest recorded",
				"at the highest recorded moment"
		}
		if t := v.TorchPeakAllocatedBytes; t != nil {
			allocated = max(allocated, *t)
		}
	}
	r.spare = max(recorded-allocated, 0)
	return r
}

// savesReserved says by how much the peak reserved would fall; nothing where the peak allocated was not recorded, for
// then most was reserved when nobody looked.
func (x *evidence) savesReserved(f *Finding, bytes int64, assumption string) {
	if x.run.BrokenDown() {
		f.saves(bytes, assumption)
	}
}

func (x *evidence) layoutFigures(f *Finding, lay *memory.Layout, seq int64) {
	from := fmt.Sprintf("events.parquet: segments after event %d, less the blocks of allocations.parquet in them", seq)
	f.bytes("reserved", lay.Reserved, from)
	f.bytes("free in segments without blocks", lay.Idle, from)
	f.bytes("free between blocks", lay.Gaps, from)
	f.bytes("largest free piece", lay.Largest, from)
	x.peakFigure(f)
}

// gaps are the events that stand for all that happened between two windows.
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
