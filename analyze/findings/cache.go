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
	cachedPercent     = 10 // of what is reserved, free at the highest reserved
	spareablePercent  = 2  // of what is reserved, above the highest allocated: no change saves more
	fragmentedPercent = 5  // of what is reserved, grown although as much was free, and above the highest allocated
	// leastCached leaves out what is no more than the sizes of a few segments.
	leastCached = 64 << 20
)

const expandable = "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, so that segments grow in place and free " +
	"bytes are not split among them"

// cached looks at the highest reserved: what of it holds nothing, and what came to be because free bytes lay in pieces.
func (x *finder) cached() []Finding {
	steps := memory.ReservedSteps(x.in, x.p)
	if steps == nil {
		return nil
	}
	// the first of equals
	highest := slices.MaxFunc(steps, func(a, b memory.Level) int { return cmp.Compare(a.Bytes, b.Bytes) })
	seq := highest.Seq
	gaps := x.gaps()
	if !gaps[seq] {
		seq++ // the request that the segment was made for is served
	}
	at := memory.MomentOf(x.in, x.p, seq)
	lay := memory.LayoutAt(x.in, x.p, x.l, seq)
	if lay == nil || lay.Reserved != highest.Bytes {
		x.notLooked = append(x.notLooked, "cached bytes: the segments of the highest reserved are not all known")
		return nil
	}
	r := x.reserved(highest.Bytes)
	var out []Finding
	if memory.AtLeast(lay.Free(), lay.Reserved, cachedPercent) &&
		memory.AtLeast(r.spare, lay.Reserved, spareablePercent) &&
		r.spare >= leastCached {
		f := x.finding(Cached)
		f.At = &at
		f.of(lay.Free(), lay.Reserved, r.of)
		x.layoutFigures(&f, lay, seq)
		f.Sentence = fmt.Sprintf("When what torch reserved was %s, %s %s, %s (%s) of it held nothing: %s in segments "+
			"without any block, and %s between blocks, which no call of empty_cache gives back.",
			r.words, prose.MiB(lay.Reserved), memory.When(&at), prose.MiB(lay.Free()), prose.Share(float64(lay.Free()),
				float64(lay.Reserved)), prose.MiB(lay.Idle), prose.MiB(lay.Gaps))
		f.Change = expandable
		x.savesReserved(&f, r.spare+r.unseen, "at most: reserved would have to follow allocated to the byte, so that "+
			"the highest of both are equal")
		out = append(out, f)
	}
	if f := x.fragmentation(steps, gaps, &r); f != nil {
		x.savesReserved(f, min(*f.Bytes, r.spare), "at most: every request that found its bytes free in pieces would "+
			"have been served from them, and nothing reserved later for their sake")
		out = append(out, *f)
	}
	return out
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

func (x *finder) reserved(recorded int64) reservedPeak {
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
func (x *finder) savesReserved(f *Finding, bytes int64, assumption string) {
	if x.run.BrokenDown() {
		f.saves(bytes, assumption)
	}
}

func (x *finder) layoutFigures(f *Finding, lay *memory.Layout, seq int64) {
	from := fmt.Sprintf("events.parquet: segments after event %d, less the blocks of allocations.parquet in them", seq)
	f.bytes("reserved", lay.Reserved, from)
	f.bytes("free in segments without blocks", lay.Idle, from)
	f.bytes("free between blocks", lay.Gaps, from)
	f.bytes("largest free piece", lay.Largest, from)
	x.peakFigure(f)
}

// fragmentation adds up by how much the highest reserved rose when as many bytes as were reserved anew lay free in the
// cache, but in no piece that would do.
func (x *finder) fragmentation(steps []memory.Level, gaps map[int64]bool, r *reservedPeak) *Finding {
	active := x.active()
	var grown, freeThen, highest int64
	var last int64
	times := 0
	k, now := 0, int64(0)
	for i := 1; i < len(steps); i++ {
		for ; k < len(active) && active[k].Seq < steps[i].Seq; k++ {
			now += active[k].Bytes
		}
		before := steps[i-1].Bytes
		highest = max(highest, before)
		need := steps[i].Bytes - before
		// Nobody knows what a gap reserved its bytes for; else it is what is cached if no more is reserved anew than
		// that.
		if steps[i].Bytes <= highest || before-now < need || gaps[steps[i].Seq] {
			continue
		}
		grown += steps[i].Bytes - highest
		freeThen, last = before-now, steps[i].Seq
		times++
	}
	if most := min(grown, r.spare); !memory.AtLeast(most, r.bytes, fragmentedPercent) || most < leastCached {
		return nil
	}
	f := x.finding(Fragmentation)
	at := memory.MomentOf(x.in, x.p, last)
	f.At = &at
	f.of(grown, r.bytes, r.of)
	from := "events.parquet: segment_alloc and segment_map; allocations.parquet: blocks not yet completely freed"
	f.bytes("reserved anew while as much was free", grown, from)
	f.count("times", times, from)
	f.bytes("free at the last of them", freeThen, fmt.Sprintf("the same, before event %d", last))
	f.bytes(r.title, r.bytes, "events.parquet: segments")
	often := prose.Times(times) + ","
	if times > 1 {
		often += " the last time"
	}
	f.Sentence = fmt.Sprintf("%s (%s) of the %s that torch reserved %s were reserved while the cache held as many "+
		"free bytes, in pieces that were too small or of another stream or pool: %s %s with %s free.",
		prose.MiB(grown), prose.Share(float64(grown), float64(r.bytes)), prose.MiB(r.bytes), r.most, often,
		memory.When(&at), prose.MiB(freeThen))
	f.Change = expandable
	return &f
}

// gaps are the events that stand for all that happened between two windows.
func (x *finder) gaps() map[int64]bool {
	out := map[int64]bool{}
	for i := range x.in.Events {
		if e := &x.in.Events[i]; schemas.Action(e.Action) == schemas.ActionGap && e.Rank == x.p.Rank &&
			e.Device == x.p.Device {
			out[e.Seq] = true
		}
	}
	return out
}

// active lists the changes of what blocks take of the segments, by event: a block is free when its free is complete.
func (x *finder) active() []memory.Level {
	out := make([]memory.Level, 0, 2*len(x.l.Allocs))
	for _, a := range x.l.Allocs {
		out = append(out, memory.Level{Seq: a.AllocSeq, Bytes: a.BlockBytes})
		if a.FreeCompletedSeq != 0 {
			out = append(out, memory.Level{Seq: a.FreeCompletedSeq, Bytes: -a.BlockBytes})
		}
	}
	slices.SortFunc(out, func(a, b memory.Level) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}
