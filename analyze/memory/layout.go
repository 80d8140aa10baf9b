package memory

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// A Layout sums the segments that the allocator has reserved at one moment by their use: blocks, gaps between blocks,
// and empty segments.
type Layout struct {
	Reserved, allocated int64
	pending             int64 // bytes that the program has freed and a stream still uses
	Idle                int64 // bytes in segments without any block
	Gaps                int64 // bytes between blocks
	Largest             int64 // bytes of the largest free piece
}

// Free returns how many bytes are cached and could be handed out as blocks.
func (l *Layout) Free() int64 { return l.Idle + l.Gaps }

type extent struct{ from, to uint64 }

// LayoutAt replays the segments to event seq. LayoutAt returns nil if not all segments are known, for example because
// recording began late.
func LayoutAt(in *schemas.Tables, p identity.Place, l *Ledger, seq int64) *Layout {
	reserved := ReservedAt(in, p, seq)
	if reserved == nil {
		return nil
	}
	segments := segmentsAt(in, p, seq)
	var blocks []extent
	out := &Layout{Reserved: *reserved}
	for _, a := range l.Allocs {
		if a.AllocSeq > seq || a.FreeCompletedSeq != 0 && a.FreeCompletedSeq <= seq {
			continue
		}
		if a.LiveAt(seq) {
			out.allocated += a.BlockBytes
		} else {
			out.pending += a.BlockBytes
		}
		blocks = append(blocks, extent{a.Address, a.Address + uint64(a.BlockBytes)})
	}
	slices.SortFunc(blocks, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
	k := 0
	for _, s := range segments {
		at, used := s.from, false
		gap := func(to uint64) {
			if to > at {
				out.Gaps += int64(to - at)
				out.Largest = max(out.Largest, int64(to-at))
			}
		}
		for ; k < len(blocks) && blocks[k].from < s.to; k++ {
			if blocks[k].from < s.from {
				return nil
			}
			gap(blocks[k].from)
			at, used = blocks[k].to, true
		}
		if !used {
			out.Idle += int64(s.to - s.from)
			out.Largest = max(out.Largest, int64(s.to-s.from))
			continue
		}
		gap(s.to)
	}
	if k < len(blocks) || out.Reserved != out.allocated+out.pending+out.Free() {
		return nil
	}
	return out
}

// segmentsAt lists the segments by address. Adjacent mappings of an expandable segment count as one.
func segmentsAt(in *schemas.Tables, p identity.Place, seq int64) []extent {
	var fixed, mapped []extent
	for i := range in.Events {
		e := &in.Events[i]
		if e.Rank != p.Rank || e.Device != p.Device || e.Seq > seq {
			continue
		}
		s := extent{e.Addr, e.Addr + uint64(e.Size)}
		switch schemas.Action(e.Action) {
		case schemas.ActionSegmentAlloc:
			fixed = append(fixed, s)
		case schemas.ActionSegmentFree:
			fixed = slices.DeleteFunc(fixed, func(o extent) bool { return o == s })
		case schemas.ActionSegmentMap:
			mapped = append(mapped, s)
		case schemas.ActionSegmentUnmap:
			mapped = subtract(mapped, s)
		case schemas.ActionGap: // a gap tells only how reserved changed meanwhile
			fixed, mapped = segmentsListed(in, p, e.Seq)
		}
	}
	byAddress := func(a, b extent) int { return cmp.Compare(a.from, b.from) }
	slices.SortFunc(mapped, byAddress)
	var joined []extent
	for _, s := range mapped {
		if k := len(joined) - 1; k >= 0 && joined[k].to == s.from {
			joined[k].to = s.to
		} else {
			joined = append(joined, s)
		}
	}
	return slices.SortedFunc(slices.Values(append(fixed, joined...)), byAddress)
}

// segmentsListed returns the segments in the list with which a window opened, or none if there is no list.
func segmentsListed(in *schemas.Tables, p identity.Place, seq int64) (fixed, mapped []extent) {
	for i := range in.Segments {
		b := &in.Segments[i]
		// The table has one row for each block of a segment. Only the first block starts at the segment's start.
		if b.Rank != p.Rank || b.Device != p.Device || b.Seq != seq || b.Address != b.SegmentAddress {
			continue
		}
		s := extent{b.SegmentAddress, b.SegmentAddress + uint64(b.SegmentBytes)}
		if b.Expandable {
			mapped = append(mapped, s)
		} else {
			fixed = append(fixed, s)
		}
	}
	return fixed, mapped
}

// subtract removes a stretch of addresses from a list of stretches.
func subtract(from []extent, s extent) []extent {
	var out []extent
	for _, o := range from {
		if o.to <= s.from || s.to <= o.from {
			out = append(out, o)
			continue
		}
		if o.from < s.from {
			out = append(out, extent{o.from, s.from})
		}
		if s.to < o.to {
			out = append(out, extent{s.to, o.to})
		}
	}
	return out
}
