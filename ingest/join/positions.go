package join

import (
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// positions says where the marks of a rank lie among the events of a device.
type positions struct {
	before []int32     // number of the events before each mark
	last   []int32     // last event with each mark; 0 = none
	gaps   []int64     // events that stand for times without recording
	losses []markRange // see lossesOf
	events int64
}

// markRange is a range of marks, from first to last.
type markRange struct{ first, last uint32 }

// lossesOf returns the ranges of marks in which a device's events were lost, so that a tagged block may have been
// allocated and freed without an event. A range begins after the last drain with events, or at the beginning. The range
// ends with the drain that took the allocator's own list instead. Between two drains of a window, events were lost by
// accident. Before a later window, events were lost from the previous window's last drain on, since recording only ends
// with the mark that ends that window.
func lossesOf(c *Context, checkpoints []schemas.Checkpoint) []markRange {
	var all []markRange
	recorded := uint32(0) // number of the drain that took the last events
	for _, cp := range checkpoints {
		if cp.Reason == schemas.ReasonLost || cp.Reason == schemas.ReasonWindow {
			all = append(all, markRange{recorded, c.drainEnd(uint32(cp.K))})
		}
		if cp.Recorded {
			recorded = uint32(cp.K)
		}
	}
	return all
}

// locateMarks finds the position of each mark among the events. An event carries the last mark of its thread, so mark k
// lies before the first event that carries mark k or a later mark.
func locateMarks(c *Context, d Device) *positions {
	n := len(c.span)
	p := &positions{before: make([]int32, n), last: make([]int32, n), events: int64(d.Events.Len())}
	next := uint32(0)
	for i := range d.Events.Mark {
		m := c.markOf(d.Events, i)
		for ; next <= m; next++ {
			p.before[next] = int32(i)
		}
		p.last[m] = int32(i + 1)
	}
	for ; int(next) < n; next++ {
		p.before[next] = int32(p.events)
	}
	p.before[0] = 0
	for i, a := range d.Events.Action {
		if a == schemas.ActionGap {
			p.gaps = append(p.gaps, int64(i)+1)
		}
	}
	p.losses = lossesOf(c, d.Checkpoints)
	return p
}

// seqAt returns the last event before mark k. The state at mark k is the state just after that event.
func (p *positions) seqAt(k uint32) int64 {
	if int(k) >= len(p.before) {
		return p.events
	}
	return int64(p.before[k])
}

// losingAt reports whether a block that was live at mark k may have been allocated and freed without an event.
func (p *positions) losingAt(k uint32) bool { return inRanges(p.losses, k) }

// inRanges reports whether mark k is in one of the ranges.
func inRanges(all []markRange, k uint32) bool {
	return slices.ContainsFunc(all, func(r markRange) bool { return r.first <= k && k <= r.last })
}

// markOf returns the mark that event i (from 0) carries, or 0 if the journal does not have that mark.
func (c *Context) markOf(events *schemas.EventColumns, i int) uint32 {
	if m := events.Mark[i]; int(m) < len(c.span) {
		return m
	}
	return 0
}
