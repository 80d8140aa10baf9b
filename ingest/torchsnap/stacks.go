package torchsnap

import (
	"math/rand/v2"
	"slices"
)

// A Frame is one frame of a stack. Line is −1 where torch writes 2^64−1.
type Frame struct {
	Function string
	File     string
	Line     int64
}

// Stacks interns stacks: equal stacks have equal ids, from 1. All chunks of a journal may share one Stacks, so that
// their ids agree; see [Options].
type Stacks struct {
	frames   []Frame // frames by id, from 0
	frameIDs map[Frame]uint32
	flat     []uint32 // frame ids of all stacks
	start    []uint64 // stack i is flat[start[i-1]:start[i]]
	table    []uint32 // open addressing by hash of the frame ids; 0 = free
	seed     uint64
}

// NewStacks returns an empty table.
func NewStacks() *Stacks {
	return &Stacks{frameIDs: map[Frame]uint32{}, start: []uint64{0}, table: make([]uint32, 64), seed: rand.Uint64()}
}

// Len returns the number of stacks; their ids are 1 to Len.
func (s *Stacks) Len() int { return len(s.start) - 1 }

// Stack returns the frames of a stack, innermost first; none for id 0.
func (s *Stacks) Stack(id uint32) []Frame {
	ids := s.FrameIDs(id)
	out := make([]Frame, len(ids))
	for i, f := range ids {
		out[i] = s.frames[f]
	}
	return out
}

// FrameIDs returns a stack's frames as indexes in [Stacks.Frames], innermost first. Callers must not change the result.
func (s *Stacks) FrameIDs(id uint32) []uint32 {
	if id == 0 {
		return nil
	}
	return s.flat[s.start[id-1]:s.start[id]:s.start[id]]
}

// Frames returns all distinct frames. Callers must not change the result.
func (s *Stacks) Frames() []Frame { return s.frames }

// frame interns one frame; isNew says whether the frame was new.
func (s *Stacks) frame(f Frame) (id uint32, isNew bool) {
	id, ok := s.frameIDs[f]
	if !ok {
		id = uint32(len(s.frames))
		s.frames = append(s.frames, f)
		s.frameIDs[f] = id
	}
	return id, !ok
}

// stack interns a list of frame ids.
func (s *Stacks) stack(ids []uint32) (id uint32, isNew bool) {
	if len(ids) == 0 {
		return 0, false
	}
	mask := uint64(len(s.table) - 1)
	at := s.hash(ids) & mask
	for s.table[at] != 0 {
		if slices.Equal(s.FrameIDs(s.table[at]), ids) {
			return s.table[at], false
		}
		at = (at + 1) & mask
	}
	s.flat = append(s.flat, ids...)
	s.start = append(s.start, uint64(len(s.flat)))
	id = uint32(s.Len())
	s.table[at] = id
	if 4*s.Len() > 3*len(s.table) {
		s.grow()
	}
	return id, true
}

func (s *Stacks) grow() {
	s.table = make([]uint32, 2*len(s.table))
	mask := uint64(len(s.table) - 1)
	for id := 1; id <= s.Len(); id++ {
		at := s.hash(s.FrameIDs(uint32(id))) & mask
		for s.table[at] != 0 {
			at = (at + 1) & mask
		}
		s.table[at] = uint32(id)
	}
}

// hash returns a hash of frame ids, by multiplying and folding with a random seed. A hash over bytes would take a third
// of the time of decoding. A hash without a seed would let a hostile file produce collisions.
func (s *Stacks) hash(ids []uint32) uint64 {
	h := s.seed
	for _, id := range ids {
		h = (h ^ uint64(id)) * 0x9E3779B97F4A7C15
		h ^= h >> 29
	}
	return h
}

// Add interns a stack, innermost frame first, and returns its id. Add returns 0 for a stack without frames.
func (s *Stacks) Add(frames []Frame) uint32 {
	ids := make([]uint32, len(frames))
	for i, f := range frames {
		ids[i], _ = s.frame(f)
	}
	id, _ := s.stack(ids)
	return id
}
