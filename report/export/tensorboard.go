package export

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dpsight/dpsight/schemas"
)

// A Picture is a PNG shown beside a run's scalars.
type Picture struct {
	Tag           string
	Width, Height int // in pixels
	PNG           []byte
}

// The field numbers that are written, from tensorflow's messages Event, Summary, Summary.Value and Summary.Image
// (tensorflow/core/util/event.proto and framework/summary.proto).
const (
	eventWallTime    protowire.Number = 1
	eventStep        protowire.Number = 2
	eventFileVersion protowire.Number = 3
	eventSummary     protowire.Number = 5
	summaryValue     protowire.Number = 1
	valueTag         protowire.Number = 1
	valueSimple      protowire.Number = 2
	valueImage       protowire.Number = 4
	imageHeight      protowire.Number = 1
	imageWidth       protowire.Number = 2
	imageColorspace  protowire.Number = 3
	imageEncoded     protowire.Number = 4
)

// WriteTensorBoard writes the scalars of one device's steps and phases, and pictures, as an event file. TensorBoard
// needs each event file in a folder of its own, with a name that begins with [EventFile]. Memory is in MiB and time in
// ms, as the tags say. A scalar is a 32-bit float. Unknown scalars of a step are left out.
func (d *Device) WriteTensorBoard(w io.Writer, pictures []Picture) error {
	e := &events{w: w}
	e.write(0, 0, protowire.AppendString(protowire.AppendTag(nil, eventFileVersion, protowire.BytesType), fileVersion))
	for i := range d.Steps {
		s := &d.Steps[i]
		if values := d.scalars(s); len(values) > 0 {
			e.write(s.EndNS, s.Step, appendMessage(nil, eventSummary, values))
		}
	}
	for i := range d.Marks {
		m := &d.Marks[i]
		step := int64(0)
		if m.At.Step != nil {
			step = *m.At.Step
		}
		e.write(d.timeOf(m.At.Event), step, appendMessage(nil, eventSummary,
			appendScalar(nil, "mark/"+m.Label+"_MiB", float64(m.Allocated)/(1<<20))))
	}
	for _, p := range pictures {
		e.write(0, 0, appendMessage(nil, eventSummary, p.value()))
	}
	return e.err
}

const (
	// EventFile is the beginning of the file names that TensorBoard reads as event files.
	EventFile = "events.out.tfevents."
	// fileVersion is the content of a file's first event.
	fileVersion = "brain.Event:2"
)

// scalars returns the values of the summary of one step.
func (d *Device) scalars(s *schemas.Step) (values []byte) {
	bytes := func(tag string, v *int64) {
		if v != nil {
			values = appendScalar(values, tag+"_MiB", float64(*v)/(1<<20))
		}
	}
	bytes("memory/peak", s.PeakBytes)
	bytes("memory/allocated_at_end", s.AllocatedEnd)
	bytes("memory/reserved_at_end", s.ReservedEnd)
	if s.GPUNS > 0 && !s.Instrumented { // published times come from steps without module hooks
		values = appendScalar(values, "time/step_ms", float64(s.GPUNS)/1e6)
	}
	ns, peaks := map[string]int64{}, map[string]int64{}
	var phases []string
	for i := range d.Phases {
		f := &d.Phases[i]
		if f.Step != s.Step {
			continue
		}
		if !slices.Contains(phases, f.Phase) {
			phases = append(phases, f.Phase)
		}
		if f.GPUNS != nil && !s.Instrumented {
			ns[f.Phase] += *f.GPUNS
		}
		if f.PeakBytes != nil {
			peaks[f.Phase] = max(peaks[f.Phase], *f.PeakBytes)
		}
	}
	for _, phase := range phases {
		if v, ok := peaks[phase]; ok {
			bytes("phase_peak/"+phase, &v)
		}
		if v, ok := ns[phase]; ok {
			values = appendScalar(values, "phase_time/"+phase+"_ms", float64(v)/1e6)
		}
	}
	if at := d.highest(s); at >= 0 {
		for k, n := range d.Timeline.Points[at].Bytes {
			bytes("category_at_peak/"+string(d.Timeline.Categories[k].Category), &n)
		}
	}
	return values
}

// highest returns the point of a step with the most allocated bytes, or -1 if the step has no point.
func (d *Device) highest(s *schemas.Step) int {
	if d.Timeline == nil || !s.Recorded {
		return -1
	}
	at := -1
	points := d.Timeline.Points
	first, _ := slices.BinarySearchFunc(points, s.BeginSeq+1, func(p point, seq int64) int {
		return int(p.HighEvent - seq)
	})
	for i := first; i < len(points) && points[i].HighEvent <= s.EndSeq; i++ {
		if at < 0 || points[i].HighBytes > points[at].HighBytes {
			at = i
		}
	}
	return at
}

func appendScalar(values []byte, tag string, v float64) []byte {
	value := protowire.AppendString(protowire.AppendTag(nil, valueTag, protowire.BytesType), tag)
	value = protowire.AppendTag(value, valueSimple, protowire.Fixed32Type)
	value = protowire.AppendFixed32(value, math.Float32bits(float32(v)))
	return appendMessage(values, summaryValue, value)
}

func (p *Picture) value() []byte {
	const rgba = 4
	image := appendNumber(nil, imageHeight, p.Height)
	image = appendNumber(image, imageWidth, p.Width)
	image = appendNumber(image, imageColorspace, rgba)
	image = appendMessage(image, imageEncoded, p.PNG)
	value := protowire.AppendString(protowire.AppendTag(nil, valueTag, protowire.BytesType), p.Tag)
	return appendMessage(nil, summaryValue, appendMessage(value, valueImage, image))
}

func appendNumber[T int | int64](b []byte, field protowire.Number, n T) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n))
}

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), message)
}

// events writes records. A record has its length, the length's checksum, an event and the event's checksum.
type events struct {
	w   io.Writer
	err error
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the checksum of a record as tensorflow stores it (core/lib/hash/crc32c.h).
func masked(b []byte) uint32 {
	sum := crc32.Checksum(b, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// write writes an event with its moment and step.
func (e *events) write(ns, step int64, content []byte) {
	if e.err != nil {
		return
	}
	event := protowire.AppendFixed64(protowire.AppendTag(nil, eventWallTime, protowire.Fixed64Type),
		math.Float64bits(float64(ns)/1e9))
	event = append(appendNumber(event, eventStep, step), content...)
	record := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
	record = binary.LittleEndian.AppendUint32(record, masked(record))
	record = append(record, event...)
	record = binary.LittleEndian.AppendUint32(record, masked(event))
	_, e.err = e.w.Write(record)
}
