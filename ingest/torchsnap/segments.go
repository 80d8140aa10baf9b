package torchsnap

import (
	"fmt"
	"math"

	"github.com/dpsight/dpsight/ingest/pickle"
	"github.com/dpsight/dpsight/schemas"
)

const whatSegment = "a segment"

// A segment has a segment's fields while its dictionary is read. A segment's blocks are looked up at the end.
type segment struct {
	Segment
	blocks pickle.Value
	taken  bool
}

func (b *builder) segment(dict pickle.Ref, isNew bool, items []pickle.Value) (pickle.Ref, error) {
	if isNew {
		dict.ID = uint64(len(b.segments))
		b.segments = append(b.segments, segment{Segment: Segment{AllocatedSize: -1, ActiveSize: -1, RequestedSize: -1}})
		if err := b.d.Charge(200); err != nil {
			return dict, err
		}
	}
	s := &b.segments[dict.ID]
	for i := 0; i < len(items); i += 2 {
		if items[i].Kind() != pickle.String {
			continue
		}
		if err := b.segmentField(s, items[i].ID(), items[i+1]); err != nil {
			if key := items[i].ID(); key != kDevice && key != kAddress && key != kTotalSize && key != kBlocks {
				b.passOver(err)
				continue
			}
			return b.fail(err)
		}
	}
	return dict, nil
}

func (b *builder) segmentField(s *segment, key uint32, v pickle.Value) error {
	var ok bool
	want := "an int"
	switch key {
	case kDevice:
		ok = v.Kind() == pickle.Int && v.Int() >= 0 && v.Int() <= math.MaxInt32
		s.Device = int(v.Int())
	case kAddress:
		ok = v.IsInt()
		s.Address = v.Uint()
	case kStream:
		ok = v.IsInt()
		s.Stream = v.Uint()
	case kTotalSize:
		s.TotalSize, ok = bytesOf(v)
	case kAllocatedSize:
		s.AllocatedSize, ok = bytesOf(v)
	case kActiveSize:
		s.ActiveSize, ok = bytesOf(v)
	case kRequestedSize:
		s.RequestedSize, ok = bytesOf(v)
	case kSegmentType:
		want = "a str"
		if ok = v.Kind() == pickle.String; ok {
			s.Type = b.d.Text(v.ID())
		}
	case kSegmentPoolID:
		want = "a pair of ints"
		s.Pool, ok = poolOf(v)
	case kIsExpandable:
		want = "a bool"
		ok = v.Kind() == pickle.Bool
		s.Expandable = v.Bool()
	case kFrames:
		want = "a list of frames"
		var err error
		if s.Stack, ok, err = b.stackOf(v); err != nil {
			return err
		}
	case kBlocks:
		want = "a list of blocks"
		ok = isList(v)
		s.blocks = v
	default:
		return nil
	}
	if !ok {
		return b.wrong(whatSegment, key, want, v)
	}
	return nil
}

// Contradictory reports whether the segment's totals differ from the sums over its blocks. torch computes the totals
// from the blocks, so totals and sums should agree. An absent total does not count, and neither does the total of
// requests if a request is unknown.
func (s *Segment) Contradictory() bool {
	var total, allocated, active, requested int64
	known := true // the requested sizes of all blocks are known
	for i := range s.Blocks {
		b := &s.Blocks[i]
		total += b.Size
		if b.State == schemas.BlockInactive {
			continue
		}
		active += b.Size
		if b.State == schemas.BlockActive {
			allocated += b.Size
		}
		requested += b.RequestedSize
		known = known && b.RequestedSize >= 0
	}
	differs := func(figure, sum int64) bool { return figure >= 0 && figure != sum }
	return total != s.TotalSize || differs(s.AllocatedSize, allocated) || differs(s.ActiveSize, active) ||
		known && differs(s.RequestedSize, requested)
}

// bytesOf returns v as a number of bytes; ok is false if v cannot be one.
func bytesOf(v pickle.Value) (int64, bool) { return v.Int(), v.Kind() == pickle.Int && v.Int() >= 0 }

// isList reports whether v is an empty list, or an [anyList].
func isList(v pickle.Value) bool {
	return v.Kind() == pickle.List && (v.Ref().Tag == 0 || v.Ref().Tag == tagList)
}

func (b *builder) items(v pickle.Value) []pickle.Value {
	if v.Kind() != pickle.List || v.Ref().Tag != tagList {
		return nil
	}
	return b.lists[v.Ref().ID].items
}

// resolve returns the segments of a list, in the list's order, with their blocks.
func (b *builder) resolve(v pickle.Value) ([]Segment, error) {
	if !isList(v) {
		return nil, b.wrong("the snapshot", kSegments, "a list of segments", v)
	}
	var out []Segment
	for i, item := range b.items(v) {
		if item.Ref().Tag != tagSegment {
			if err := b.broken(item); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("segment %d is %s", i, describe(item))
		}
		s := &b.segments[item.Ref().ID]
		if s.taken {
			return nil, fmt.Errorf("segment %d is listed twice", i)
		}
		s.taken = true
		if err := b.resolveBlocks(s); err != nil {
			return nil, fmt.Errorf("segment %d: %w", i, err)
		}
		out = append(out, s.Segment)
	}
	return out, nil
}

func (b *builder) resolveBlocks(s *segment) error {
	items := b.items(s.blocks)
	if len(items) == 0 {
		return nil
	}
	l := &b.lists[s.blocks.Ref().ID]
	if l.taken {
		return fmt.Errorf("its list of blocks is another segment's")
	}
	l.taken = true
	s.Blocks = make([]Block, 0, len(items))
	next := s.Address
	for i, item := range items {
		if item.Ref().Tag != tagBlock {
			if err := b.broken(item); err != nil {
				return err
			}
			return fmt.Errorf("block %d is %s", i, describe(item))
		}
		k := b.blocks[item.Ref().ID]
		if k.Size < 0 {
			return fmt.Errorf("block %d has no key %q", i, words[kSize])
		}
		if !k.hasAddress {
			k.Address = next
		}
		next = k.Address + uint64(k.Size)
		b.request(&k)
		s.Blocks = append(s.Blocks, k.Block)
	}
	return nil
}
