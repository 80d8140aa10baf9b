package analyze

import (
	"cmp"
	"fmt"
	"slices"
)

const (
	cachedPercent     = 10 // of what is reserved, free at the highest reserved
	spareablePercent  = 2  // of what is reserved, above the highest allocated: no change saves more
	fragmentedPercent = 5  // of what is reserved, grown although as much was free, and above the highest allocated
	// leastCached leaves out what is no more than the sizes of a few segments.
	leastCached = 64 << 20
)

const expandable = "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, so that segments grow in place and free bytes are not split among them"

// cached looks at the highest reserved: what of it holds nothing, and what came to be because free bytes lay in pieces.
func (x *finder) cached() []Finding {
	steps := x.in.reservedSteps(x.p)
	if steps == nil {
		return nil
	}
	highest := slices.MaxFunc(steps, func(a, b level) int { return cmp.Compare(a.bytes, b.bytes) }) // the first of equals
	seq := highest.seq + 1                                                                          // the request that the segment was made for is served
	at := x.in.momentOf(x.p, seq)
	lay := x.in.layoutAt(x.p, x.l, seq)
	if lay == nil || lay.reserved != highest.bytes {
		return nil
	}
	perfect := max(highest.bytes-x.d.AllocatedBytes, 0)
	var out []Finding
	if atLeast(lay.free(), lay.reserved, cachedPercent) && atLeast(perfect, lay.reserved, spareablePercent) && perfect >= leastCached {
		f := x.finding(FindingCached)
		f.At = &at
		f.of(lay.free(), lay.reserved, OfPeakReserved)
		x.layoutFigures(&f, lay, seq)
		f.Sentence = fmt.Sprintf("When what torch reserved was highest, %s %s, %s (%s) of it held nothing: %s in segments without any block, and %s between blocks, which no call of empty_cache gives back.",
			mib(lay.reserved), when(&at), mib(lay.free()), shareText(float64(lay.free()), float64(lay.reserved)), mib(lay.idle), mib(lay.gaps))
		f.Change = expandable
		f.saves(perfect, "at most: reserved would have to follow allocated to the byte, so that the highest of both are equal")
		out = append(out, f)
	}
	if f := x.fragmentation(steps, highest.bytes, perfect); f != nil {
		f.saves(min(*f.Bytes, perfect), "at most: every request that found its bytes free in pieces would have been served from them, and nothing reserved later for their sake")
		out = append(out, *f)
	}
	return out
}

func (x *finder) layoutFigures(f *Finding, lay *layout, seq int64) {
	from := fmt.Sprintf("events.parquet: segments after event %d, less the blocks of allocations.parquet in them", seq)
	f.bytes("reserved", lay.reserved, from)
	f.bytes("free in segments without blocks", lay.idle, from)
	f.bytes("free between blocks", lay.gaps, from)
	f.bytes("largest free piece", lay.largest, from)
	x.peakFigure(f)
}

// fragmentation adds up by how much the highest reserved rose when as many bytes as were reserved anew lay free in the
// cache, but in no piece that would do.
func (x *finder) fragmentation(steps []level, peak, perfect int64) *Finding {
	active := x.active()
	var grown, freeThen, highest int64
	var last int64
	times := 0
	k, now := 0, int64(0)
	for i := 1; i < len(steps); i++ {
		for ; k < len(active) && active[k].seq < steps[i].seq; k++ {
			now += active[k].bytes
		}
		before := steps[i-1].bytes
		highest = max(highest, before)
		need := steps[i].bytes - before
		if steps[i].bytes <= highest || before-now < need { // what it reserves anew was no more than is cached
			continue
		}
		grown += steps[i].bytes - highest
		freeThen, last = before-now, steps[i].seq
		times++
	}
	if most := min(grown, perfect); !atLeast(most, peak, fragmentedPercent) || most < leastCached {
		return nil
	}
	f := x.finding(FindingFragmentation)
	at := x.in.momentOf(x.p, last)
	f.At = &at
	f.of(grown, peak, OfPeakReserved)
	from := "events.parquet: segment_alloc and segment_map; allocations.parquet: blocks not yet completely freed"
	f.bytes("reserved anew while as much was free", grown, from)
	f.count("times", times, from)
	f.bytes("free at the last of them", freeThen, fmt.Sprintf("the same, before event %d", last))
	f.bytes("peak reserved", peak, "events.parquet: segments")
	f.Sentence = fmt.Sprintf("%s (%s) of the %s that torch reserved at most were reserved while the cache held as many free bytes, in pieces that were too small or of another stream or pool: %s, the last time %s with %s free.",
		mib(grown), shareText(float64(grown), float64(peak)), mib(peak), timesText(times), when(&at), mib(freeThen))
	f.Change = expandable
	return &f
}

// active lists the changes of what blocks take of the segments, by event: a block is free when its free is complete.
func (x *finder) active() []level {
	out := make([]level, 0, 2*len(x.l.allocs))
	for _, a := range x.l.allocs {
		out = append(out, level{a.AllocSeq, a.BlockBytes})
		if a.FreeCompletedSeq != 0 {
			out = append(out, level{a.FreeCompletedSeq, -a.BlockBytes})
		}
	}
	slices.SortFunc(out, func(a, b level) int { return cmp.Compare(a.seq, b.seq) })
	return out
}

// timesText is "once" or "3 times".
func timesText(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
