package ingest

import (
	"fmt"
	"slices"
	"sort"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// listsBlocks reports whether a drain with the given reason has no events, but a list of blocks from which the replay
// continues.
func listsBlocks(reason string) bool {
	return reason == schemas.ReasonWindow || reason == schemas.ReasonLost
}

// openWindow reads the first drain of a later window. The first drain of a window has no events, but the allocator's
// own list of blocks, from which the replay continues.
func (r *reader) openWindow(c *spool.Chunk) error {
	s, err := torchsnap.ReadBytes(c.Pickle, torchsnap.Options{Stacks: r.stacks})
	if err == nil {
		err = s.Strict()
	}
	if err != nil {
		return fmt.Errorf("the list of blocks at byte %d of the journal: %w", c.Offset, err)
	}
	for i := range c.Checkpoint.Devices {
		r.device(c.Checkpoint.Devices[i].Device)
	}
	mark := r.closed // other threads have tagged, during the drain, blocks whose events are lost
	if c.Checkpoint.Reason == schemas.ReasonWindow {
		mark = r.closingMark()
	}
	for _, rec := range r.devices {
		if rec.broken != nil {
			continue
		}
		seq := int64(rec.events.Len()) + 1
		list := blocks(s, rec.device, seq, schemas.ListWindow)
		rec.events.Append(schemas.ActionGap, 0, reservedIn(list)-reservedIn(rec.final), 0, c.Checkpoint.TimeNS, mark, 0,
			0)
		rec.gaps = append(rec.gaps, replay.Gap{Seq: seq, List: list})
		rec.final = asOf(schemas.ListLast, list)
	}
	return nil
}

// closingMark returns the mark at the end of the drain that closed the previous window. The gap lies just after this
// mark: marks of the steps that were not recorded come later, and the first recorded step begins with the state after
// the gap.
func (r *reader) closingMark() uint32 {
	marks := r.journal.Marks
	i := sort.Search(len(marks), func(i int) bool { return marks[i].K >= r.closed })
	end := slices.IndexFunc(marks[i:], func(m spool.Mark) bool { return m.Kind == spool.DrainEnd })
	if end < 0 {
		return r.closed
	}
	return marks[i+end].K
}

// reservedIn returns the bytes of all segments in a list.
func reservedIn(list []schemas.SegmentBlock) (bytes int64) {
	for i := range list {
		if i == 0 || list[i].SegmentAddress != list[i-1].SegmentAddress {
			bytes += list[i].SegmentBytes
		}
	}
	return bytes
}
