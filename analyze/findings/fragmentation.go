package findings

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
)

// FragmentationFacts are the facts of a [Fragmentation] finding. The finding's bytes were reserved although as many
// bytes were free in the cache.
type FragmentationFacts struct {
	Times            int
	FreeBytes, Event int64 // free bytes at the latest such moment, and its event
	ReservedBytes    int64 // the highest reserved
	Expandable       bool  // torch already has expandable segments, so there is nothing to change
}

// fragmented sums the increases of the highest reserved for which as many bytes were free in the cache, but in pieces
// that were too small.
func (x *evidence) fragmented() []Finding {
	r := x.highestReserved()
	if r == nil || r.layout == nil {
		return nil
	}
	steps, gaps := r.steps, r.gaps
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
		// Why bytes were reserved in a gap is unknown. Otherwise, an increase counts if the cache had at least as
		// many bytes free as were newly reserved.
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
	facts := FragmentationFacts{Times: times, FreeBytes: freeThen, Event: last, ReservedBytes: r.bytes,
		Expandable: expandable(x.in)}
	f.Facts = facts
	if !facts.Expandable {
		x.savesReserved(&f, min(grown, r.spare))
	}
	return []Finding{f}
}

// active lists, by event, the bytes of all blocks that are not yet free. A block counts until its free is completed,
// which comes after the request to free it.
func (x *evidence) active() []memory.Level {
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

// fragmentedPercent is the least part of the highest reserved, in per cent, that must have grown although as much was
// free, and that must exceed the highest allocated.
const fragmentedPercent = 5
