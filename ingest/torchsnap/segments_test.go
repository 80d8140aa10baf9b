package torchsnap

import (
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// In each era torch computes a segment's totals from the segment's blocks. If the totals of a segment and its blocks
// differ, the file is damaged.
func TestContradictory(t *testing.T) {
	sound := func() Segment {
		return Segment{TotalSize: 4096, AllocatedSize: 1024, ActiveSize: 3072, RequestedSize: 2500, Blocks: []Block{
			{Size: 1024, RequestedSize: 1000, State: schemas.BlockActive},
			{Size: 2048, RequestedSize: 1500, State: schemas.BlockPendingFree},
			{Size: 1024, RequestedSize: -1, State: schemas.BlockInactive},
		}}
	}
	for name, c := range map[string]struct {
		change func(*Segment)
		want   bool
	}{
		"sound":                    {func(*Segment) {}, false},
		"no blocks":                {func(s *Segment) { s.Blocks = nil }, true},
		"a block is missing":       {func(s *Segment) { s.Blocks = s.Blocks[:2] }, true},
		"another total":            {func(s *Segment) { s.TotalSize++ }, true},
		"another state":            {func(s *Segment) { s.Blocks[0].State = schemas.BlockPendingFree }, true},
		"a block is free":          {func(s *Segment) { s.Blocks[1].State = schemas.BlockInactive }, true},
		"another request":          {func(s *Segment) { s.Blocks[0].RequestedSize-- }, true},
		"a request is unknown":     {func(s *Segment) { s.Blocks[0].RequestedSize = -1 }, false},
		"requests are not totaled": {func(s *Segment) { s.RequestedSize = -1 }, false},
		"the device's size alone":  {func(s *Segment) { s.AllocatedSize, s.ActiveSize = -1, -1 }, false},
		"nothing": {func(s *Segment) {
			*s = Segment{AllocatedSize: -1, ActiveSize: -1, RequestedSize: -1}
		}, false},
	} {
		s := sound()
		c.change(&s)
		if got := s.Contradictory(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
