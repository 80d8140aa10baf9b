package torchsnap

import (
	"math"
	"sort"

	"github.com/dpsight/dpsight/ingest/pickle"
	"github.com/dpsight/dpsight/schemas"
)

// events collects the rows of all trace events in the pickle, in the order of the events' dictionaries.
type events struct {
	cols     schemas.EventColumns
	meta     []uint32 // id in texts of each row; shorter than cols if the last rows have none
	texts    []string
	textIDs  map[uint32]uint32 // string id → id in texts
	internal []internalRow     // in order of row
	broken   map[int]struct{}  // rows that lack a value without which an event means nothing
	odd      []oddRow          // skipped entries, in the order in which they came
	keys     uint32            // bits of the known keys seen
	unknown  map[uint32]struct{}
	actions  map[uint32]schemas.Action // action for each string id
	begin    int64                     // offset of the first event
	// Most events have the same few actions, so the last event's action is tried first.
	lastAction     uint32
	lastActionWord schemas.Action
}

type internalRow struct {
	row  int
	text uint32 // id of the string
}

// An oddRow says which kind of oddity a row has. An oddRow counts only if the row is used.
type oddRow struct{ row, kind int }

// rowBytes is how many bytes one event takes in all columns together.
const rowBytes = 1 + 8 + 8 + 8 + 8 + 4 + 4 + 8 + 4 + 4

func newEvents(d *pickle.Decoder) events {
	return events{texts: []string{""}, textIDs: map[uint32]uint32{}, unknown: map[uint32]struct{}{},
		actions: map[uint32]schemas.Action{}}
}

// A row is one event while its dictionary is read.
type row struct {
	action   schemas.Action
	addr     uint64
	free     uint64 // value of device_free
	hasFree  bool
	size     int64
	stream   uint64
	timeNS   int64
	mark     uint32
	line     uint32
	text     uint32
	stack    uint32
	pool     uint64
	internal uint32
	broken   bool
	keys     uint32   // bits of the known keys seen
	unknown  []uint32 // string ids of the other keys
}

const whatEvent = "a trace event"

func (b *builder) event(dict pickle.Ref, isNew bool, items []pickle.Value) (pickle.Ref, error) {
	e := &b.events
	r := row{size: -1}
	if isNew {
		dict.ID = uint64(e.cols.Len())
	} else {
		r = e.row(int(dict.ID))
	}
	for i := 0; i < len(items); i += 2 {
		if items[i].Kind() != pickle.String {
			continue
		}
		if err := b.eventField(&r, items[i].ID(), items[i+1]); err != nil {
			e.odd = append(e.odd, oddRow{int(dict.ID), b.odd.kind(err)})
			if err := b.d.Charge(16); err != nil {
				return dict, err
			}
			r.broken = r.broken || items[i].ID() <= kStream
		}
	}
	if r.action == schemas.ActionOOM && r.hasFree {
		r.addr = r.free
	}
	if _, before := e.broken[int(dict.ID)]; r.broken || before {
		r.action = schemas.ActionUnknown
		if !before {
			if e.broken == nil {
				e.broken = map[int]struct{}{}
			}
			e.broken[int(dict.ID)] = struct{}{}
			if err := b.d.Charge(32); err != nil {
				return dict, err
			}
		}
	} else {
		e.keys |= r.keys
		for _, key := range r.unknown {
			e.unknown[key] = struct{}{}
		}
	}
	if isNew {
		if err := e.grow(b.d); err != nil {
			return dict, err
		}
		e.cols.Append(r.action, r.addr, r.size, r.stream, r.timeNS, r.mark, r.stack, r.pool)
		e.cols.SetLine(e.cols.Len()-1, r.line)
	} else {
		e.replace(int(dict.ID), r)
	}
	e.annotate(int(dict.ID), r)
	return dict, nil
}

func (b *builder) eventField(r *row, key uint32, v pickle.Value) error {
	e := &b.events
	if key > lastEventKey {
		r.unknown = append(r.unknown, key)
		return nil
	}
	r.keys |= 1 << key
	switch key {
	case kAction:
		if v.Kind() != pickle.String {
			return b.wrong(whatEvent, key, "a str", v)
		}
		r.action = e.action(b.d, v.ID())
	case kAddr, kDeviceFree, kStream:
		if !v.IsInt() {
			return b.wrong(whatEvent, key, "an int", v)
		}
		switch key {
		case kAddr:
			r.addr = v.Uint()
		case kStream:
			r.stream = v.Uint()
		default:
			r.free, r.hasFree = v.Uint(), true
		}
	case kSize:
		if v.Kind() != pickle.Int || v.Int() < 0 {
			return b.wrong(whatEvent, key, "a number of bytes", v)
		}
		r.size = v.Int()
	case kTimeUS:
		if v.Kind() != pickle.Int || v.Int() > math.MaxInt64/1000 || v.Int() < 0 {
			return b.wrong(whatEvent, key, "a number of microseconds", v)
		}
		r.timeNS = v.Int() * 1000
	case kFrames:
		id, ok, err := b.stackOf(v)
		if err != nil {
			return err
		}
		if !ok {
			return b.wrong(whatEvent, key, "a list of frames", v)
		}
		r.stack = id
	case kUserMetadata:
		return b.userMetadata(r, v)
	case kPoolID:
		id, ok := poolOf(v)
		if !ok {
			return b.wrong(whatEvent, key, "a pair of ints", v)
		}
		r.pool = id
	case kInternalMetadata:
		switch v.Kind() {
		case pickle.String:
			r.internal = v.ID()
		case pickle.None:
		default:
			return b.wrong(whatEvent, key, "a str", v)
		}
	}
	return nil
}

func poolOf(v pickle.Value) (id uint64, ok bool) {
	switch {
	case v.Kind() == pickle.None:
		return 0, true
	case v.Kind() == pickle.Int && v.Int() >= 0:
		return v.Uint(), true
	}
	return v.Ref().ID, v.Ref().Tag == tagPair
}

func (e *events) action(d *pickle.Decoder, word uint32) schemas.Action {
	if word == e.lastAction && word != 0 {
		return e.lastActionWord
	}
	a, ok := e.actions[word]
	if !ok {
		a = schemas.ParseAction(d.Text(word))
		e.actions[word] = a
	}
	e.lastAction, e.lastActionWord = word, a
	return a
}

func (e *events) row(i int) row {
	c := &e.cols
	r := row{action: c.Action[i], addr: c.Addr[i], free: c.Addr[i], size: c.Size[i],
		stream: c.StreamOf(i), timeNS: c.TimeNS[i], mark: c.Mark[i], stack: c.Stack[i], pool: c.PoolOf(i),
		line: c.LineOf(i)}
	if i < len(e.meta) {
		r.text = e.meta[i]
	}
	return r
}

func (e *events) replace(i int, r row) {
	c := &e.cols
	c.Action[i], c.Addr[i], c.Size[i], c.TimeNS[i], c.Mark[i], c.Stack[i] = r.action, r.addr, r.size, r.timeNS, r.mark,
		r.stack
	c.SetStream(i, r.stream)
	c.SetPool(i, r.pool)
	c.SetLine(i, r.line)
}

// annotate keeps the texts of event i.
func (e *events) annotate(i int, r row) {
	if r.text != 0 || i < len(e.meta) {
		for len(e.meta) <= i {
			e.meta = append(e.meta, make([]uint32, i+1-len(e.meta))...)
		}
		e.meta[i] = r.text
	}
	if r.internal != 0 {
		e.internal = append(e.internal, internalRow{i, r.internal})
	}
}

// grow enlarges full columns to the expected number of events, or else to twice their length. With append's factor of
// 1.25, five times the size of the columns would become garbage.
func (e *events) grow(d *pickle.Decoder) error {
	c := &e.cols
	n := c.Len()
	if n < cap(c.Action) {
		return nil
	}
	if n == 0 {
		e.begin = d.Offset()
	}
	more := max(64, d.Ahead(n, e.begin))
	if n+more > math.MaxUint32 {
		more = math.MaxUint32 - n
	}
	if err := d.Charge(int64(more) * rowBytes); err != nil {
		return err
	}
	c.Action = grown(c.Action, more)
	c.Addr = grown(c.Addr, more)
	c.Size = grown(c.Size, more)
	c.TimeNS = grown(c.TimeNS, more)
	c.Mark = grown(c.Mark, more)
	c.Stack = grown(c.Stack, more)
	if len(c.Stream) > 0 {
		c.Stream = grown(c.Stream, more)
	}
	if len(c.Pool) > 0 {
		c.Pool = grown(c.Pool, more)
	}
	return nil
}

func grown[T any](s []T, more int) []T {
	return append(make([]T, 0, len(s)+more), s...)
}

// traceKeys lists the keys seen, sorted.
func (b *builder) traceKeys() []string {
	var out []string
	for k := kAction; k <= lastEventKey; k++ {
		if b.events.keys&(1<<k) != 0 {
			out = append(out, words[k])
		}
	}
	for id := range b.events.unknown {
		out = append(out, b.d.Text(id))
	}
	sort.Strings(out)
	return out
}
