package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/dpsight/dpsight/schemas"
)

// The threads of a device's process in a trace. Slices of one thread must be nested, and steps and phases may not be,
// so each kind has a thread.
const (
	stepsThread  = 1
	phasesThread = 2
)

// WritePerfetto writes the run as a trace in the JSON that Perfetto and chrome://tracing open. Each device is a process
// with a counter for each category (bytes allocated, at every event that changes it), counters for allocated and
// reserved, steps and phases as slices, and failed requests and marks as instants. Times are microseconds since the
// first event. If events have no times, they are a microsecond apart, and the trace's otherData states that.
func (r *Run) WritePerfetto(w io.Writer) error {
	t := &trace{w: bufio.NewWriterSize(w, 1<<20), start: r.start()}
	fmt.Fprintf(t.w, `{"displayTimeUnit":"ms","otherData":{"generator":"dpsight","run_id":%s,"name":%s,"source":%s,`+
		`"time":%s},"traceEvents":[`, quoted(r.RunID), quoted(r.Name), quoted(r.Source), quoted(r.clock()))
	for i := range r.Devices {
		d := &r.Devices[i]
		t.process = i + 1
		t.event(`"ph":"M","name":"process_name","args":{"name":%s}`, quoted(r.Name+" "+r.title(d)))
		t.event(`"ph":"M","tid":%d,"name":"thread_name","args":{"name":"steps"}`, stepsThread)
		t.event(`"ph":"M","tid":%d,"name":"thread_name","args":{"name":"phases"}`, phasesThread)
		t.device(d)
	}
	t.samples(r.Samples, len(r.Devices)+1)
	t.w.WriteString("\n]}\n")
	return t.w.Flush()
}

// start returns the first moment of the run, in ns.
func (r *Run) start() int64 {
	first := int64(math.MaxInt64)
	for i := range r.Devices {
		d := &r.Devices[i]
		if len(d.TimeNS) > 0 {
			first = min(first, d.TimeNS[0])
		}
		if len(d.Steps) > 0 && d.Steps[0].StartNS > 0 && (len(d.TimeNS) > 0 || d.Timeline == nil) {
			first = min(first, d.Steps[0].StartNS)
		}
	}
	if first == math.MaxInt64 {
		return 0
	}
	for i := range r.Samples { // NVML samples begin before the script
		first = min(first, r.Samples[i].TimeNS)
	}
	return first
}

// clock describes the time base of a trace.
func (r *Run) clock() string {
	for i := range r.Devices {
		if d := &r.Devices[i]; d.Timeline != nil && len(d.TimeNS) == 0 {
			return "events have no times: a microsecond an event"
		}
	}
	return "microseconds since " + strconv.FormatInt(r.start(), 10) + " ns, Unix time"
}

// A trace writes events, one on each line.
type trace struct {
	w       *bufio.Writer
	start   int64 // start of the slice, in ns
	process int
	some    bool
}

func (t *trace) event(format string, args ...any) {
	if t.some {
		t.w.WriteByte(',')
	}
	t.some = true
	fmt.Fprintf(t.w, "\n{\"pid\":%d,", t.process)
	fmt.Fprintf(t.w, format, args...)
	t.w.WriteByte('}')
}

// since returns the microseconds from the trace's start to a moment.
func (t *trace) since(ns int64) string {
	return strconv.FormatFloat(float64(ns-t.start)/1000, 'f', -1, 64)
}

func (t *trace) counter(name string, ns, bytes int64) {
	t.event(`"ph":"C","name":%s,"ts":%s,"args":{"bytes":%d}`, quoted(name), t.since(ns), bytes)
}

func (t *trace) device(d *Device) {
	if d.Timeline != nil {
		before := make([]int64, len(d.Timeline.Categories))
		for i := range d.Timeline.Points {
			p := &d.Timeline.Points[i]
			ns := d.timeOf(p.HighEvent)
			t.counter("allocated", ns, p.HighBytes)
			for k, bytes := range p.Bytes {
				if i == 0 || bytes != before[k] {
					t.counter(string(d.Timeline.Categories[k].Category), ns, bytes)
					before[k] = bytes
				}
			}
		}
	}
	for _, l := range d.Reserved {
		t.counter("reserved", d.timeOf(l.Seq), l.Bytes)
	}
	timed := len(d.TimeNS) > 0 || d.Timeline == nil
	for i := range d.Steps {
		s := &d.Steps[i]
		begin, end := s.StartNS, s.EndNS
		if !timed {
			begin, end = d.timeOf(s.BeginSeq), d.timeOf(s.EndSeq)
		}
		t.slice(stepsThread, "step "+number(s.Step), begin, end, slice{"step": s.Step, "peak_bytes": s.PeakBytes,
			"gpu_ns": positive(s.GPUNS), "recorded": s.Recorded, "instrumented": s.Instrumented, "warmup": s.Warmup})
	}
	for i := range d.Phases {
		f := &d.Phases[i]
		begin, end := f.StartNS, f.EndNS
		if !timed {
			begin, end = d.timeOf(f.BeginSeq), d.timeOf(f.EndSeq)
		}
		t.slice(phasesThread, f.Phase, begin, end, slice{"step": f.Step, "microbatch": f.Microbatch,
			"peak_bytes": f.PeakBytes, "gpu_ns": f.GPUNS})
	}
	for i := range d.Failed {
		o := &d.Failed[i]
		t.event(`"ph":"i","s":"p","name":"out of memory","ts":%s,"args":{"requested_bytes":%d}`,
			t.since(d.timeOf(o.Seq)), o.RequestedBytes)
	}
	for i := range d.Marks {
		m := &d.Marks[i]
		t.event(`"ph":"i","s":"p","name":%s,"ts":%s,"args":{"allocated_bytes":%d}`, quoted("mark "+m.Label),
			t.since(d.timeOf(m.At.Event)), m.Allocated)
	}
}

// samples writes NVML's samples, with a counter for each GPU, in a process of their own.
func (t *trace) samples(samples []schemas.Sample, process int) {
	if len(samples) == 0 || t.start == 0 {
		return
	}
	t.process = process
	t.event(`"ph":"M","name":"process_name","args":{"name":"NVML"}`)
	for i := range samples {
		t.counter(fmt.Sprintf("GPU %d in use", samples[i].Device), samples[i].TimeNS, samples[i].UsedBytes)
	}
}

// A slice has the details that Perfetto shows when the reader clicks a slice. null means unknown.
type slice map[string]any

func (t *trace) slice(thread int, name string, begin, end int64, args slice) {
	text, err := json.Marshal(args)
	if err != nil { // args are numbers, which cannot fail
		panic(err)
	}
	t.event(`"ph":"X","tid":%d,"name":%s,"ts":%s,"dur":%s,"args":%s`, thread, quoted(name), t.since(begin),
		strconv.FormatFloat(float64(max(end-begin, 0))/1000, 'f', -1, 64), text)
}

// positive returns a time, or nil if it is 0, which means unknown.
func positive(ns int64) *int64 {
	if ns <= 0 {
		return nil
	}
	return &ns
}

// quoted returns a text as a JSON string. Invalid UTF-8 is replaced.
func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
