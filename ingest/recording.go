package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// recording is the data about one device from the drains of one rank.
type recording struct {
	device      int32
	events      schemas.EventColumns
	checkpoints []schemas.Checkpoint // one for each drain, including those after recording stopped
	peaksSince  []int64              // event just before the last reset of torch's peaks, by checkpoint
	unseen      []replay.Peaks       // torch's peaks when the latest window opened, unless reset since, by checkpoint
	gaps        []replay.Gap         // gaps between windows
	final       []schemas.SegmentBlock
	atOOM       []schemas.SegmentBlock // the allocator's lists at out-of-memory errors
	baseline    map[string]int64       // counters when recording began; nil = the journal does not have them
	settings    replay.Settings
	unverified  int64 // number of events after the last drain that has counters
	broken      error // error of a chunk that could not be read; later chunks are lost
	unknown     int64 // number of events whose action this version does not know
	unread      int64 // number of entries that are not events
	disputed    int64 // number of segments in the final list whose blocks contradict their totals
	// misplaced counts the segments of a device for which torch has no trace, though torch traces all devices. The
	// segments may belong to another device.
	misplaced  int64
	backwards  int64 // number of events that are earlier than the event before
	everUsed   bool
	resetPeaks bool
	listOnly   bool // the recording is a snapshot without history: it has only the allocator's own list
}

// counts has numbers of allocator events, in the way torch's counters count them.
type counts struct{ allocs, requests, completes, bytes int64 }

func (a counts) minus(b counts) counts {
	return counts{a.allocs - b.allocs, a.requests - b.requests, a.completes - b.completes, a.bytes - b.bytes}
}

func (a counts) plus(b counts) counts {
	return counts{a.allocs + b.allocs, a.requests + b.requests, a.completes + b.completes, a.bytes + b.bytes}
}

func count(e *schemas.EventColumns, from int) (c counts) {
	for i := from; i < e.Len(); i++ {
		switch e.Action[i] {
		case schemas.ActionAlloc:
			c.allocs++
			c.bytes += e.Size[i]
		case schemas.ActionFreeRequested:
			c.requests++
		case schemas.ActionFreeCompleted:
			c.completes++
		}
	}
	return c
}

func counted(stats map[string]int64) counts {
	return counts{stats["allocation.all.allocated"], stats["allocation.all.freed"], stats["active.all.freed"],
		stats["requested_bytes.all.allocated"]}
}

// reader collects the data of a journal's drains, device by device.
type reader struct {
	journal *spool.Journal
	stacks  *torchsnap.Stacks
	devices map[int32]*recording
	last    map[int32]map[string]int64 // counters at the last drain
	missing map[int32]counts           // missing events so far, by device
	resets  []reset
	broken  error  // see recording; it also counts for devices that are first seen afterwards
	closed  uint32 // mark of the last drain that took events
	paused  bool   // recording is paused
}

// reset is a call by which the script itself resets torch's counters.
type reset struct {
	k           uint32
	peaks       bool
	accumulated bool
}

// read decodes all drains of a journal, and leaves out devices that were not used.
func read(j *spool.Journal, stacks *torchsnap.Stacks) []*recording {
	r := &reader{journal: j, stacks: stacks, devices: map[int32]*recording{}, last: map[int32]map[string]int64{},
		missing: map[int32]counts{}}
	for i := range j.Marks {
		if m := &j.Marks[i]; m.Kind == spool.HistoryReset {
			name := j.Names[uint32(m.A)]
			r.resets = append(r.resets, reset{m.K, strings.Contains(name, "reset_peak") ||
				strings.Contains(name, "reset_max"),
				strings.Contains(name, "accumulated")})
		}
	}
	previous := uint32(0)
	for i := range j.Chunks {
		c := &j.Chunks[i]
		from := map[int32]int{}
		for d, rec := range r.devices {
			from[d] = rec.events.Len()
		}
		var broken error
		switch {
		case c.Pickle == nil:
		case c.Checkpoint != nil && listsBlocks(c.Checkpoint.Reason):
			broken = r.openWindow(c)
			for d, rec := range r.devices {
				from[d] = rec.events.Len()
			}
		case c.Checkpoint == nil && r.paused: // the process ended inside this window, before its drain
			continue
		default:
			broken = r.addEvents(c)
		}
		if c.Checkpoint == nil {
			for d, rec := range r.devices {
				rec.unverified += int64(rec.events.Len() - from[d])
			}
		} else {
			// The checkpoint is added before the chunk counts as broken, since its counters show how many events were
			// lost.
			r.addCheckpoint(c, previous, from)
			previous = c.Checkpoint.K
			if r.paused = !c.Checkpoint.Recording; !r.paused {
				r.closed = c.Checkpoint.K
			}
		}
		if broken != nil {
			r.broken = cmp.Or(r.broken, broken)
			for _, rec := range r.devices {
				rec.broken = cmp.Or(rec.broken, broken)
			}
		}
	}
	var out []*recording
	for _, rec := range r.devices {
		if rec.everUsed || rec.acted() {
			out = append(out, rec)
		}
	}
	slices.SortFunc(out, func(a, b *recording) int { return cmp.Compare(a.device, b.device) })
	return out
}

// acted reports whether the program used the device. Events of taking a snapshot do not count, since torch adds one to
// each device.
func (rec *recording) acted() bool {
	return slices.ContainsFunc(rec.events.Action, func(a schemas.Action) bool { return a != schemas.ActionSnapshot })
}

func (r *reader) device(d int32) *recording {
	rec := r.devices[d]
	if rec == nil {
		rec = &recording{device: d, broken: r.broken}
		r.devices[d] = rec
	}
	return rec
}

func (r *reader) addEvents(c *spool.Chunk) error {
	s, err := torchsnap.ReadBytes(c.Pickle, torchsnap.Options{Stacks: r.stacks})
	if err == nil {
		err = s.Strict()
	}
	if err != nil {
		return fmt.Errorf("the allocator's events at byte %d of the journal: %w", c.Offset, err)
	}
	settings, err := replaySettings(s.Settings)
	if err != nil {
		return err
	}
	for d := range s.Devices {
		if s.Devices[d].Len() > 0 {
			rec := r.device(int32(d))
			if rec.broken == nil { // after a gap, addresses have no meaning any more
				rec.events.AppendAll(&s.Devices[d])
			}
		}
	}
	failed := c.Checkpoint != nil && c.Checkpoint.Reason == schemas.ReasonOOM
	for _, rec := range r.devices {
		rec.settings = settings
		rec.final = blocks(s, rec.device, int64(rec.events.Len()), schemas.ListLast)
		if failed {
			rec.atOOM = append(rec.atOOM, asOf(schemas.ListOOM, rec.final)...)
		}
	}
	return nil
}

// blocks returns the list of a device's blocks in a snapshot.
func blocks(s *torchsnap.Snapshot, device int32, seq int64, at schemas.ListMoment) []schemas.SegmentBlock {
	var out []schemas.SegmentBlock
	for i := range s.Segments {
		g := &s.Segments[i]
		if int32(g.Device) != device {
			continue
		}
		for _, b := range g.Blocks {
			out = append(out, schemas.SegmentBlock{Device: device, Seq: seq, At: at, SegmentAddress: g.Address,
				SegmentBytes: g.TotalSize,
				SegmentType:  g.Type, Stream: g.Stream, Pool: g.Pool, Expandable: g.Expandable, Address: b.Address,
				BlockBytes:     b.Size,
				RequestedBytes: max(b.RequestedSize, 0), State: b.State})
		}
	}
	return out
}

// asOf returns a copy of a list of blocks for another moment.
func asOf(at schemas.ListMoment, list []schemas.SegmentBlock) []schemas.SegmentBlock {
	list = slices.Clone(list)
	for i := range list {
		list[i].At = at
	}
	return list
}

// replaySettings returns those of a snapshot's allocator settings that decide the sizes of blocks.
func replaySettings(s torchsnap.Settings) (replay.Settings, error) {
	out := replay.Settings{ExpandableSegments: s.ExpandableSegments}
	if s.MaxSplitSize > 0 && s.MaxSplitSize < math.MaxInt64 { // the greatest integer also means no limit
		out.MaxSplitSize = s.MaxSplitSize
	}
	for _, mib := range slices.Sorted(maps.Keys(s.RoundupPower2Divisions)) {
		if err := out.SetDivisions(mib, s.RoundupPower2Divisions[mib]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// addCheckpoint adds a drain's checkpoint for each device, and compares the events since the previous drain with
// torch's counters. addCheckpoint compares interval by interval, because a script may reset the counters in between.
func (r *reader) addCheckpoint(c *spool.Chunk, previous uint32, from map[int32]int) {
	p := c.Checkpoint
	var cleared reset
	for _, s := range r.resets {
		if s.k > previous && s.k <= p.K {
			cleared.peaks = cleared.peaks || s.peaks
			cleared.accumulated = cleared.accumulated || s.accumulated
		}
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		rec := r.device(d.Device)
		s := d.Stats
		rec.everUsed = rec.everUsed || s["allocation.all.allocated"] > 0 || s["reserved_bytes.all.peak"] > 0
		last, known := r.last[d.Device]
		r.last[d.Device] = s
		if rec.baseline == nil && (p.Drain == 0 || !known) {
			rec.baseline = s
			if p.Drain == 0 {
				continue // nothing has been recorded yet
			}
			last = map[string]int64{} // a device that this drain shows first: its counters began at 0
		}
		recorded := p.Recording && rec.broken == nil && !listsBlocks(p.Reason)
		row := schemas.Checkpoint{Device: d.Device, Drain: p.Drain, Reason: p.Reason, K: int64(p.K),
			Seq:    int64(rec.events.Len()),
			TimeNS: p.TimeNS, DrainNS: p.DrainNS,
			AllocatedBytes: s["allocated_bytes.all.current"], AllocatedPeakBytes: s["allocated_bytes.all.peak"],
			ReservedBytes: s["reserved_bytes.all.current"], ReservedPeakBytes: s["reserved_bytes.all.peak"],
			ActiveBytes: s["active_bytes.all.current"], RequestedBytes: s["requested_bytes.all.current"]}
		if row.Recorded = recorded; recorded {
			before := counted(last)
			if cleared.accumulated {
				before = counts{}
			}
			got := count(&rec.events, from[d.Device])
			if e := rec.unverified; e > 0 { // events of drains without counters are in this interval, too
				got = got.plus(count(rec.tail(from[d.Device], e), 0))
				rec.unverified = 0
			}
			total := r.missing[d.Device].plus(counted(s).minus(before).minus(got))
			r.missing[d.Device] = total
			row.MissingAllocs, row.MissingFreeRequests = total.allocs, total.requests
			row.MissingFreeCompletes, row.MissingRequestedBytes = total.completes, total.bytes
		}
		since, unseen := int64(0), replay.Peaks{}
		if n := len(rec.peaksSince); n > 0 {
			since, unseen = rec.peaksSince[n-1], rec.unseen[n-1]
		}
		if cleared.peaks {
			since, unseen, rec.resetPeaks = int64(from[d.Device]), replay.Peaks{}, true
		}
		if listsBlocks(p.Reason) {
			unseen = replay.Peaks{Allocated: row.AllocatedPeakBytes, Reserved: row.ReservedPeakBytes}
			if n := int64(rec.events.Len()); since == n-1 && since > 0 { // the counter was reset while nothing was recorded
				since = n
			}
		}
		rec.checkpoints = append(rec.checkpoints, row)
		rec.peaksSince, rec.unseen = append(rec.peaksSince, since), append(rec.unseen, unseen)
	}
}

// tail returns the last n events before event index to.
func (rec *recording) tail(to int, n int64) *schemas.EventColumns {
	lo := max(to-int(n), 0)
	return &schemas.EventColumns{Action: rec.events.Action[lo:to], Size: rec.events.Size[lo:to]}
}

var errNoEvents = errors.New("no allocator events were recorded")
