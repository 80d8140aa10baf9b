package export

import (
	"errors"
	"io"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	arrowmemory "github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/schemas"
)

type (
	point = timeline.TimelinePoint
	level = memory.Level
)

// A Table is one Feather file of a device.
type Table struct {
	Name    string
	columns []column
}

type column struct {
	name   string
	values arrow.Array
}

// Tables returns the device's Feather files: events (allocated bytes by category and reserved bytes after each event),
// steps, phases and marks. Empty tables are left out. Unknown values are null.
func (d *Device) Tables() (out []Table) {
	if d.Timeline != nil {
		out = append(out, Table{"events", d.events()})
	}
	if len(d.Steps) > 0 {
		out = append(out, Table{"steps", []column{
			integers("step", d.Steps, func(s *schemas.Step) *int64 { return &s.Step }),
			integers("start_ns", d.Steps, func(s *schemas.Step) *int64 { return positive(s.StartNS) }),
			integers("end_ns", d.Steps, func(s *schemas.Step) *int64 { return positive(s.EndNS) }),
			integers("gpu_ns", d.Steps, func(s *schemas.Step) *int64 { return positive(s.GPUNS) }),
			integers("peak_bytes", d.Steps, func(s *schemas.Step) *int64 { return s.PeakBytes }),
			integers("allocated_end_bytes", d.Steps, func(s *schemas.Step) *int64 { return s.AllocatedEnd }),
			integers("reserved_end_bytes", d.Steps, func(s *schemas.Step) *int64 { return s.ReservedEnd }),
			flags("recorded", d.Steps, func(s *schemas.Step) bool { return s.Recorded }),
			flags("instrumented", d.Steps, func(s *schemas.Step) bool { return s.Instrumented }),
			flags("warmup", d.Steps, func(s *schemas.Step) bool { return s.Warmup }),
		}})
	}
	if len(d.Phases) > 0 {
		out = append(out, Table{"phases", []column{
			integers("step", d.Phases, func(p *schemas.Phase) *int64 { return &p.Step }),
			words("phase", d.Phases, func(p *schemas.Phase) string { return p.Phase }),
			integers("begin_event", d.Phases, func(p *schemas.Phase) *int64 { n := p.BeginSeq + 1; return &n }),
			integers("end_event", d.Phases, func(p *schemas.Phase) *int64 { return &p.EndSeq }),
			integers("start_ns", d.Phases, func(p *schemas.Phase) *int64 { return positive(p.StartNS) }),
			integers("end_ns", d.Phases, func(p *schemas.Phase) *int64 { return positive(p.EndNS) }),
			integers("gpu_ns", d.Phases, func(p *schemas.Phase) *int64 { return p.GPUNS }),
			integers("peak_bytes", d.Phases, func(p *schemas.Phase) *int64 { return p.PeakBytes }),
		}})
	}
	if len(d.Marks) > 0 {
		out = append(out, Table{"marks", []column{
			words("label", d.Marks, func(m *timeline.Mark) string { return m.Label }),
			integers("event", d.Marks, func(m *timeline.Mark) *int64 { return &m.At.Event }),
			integers("time_ns", d.Marks, func(m *timeline.Mark) *int64 { return d.knownTimeOf(m.At.Event) }),
			integers("allocated_bytes", d.Marks, func(m *timeline.Mark) *int64 { return &m.Allocated }),
			integers("since_bytes", d.Marks, func(m *timeline.Mark) *int64 { return m.Since }),
			integers("reserved_bytes", d.Marks, func(m *timeline.Mark) *int64 { return m.Reserved }),
		}})
	}
	return out
}

// knownTimeOf returns when an event happened, in ns of Unix time, or nil if unknown.
func (d *Device) knownTimeOf(event int64) *int64 {
	if len(d.TimeNS) == 0 {
		return nil
	}
	ns := d.timeOf(event)
	return &ns
}

func (d *Device) events() []column {
	points := d.Timeline.Points
	columns := []column{
		integers("event", points, func(p *point) *int64 { return &p.HighEvent }),
		integers("time_ns", points, func(p *point) *int64 { return d.knownTimeOf(p.HighEvent) }),
		integers("allocated_bytes", points, func(p *point) *int64 { return &p.HighBytes }),
		integers("reserved_bytes", points, func(p *point) *int64 { return d.reservedAt(p.HighEvent) }),
		integers("step", points, func(p *point) *int64 { return p.Step }),
	}
	for k := range d.Timeline.Categories {
		columns = append(columns, integers(string(d.Timeline.Categories[k].Category)+"_bytes", points,
			func(p *point) *int64 { return &p.Bytes[k] }))
	}
	return columns
}

// reservedAt returns the reserved bytes just after an event, or nil if unknown.
func (d *Device) reservedAt(event int64) *int64 {
	next, _ := slices.BinarySearchFunc(d.Reserved, event+1, func(l level, event int64) int { return int(l.Seq - event) })
	if next == 0 {
		return nil
	}
	return &d.Reserved[next-1].Bytes
}

func integers[R any](name string, rows []R, one func(*R) *int64) column {
	b := array.NewInt64Builder(arrowmemory.DefaultAllocator)
	defer b.Release()
	b.Reserve(len(rows))
	for i := range rows {
		if v := one(&rows[i]); v != nil {
			b.UnsafeAppend(*v)
		} else {
			b.AppendNull()
		}
	}
	return column{name, b.NewArray()}
}

func flags[R any](name string, rows []R, one func(*R) bool) column {
	b := array.NewBooleanBuilder(arrowmemory.DefaultAllocator)
	defer b.Release()
	for i := range rows {
		b.Append(one(&rows[i]))
	}
	return column{name, b.NewArray()}
}

func words[R any](name string, rows []R, one func(*R) string) column {
	b := array.NewStringBuilder(arrowmemory.DefaultAllocator)
	defer b.Release()
	for i := range rows {
		b.Append(one(&rows[i]))
	}
	return column{name, b.NewArray()}
}

// generator is a key of a file's metadata. The key's value says that dpsight wrote the file.
const generator = "generator"

// Write writes the table as an Arrow IPC file, which Feather's readers open.
func (t *Table) Write(w io.Writer, runID string) error {
	var fields []arrow.Field
	var values []arrow.Array
	for _, c := range t.columns {
		fields = append(fields, arrow.Field{Name: c.name, Type: c.values.DataType(), Nullable: true})
		values = append(values, c.values)
	}
	meta := arrow.NewMetadata([]string{generator, "run_id", "table"}, []string{"dpsight", runID, t.Name})
	schema := arrow.NewSchema(fields, &meta)
	record := array.NewRecord(schema, values, int64(values[0].Len()))
	defer record.Release()
	out, err := ipc.NewFileWriter(&positioned{w: w}, ipc.WithSchema(schema))
	if err != nil {
		return err
	}
	if err := out.Write(record); err != nil {
		return err
	}
	return out.Close()
}

// positioned is a writer that knows how many bytes were written. The Arrow file writer seeks only to learn this.
type positioned struct {
	w io.Writer
	n int64
}

func (p *positioned) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.n += int64(n)
	return n, err
}

func (p *positioned) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, errors.ErrUnsupported
	}
	return p.n, nil
}
