package torchsnap

import (
	"fmt"
	"slices"
	"sort"

	"github.com/dpsight/dpsight/ingest/pickle"
	"github.com/dpsight/dpsight/schemas"
)

// A trace is a list of events. If the events' rows follow each other, as in the snapshots that torch writes, the trace
// has the rows from first on, and its columns are slices of the common columns. Otherwise the trace has the listed
// rows.
type trace struct {
	first, n int
	rows     []uint32
	unread   int64 // number of items that are no events
	done     bool
	device   device
}

// A device has the columns of one trace.
type device struct {
	cols     schemas.EventColumns
	meta     []uint32
	internal []InternalEvent
}

func (b *builder) newTrace(items []pickle.Value) (pickle.Ref, error) {
	b.traces = append(b.traces, trace{first: int(items[0].Ref().ID)})
	ref := pickle.Ref{Tag: tagTrace, ID: uint64(len(b.traces) - 1)}
	if err := b.d.Charge(256); err != nil {
		return ref, err
	}
	return ref, b.extendTrace(&b.traces[ref.ID], items)
}

func (b *builder) extendTrace(t *trace, items []pickle.Value) error {
	for _, v := range items {
		ref := v.Ref()
		switch {
		case ref.Tag != tagEvent:
			t.unread++
			b.passOver(fmt.Errorf("a list of trace events holds %s", describe(v)))
		case t.rows == nil && int(ref.ID) == t.first+t.n:
			t.n++
		default:
			if t.rows == nil {
				if err := b.d.Charge(4 * int64(t.n)); err != nil {
					return err
				}
				for r := range t.n {
					t.rows = append(t.rows, uint32(t.first+r))
				}
			}
			if err := b.d.Charge(4 + rowBytes); err != nil {
				return err
			}
			t.rows = append(t.rows, uint32(ref.ID))
			t.n++
		}
	}
	return nil
}

// columns returns a trace's columns: slices of the common columns, or copies of the listed rows. columns makes a
// trace's columns only once.
func (b *builder) columns(t *trace) *device {
	if t.done {
		return &t.device
	}
	t.done = true
	e, d := &b.events, &t.device
	if t.rows == nil {
		lo, hi := t.first, t.first+t.n
		d.cols = e.cols.Part(lo, hi)
		if lo < len(e.meta) {
			d.meta = grown(e.meta[lo:min(hi, len(e.meta))], max(0, hi-len(e.meta)))[:hi-lo]
		}
	} else {
		d.cols = gather(&e.cols, t.rows)
		if len(e.meta) > 0 {
			d.meta = make([]uint32, t.n)
			for i, r := range t.rows {
				if int(r) < len(e.meta) {
					d.meta[i] = e.meta[r]
				}
			}
		}
	}
	if len(d.meta) > 0 && slices.Max(d.meta) == 0 {
		d.meta = nil
	}
	b.collectInternal(t)
	b.countOdd(t)
	b.checkNeeds(&d.cols)
	return d
}

func gather(c *schemas.EventColumns, rows []uint32) schemas.EventColumns {
	var out schemas.EventColumns
	for _, r := range rows {
		out.Append(c.Action[r], c.Addr[r], c.Size[r], c.StreamOf(int(r)), c.TimeNS[r], c.Mark[r], c.Stack[r],
			c.PoolOf(int(r)))
		out.SetLine(out.Len()-1, c.LineOf(int(r)))
	}
	return out
}

func (b *builder) collectInternal(t *trace) {
	all := b.events.internal
	if len(all) == 0 {
		return
	}
	for i := range t.n {
		r := t.first + i
		if t.rows != nil {
			r = int(t.rows[i])
		}
		if k := sort.Search(len(all), func(k int) bool { return all[k].row >= r }); k < len(all) && all[k].row == r {
			t.device.internal = append(t.device.internal, InternalEvent{Event: i, Text: b.d.Text(all[k].text)})
		}
	}
}

// countOdd counts the oddities of the trace's rows.
func (b *builder) countOdd(t *trace) {
	if len(b.events.odd) == 0 {
		return
	}
	var listed map[int]struct{}
	if t.rows != nil {
		listed = map[int]struct{}{}
		for _, r := range t.rows {
			listed[int(r)] = struct{}{}
		}
	}
	for _, o := range b.events.odd {
		_, in := listed[o.row]
		if in || t.rows == nil && o.row >= t.first && o.row < t.first+t.n {
			b.odd.counts[o.kind]++
		}
	}
}

// checkNeeds finds events that lack a value that their action needs. The effect of an event without a needed value is
// unknown, so checkNeeds sets their action to unknown.
func (b *builder) checkNeeds(c *schemas.EventColumns) {
	for i, a := range c.Action {
		if a < schemas.ActionAlloc || a > schemas.ActionSegmentUnmap {
			continue
		}
		lacks := kSize
		if c.Addr[i] == 0 {
			lacks = kAddr
		} else if c.Size[i] >= 0 {
			continue
		}
		b.passOver(fmt.Errorf("a trace event (%v) has no key %q", a, words[lacks]))
		c.Action[i] = schemas.ActionUnknown
	}
}
