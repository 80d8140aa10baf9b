package page

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/dpsight/dpsight/analyze/blocks"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/schemas"
)

// A column of a table has the array of its values.
type column struct {
	name   string
	values arrow.Array
}

// numbers makes a column from values without copying them.
func numbers[T arrow.NumericType](name string, values []T) column {
	data := array.NewData(arrow.GetDataType[T](), len(values),
		[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.GetBytes(values))}, nil, 0, 0)
	defer data.Release()
	return column{name, array.MakeFromData(data)}
}

// spans makes a column from times between events. Nearly all of these times fit into 32 bits, but in a notebook half an
// hour may lie between two events.
func spans(name string, us []int64) column {
	if slices.ContainsFunc(us, func(v int64) bool { return v != int64(int32(v)) }) {
		return each(name, us, func(v *int64) float64 { return float64(*v) })
	}
	return each(name, us, func(v *int64) int32 { return int32(*v) })
}

func texts(name string, values []string) column {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(values, nil)
	return column{name, b.NewArray()}
}

// each makes a column from the value that one returns for each row.
func each[R any, T arrow.NumericType](name string, rows []R, one func(*R) T) column {
	values := make([]T, len(rows))
	for i := range rows {
		values[i] = one(&rows[i])
	}
	return numbers(name, values)
}

func eachText[R any](name string, rows []R, one func(*R) string) column {
	values := make([]string, len(rows))
	for i := range rows {
		values[i] = one(&rows[i])
	}
	return texts(name, values)
}

// writeTable writes a table as an Arrow stream with the table's name in its schema, and its length before it.
func writeTable(w io.Writer, name string, columns ...column) error {
	var fields []arrow.Field
	var values []arrow.Array
	for _, c := range columns {
		fields = append(fields, arrow.Field{Name: c.name, Type: c.values.DataType()})
		values = append(values, c.values)
		defer c.values.Release()
	}
	meta := arrow.NewMetadata([]string{"table"}, []string{name})
	schema := arrow.NewSchema(fields, &meta)
	record := array.NewRecord(schema, values, int64(columns[0].values.Len()))
	defer record.Release()
	var stream bytes.Buffer
	out := ipc.NewWriter(&stream, ipc.WithSchema(schema))
	if err := out.Write(record); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	if err := binary.Write(w, binary.LittleEndian, uint32(stream.Len())); err != nil {
		return err
	}
	_, err := stream.WriteTo(w)
	return err
}

// deltas returns by how much each value exceeds the previous one. Most differences are small and repeat from step to
// step, so they compress well.
func deltas(values []uint32) []int32 {
	out, before := make([]int32, len(values)), uint32(0)
	for i, v := range values {
		out[i], before = int32(v-before), v
	}
	return out
}

// lives returns how long each piece counts. 0 means to the end of the recording.
func lives(d *blocks.Device) []uint32 {
	out := slices.Clone(d.End)
	for i := range out {
		if out[i] != 0 {
			out[i] -= d.Begin[i]
		}
	}
	return out
}

// writeDevice writes a device's tables, and nothing if d and points are nil.
func writeDevice(w io.Writer, d *blocks.Device, points *timeline.DeviceTimeline) error {
	tables := &writer{w: w}
	if points != nil {
		tables.points(points)
	}
	if d != nil {
		tables.blocks(d)
		tables.times(d, points)
	}
	return tables.err
}

// A writer writes tables until one fails, and keeps the error.
type writer struct {
	w   io.Writer
	err error
}

func (t *writer) table(name string, columns ...column) {
	if t.err == nil {
		t.err = writeTable(t.w, name, columns...)
	}
}

func (t *writer) points(d *timeline.DeviceTimeline) {
	columns := []column{
		each("event", d.Points, func(p *timeline.TimelinePoint) uint32 { return uint32(p.HighEvent) }),
		each("from", d.Points, func(p *timeline.TimelinePoint) uint32 { return uint32(p.FromEvent) }),
		each("to", d.Points, func(p *timeline.TimelinePoint) uint32 { return uint32(p.ToEvent) }),
	}
	for k := range d.Categories {
		columns = append(columns, each(d.Categories[k].Category, d.Points,
			func(p *timeline.TimelinePoint) float64 { return float64(p.Bytes[k]) }))
	}
	t.table("points", columns...)
}

// blocks writes the blocks of a device. Bytes are floating-point numbers, the only numbers of JavaScript that count so
// far and can be drawn. No device has 2^53 bytes.
func (t *writer) blocks(d *blocks.Device) {
	t.table("pieces", numbers("kind", d.Kind), numbers("begin", deltas(d.Begin)), numbers("life", lives(d)),
		numbers("address", d.Address), numbers("next", d.Next))
	type kind = blocks.Kind
	evidences := []string{schemas.Tagged, schemas.Lifetime, schemas.ByStack, schemas.ByPhase}
	t.table("kinds",
		each("requested", d.Kinds, func(k *kind) float64 { return float64(k.Requested) }),
		each("slack", d.Kinds, func(k *kind) float64 { return float64(k.Slack) }),
		each("category", d.Kinds, func(k *kind) uint8 { return uint8(k.Category) }),
		each("evidence", d.Kinds, func(k *kind) int8 { return int8(slices.Index(evidences, k.Evidence)) }),
		each("module", d.Kinds, func(k *kind) uint32 { return uint32(k.Module) }),
		each("role", d.Kinds, func(k *kind) uint32 { return uint32(k.Role) }),
		each("name", d.Kinds, func(k *kind) uint32 { return uint32(k.Name) }),
		each("holder", d.Kinds, func(k *kind) uint32 { return uint32(k.Holder) }),
		each("line", d.Kinds, func(k *kind) uint32 { return uint32(k.Line) }),
		each("phase", d.Kinds, func(k *kind) uint32 { return uint32(k.Phase) }))
	t.table("addresses", each("address", d.Addresses, func(a *uint64) float64 { return float64(*a) }))
	t.table("texts", texts("text", d.Texts), eachText("source", d.Texts, func(s *string) string { return d.Sources[*s] }))
	t.table("phases",
		each("step", d.Phases, func(p *schemas.Phase) int32 { return int32(p.Step) }),
		each("begin", d.Phases, func(p *schemas.Phase) uint32 { return uint32(p.BeginSeq) }),
		each("end", d.Phases, func(p *schemas.Phase) uint32 { return uint32(p.EndSeq) }),
		each("gpu_ns", d.Phases, func(p *schemas.Phase) float64 { return float64(orNone(p.GPUNS)) }),
		eachText("phase", d.Phases, func(p *schemas.Phase) string { return p.Phase }))
	t.table("steps",
		each("step", d.Steps, func(s *schemas.Step) int32 { return int32(s.Step) }),
		each("begin", d.Steps, func(s *schemas.Step) uint32 { return uint32(s.BeginSeq) }),
		each("end", d.Steps, func(s *schemas.Step) uint32 { return uint32(s.EndSeq) }),
		each("gpu_ns", d.Steps, func(s *schemas.Step) float64 { return float64(s.GPUNS) }),
		each("wall_ns", d.Steps, func(s *schemas.Step) float64 { return float64(s.WallNS) }),
		each("peak", d.Steps, func(s *schemas.Step) float64 { return float64(orNone(s.PeakBytes)) }),
		each("recorded", d.Steps, func(s *schemas.Step) uint8 { return bit(s.Recorded) }),
		each("instrumented", d.Steps, func(s *schemas.Step) uint8 { return bit(s.Instrumented) }))
	t.rest(d)
}

func (t *writer) rest(d *blocks.Device) {
	levels := make([]uint32, len(d.Reserved))
	bytes := make([]float64, len(d.Reserved))
	for i, l := range d.Reserved {
		levels[i], bytes[i] = uint32(l.Seq), float64(l.Bytes)
	}
	t.table("reserved", numbers("event", levels), numbers("bytes", bytes))
	type change = blocks.SegmentChange
	t.table("segments",
		each("event", d.Segments, func(c *change) uint32 { return uint32(c.Event) }),
		each("action", d.Segments, func(c *change) uint8 { return uint8(c.Action) }),
		each("address", d.Segments, func(c *change) float64 { return float64(c.Addr) }),
		each("bytes", d.Segments, func(c *change) float64 { return float64(c.Bytes) }))
	t.table("failed",
		each("event", d.Failed, func(f *blocks.Failure) uint32 { return uint32(f.Event) }),
		each("bytes", d.Failed, func(f *blocks.Failure) float64 { return float64(f.Bytes) }))
	var start int64
	if len(d.TimeNS) > 0 {
		start = d.TimeNS[0] / 1000
	}
	t.table("samples",
		each("us", d.Samples, func(s *schemas.Sample) float64 { return float64(s.TimeNS/1000 - start) }),
		each("used", d.Samples, func(s *schemas.Sample) float64 { return float64(s.UsedBytes) }))
	t.table("host",
		each("us", d.Host, func(s *schemas.HostSample) float64 { return float64(s.TimeNS/1000 - start) }),
		each("resident", d.Host, func(s *schemas.HostSample) float64 { return float64(s.RSSBytes) }),
		each("pinned", d.Host, func(s *schemas.HostSample) float64 { return float64(orNone(s.PinnedBytes)) }))
	t.table("marks",
		each("event", d.Marks, func(m *schemas.UserMark) uint32 { return uint32(m.Seq) }),
		eachText("label", d.Marks, func(m *schemas.UserMark) string { return m.Label }))
}

// times writes the times of events as differences, in whole microseconds, which is the resolution of the allocator's
// clock.
func (t *writer) times(d *blocks.Device, points *timeline.DeviceTimeline) {
	shown := shownEvents(d, points)
	since := make([]int64, len(shown))
	for i := 1; i < len(shown); i++ {
		since[i] = d.TimeNS[shown[i]-1]/1000 - d.TimeNS[shown[i-1]-1]/1000
	}
	columns := []column{spans("us", since)}
	if n := len(shown); n > 0 && n < len(d.TimeNS) {
		columns = append(columns, numbers("event", deltas(shown)))
	}
	t.table("times", columns...)
}

// shownEvents returns, in order, the events with known times that the page shows: the events of the blocks' window, and
// the first, the last and the highest event of each point.
func shownEvents(d *blocks.Device, points *timeline.DeviceTimeline) (shown []uint32) {
	last := int64(len(d.TimeNS))
	add := func(event int64) {
		if event = min(event, last); event > 0 {
			shown = append(shown, uint32(event))
		}
	}
	add(1)
	for event := max(1, d.From); event <= min(d.To, last); event++ {
		add(event)
	}
	if points != nil {
		for i := range points.Points {
			p := &points.Points[i]
			add(p.FromEvent)
			add(p.HighEvent)
			add(p.ToEvent)
		}
	}
	slices.Sort(shown)
	return slices.Compact(shown)
}

// orNone returns -1 for an unknown value.
func orNone(v *int64) int64 {
	if v == nil {
		return -1
	}
	return *v
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
