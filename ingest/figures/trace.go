package figures

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// traceEvent has the fields of a trace's event that the import reads. Times are in microseconds.
type traceEvent struct {
	Phase string          `json:"ph"`
	Cat   string          `json:"cat"`
	Name  string          `json:"name"`
	TID   json.RawMessage `json:"tid"` // number or text of the thread
	TS    *float64        `json:"ts"`
	Dur   *float64        `json:"dur"`
	Args  struct {
		TotalAllocated *float64 `json:"Total Allocated"`
		TotalReserved  *float64 `json:"Total Reserved"`
		Bytes          *float64 `json:"Bytes"`
		DeviceType     *float64 `json:"Device Type"`
		DeviceID       *float64 `json:"Device Id"`
		Device         *float64 `json:"device"`
		Correlation    *float64 `json:"correlation"`
	} `json:"args"`
}

// maxDevices is the largest number of devices in a trace.
const maxDevices = 1024

// A span is a stretch of time in ns.
type span struct {
	name       string
	start, end int64
}

// A kernel is a piece of work of a GPU. A kernel's time is the time of the call that launched it, or its own start if
// the trace lacks the call.
type kernel struct {
	device int32
	call   float64 // number of the launch; NaN = none
	span
}

// A counter has the bytes allocated and reserved on a device just after an event of the trace.
type counter struct{ ns, allocated, reserved, change int64 }

// A trace is the part of a trace file that the import keeps.
type trace struct {
	base        int64  // base of the trace's times, in ns
	gpu         string // name of the first device's GPU
	rank, world int32
	steps       []span
	marks       []span // annotations of the thread that makes the steps
	backward    []span // operations that autograd's engine computes
	kernels     []kernel
	calls       map[float64]int64 // time of the launch with each correlation
	memory      map[int32][]counter
	odd         int                // number of events that cannot be read
	ops         map[string][]int64 // beginnings of operations outside the engine, by thread
	kept        int                // number of events that are kept

	stepThread string
	threads    []string // threads that have marks
}

// maxKept is the largest number of events that are kept, each with at most a hundred bytes. Traces that browsers can
// show have fewer.
const maxKept = 1 << 23

// keep counts an event that is kept, and returns an error if there are too many. An event with long texts counts as
// several.
func (t *trace) keep(e *traceEvent) error {
	if t.kept += 1 + (len(e.Name)+len(e.TID))>>7; t.kept > maxKept {
		return fmt.Errorf("it has more than %d events that count: trace fewer steps (torch.profiler.schedule)", maxKept)
	}
	return nil
}

func readTrace(r io.Reader, name string) ([]Run, error) {
	t := &trace{calls: map[float64]int64{}, memory: map[int32][]counter{}, ops: map[string][]int64{}}
	if err := t.read(decoderOf(bufio.NewReaderSize(r, 1<<20), maxDocument)); err != nil {
		return nil, err
	}
	if len(t.steps)+len(t.kernels)+len(t.memory) == 0 {
		return nil, errors.New("it has no steps (ProfilerStep), no work of a GPU and no memory of one")
	}
	run := t.run(traceName(name))
	return []Run{run}, nil
}

// traceName returns a trace's file name without the ending that torch gives it.
func traceName(name string) string {
	for _, suffix := range []string{".json", ".trace", ".pt"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// read reads a trace's JSON document: an object that contains the list of events, or only this list.
func (t *trace) read(d *json.Decoder) error {
	first, err := d.Token()
	if err != nil {
		return err
	}
	if first == json.Delim('[') {
		return t.events(d)
	}
	if first != json.Delim('{') {
		return errors.New("it is no object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "traceEvents":
			open, err := d.Token()
			if err == nil && open != json.Delim('[') {
				err = errors.New("its traceEvents are no list")
			}
			if err == nil {
				err = t.events(d)
			}
			if err == nil {
				_, err = d.Token()
			}
			if err != nil {
				return err
			}
		case "deviceProperties":
			var devices []struct {
				Name string `json:"name"`
			}
			if err := t.value(d, &devices); err != nil {
				return err
			}
			if len(devices) > 0 {
				t.gpu = devices[0].Name
			}
		case "baseTimeNanoseconds":
			var base float64
			if err := t.value(d, &base); err != nil {
				return err
			}
			if t.base = nanoseconds(&base, 1); t.base >= mostTime*1e3 {
				t.base = 0
			}
		case "distributedInfo":
			var info struct {
				Rank  *float64 `json:"rank"`
				World *float64 `json:"world_size"`
			}
			if err := t.value(d, &info); err != nil {
				return err
			}
			t.rank, t.world = small(info.Rank), small(info.World)
		default:
			if err := skip(d); err != nil {
				return err
			}
		}
	}
	_, err = d.Token()
	return err
}

// mostDepth is the largest nesting of values, since the decoder needs memory for each list that is open.
const mostDepth = 10_000

// skip skips a JSON value token by token, since the value may be too large for memory.
func skip(d *json.Decoder) error {
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > mostDepth {
				return fmt.Errorf("at byte %d values lie more than %d deep in each other", d.InputOffset(), mostDepth)
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// small converts a number to a rank or a device; it returns 0 if the number cannot be one.
func small(v *float64) int32 {
	if v == nil || !(*v >= 0 && *v < 1<<20) {
		return 0
	}
	return int32(*v)
}

// value decodes one JSON value, and skips a value of an unexpected type.
func (t *trace) value(d *json.Decoder, into any) error {
	err := d.Decode(into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		t.odd++
		return nil
	}
	return err
}

func (t *trace) events(d *json.Decoder) error {
	for d.More() {
		var e traceEvent
		odd := t.odd
		if err := t.value(d, &e); err != nil {
			return err
		}
		if t.odd > odd {
			continue
		}
		if err := t.event(&e); err != nil {
			return err
		}
	}
	return nil
}

// mostTime is the latest time that counts as possible, in µs: the year 2065. A base, a time and a duration fit an int64
// in ns.
const mostTime = 3e15

const stepMark = "ProfilerStep#"

func (t *trace) event(e *traceEvent) error {
	if e.TS == nil || !(*e.TS >= 0 && *e.TS < mostTime) || e.Dur != nil && !(*e.Dur >= 0 && *e.Dur < mostTime/3) {
		return nil
	}
	s := span{start: int64(math.Round(*e.TS * 1e3))}
	s.end = s.start + nanoseconds(e.Dur, 1e3)
	switch strings.ToLower(e.Cat) {
	case "user_annotation":
		if s.name = e.Name; strings.HasPrefix(e.Name, stepMark) {
			t.steps, t.stepThread = append(t.steps, s), string(e.TID)
		} else {
			t.marks, t.threads = append(t.marks, s), append(t.threads, string(e.TID))
		}
	case "cpu_op":
		if strings.HasPrefix(e.Name, "autograd::engine::evaluate_function") {
			t.backward = append(t.backward, s)
		} else {
			t.ops[string(e.TID)] = append(t.ops[string(e.TID)], s.start)
		}
	case "cpu_instant_event":
		t.counted(e, s.start)
	case "kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset":
		k := kernel{device: small(e.Args.Device), call: math.NaN(), span: s}
		if e.Args.Correlation != nil {
			k.call = *e.Args.Correlation
		}
		t.kernels = append(t.kernels, k)
	case "cuda_runtime", "cuda_driver", "runtime", "hip_runtime":
		if c := e.Args.Correlation; c != nil {
			t.calls[*c] = s.start
		}
	default:
		return nil
	}
	return t.keep(e)
}

// counted adds an event of the allocator of a GPU's memory. counted ignores events with the device type 0, which are
// the host allocator's.
func (t *trace) counted(e *traceEvent, ns int64) {
	a := &e.Args
	if e.Name != "[memory]" || a.DeviceType == nil || *a.DeviceType == 0 || a.DeviceID == nil || *a.DeviceID < 0 ||
		*a.DeviceID >= maxDevices {
		return
	}
	allocated, reserved := bytesOf(a.TotalAllocated, 1), bytesOf(a.TotalReserved, 1)
	if allocated == nil || reserved == nil {
		return
	}
	c := counter{ns: ns, allocated: *allocated, reserved: *reserved}
	if a.Bytes != nil && math.Abs(*a.Bytes) < most {
		c.change = int64(*a.Bytes)
	}
	id := int32(*a.DeviceID)
	t.memory[id] = append(t.memory[id], c)
}

// run converts the trace into a run. Steps come from torch.profiler's marks, and phases from annotations and from the
// operations that autograd's engine runs.
func (t *trace) run(name string) Run {
	run := Run{Name: name, Params: map[string]any{}, Status: schemas.StatusOK}
	slices.SortStableFunc(t.steps, byStart)
	phases, steps := t.phases()
	devices := map[int32]bool{}
	for _, k := range t.kernels {
		devices[k.device] = true
	}
	for id := range t.memory {
		devices[id] = true
	}
	if len(devices) == 0 {
		devices[0] = true
		run.Notes = append(run.Notes, "the trace has no GPU: times are those of the host")
	} else {
		run.Notes = append(run.Notes, "the peak is the highest while the profiler was on, and times are with its cost")
	}
	var busy []string
	for _, id := range sortedIDs(devices) {
		d, note := t.device(id, phases, steps)
		run.Devices = append(run.Devices, d)
		if note != "" {
			busy = append(busy, note)
		}
	}
	run.Notes = append(run.Notes, busy...)
	if len(t.memory) == 0 && len(t.kernels) > 0 {
		run.Notes = append(run.Notes, "the trace has no memory: torch.profiler.profile(profile_memory=True) records it")
	}
	if len(t.steps) == 0 {
		run.Notes = append(run.Notes, "the trace has no steps: call the profiler's step() at the end of each")
	}
	if t.odd > 0 {
		run.Notes = append(run.Notes, units.Plural(t.odd, "part of the trace is not as torch writes it",
			"parts of the trace are not as torch writes them")+": passed over")
	}
	run.GPU = t.gpu
	if t.world > 1 {
		run.Params["world_size"] = float64(t.world)
	}
	run.StartNS, run.EndNS = run.Devices[0].span()
	if t.base == 0 && run.StartNS < 1e18 { // such times count from the start of the machine
		run.StartNS, run.EndNS = 0, 0
	}
	return run
}

func sortedIDs(devices map[int32]bool) (ids []int32) {
	for id := range devices {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func byStart(a, b span) int {
	switch {
	case a.start < b.start:
		return -1
	case a.start > b.start:
		return 1
	}
	return 0
}

// A stretch is a phase of a step, without the figures of any device.
type stretch struct {
	span
	step int64
}

// phases returns the phases of the steps, or of the whole trace if it has no steps. The phases are in order and do not
// overlap.
func (t *trace) phases() (out []stretch, numbers []int64) {
	whole := t.steps
	if len(whole) == 0 {
		whole = []span{t.extent()}
	}
	marks := t.ownMarks()
	slices.SortFunc(t.backward, byStart)
	slices.Sort(t.ops[t.stepThread])
	from := int64(math.MinInt64)
	for i, s := range whole {
		number := int64(-1)
		if len(t.steps) > 0 {
			n, err := strconv.ParseUint(strings.TrimPrefix(s.name, stepMark), 10, 31)
			if number = int64(n); err != nil {
				number = int64(i)
			}
		}
		numbers = append(numbers, number)
		if s.start = max(s.start, from); s.end <= s.start {
			continue
		}
		from = s.end
		for _, p := range cut(s, t.covering(s, marks)) {
			out = append(out, stretch{p, number})
		}
	}
	return out, numbers
}

// extent returns the time from the trace's first event to its last.
func (t *trace) extent() span {
	e := span{start: math.MaxInt64}
	take := func(s span) { e.start, e.end = min(e.start, s.start), max(e.end, s.end) }
	for _, s := range t.marks {
		take(s)
	}
	for i := range t.kernels {
		take(t.kernels[i].span)
	}
	for _, list := range t.memory {
		for _, c := range list {
			take(span{start: c.ns, end: c.ns})
		}
	}
	return e
}

// maxMarks is the largest number of annotations that become phases. If a script has more annotations, they mark calls
// and not phases.
const maxMarks = 20000

// ownMarks returns the annotations that are phases: torch's optimizers, and the script's annotations on the thread
// that makes the steps.
func (t *trace) ownMarks() (out []span) {
	few := len(t.marks) <= maxMarks
	for i, m := range t.marks {
		switch {
		case strings.HasPrefix(m.name, "Optimizer.step#"):
			m.name = schemas.PhaseOptimizer
		case strings.HasPrefix(m.name, "Optimizer.zero_grad#"):
			m.name = schemas.PhaseZeroGrad
		case strings.HasPrefix(m.name, "enumerate(DataLoader)"):
			m.name = schemas.PhaseSetupData
		case !few || t.stepThread != "" && t.threads[i] != t.stepThread || m.name == "":
			continue
		}
		out = append(out, m)
	}
	slices.SortStableFunc(out, byStart)
	return out
}

// passes returns the backward passes of a step. Operations of autograd's engine belong to the same pass if the step's
// thread runs no operation between them, since that thread waits while a backward pass runs.
func (t *trace) passes(s span) (out []span) {
	at, _ := slices.BinarySearchFunc(t.backward, s.start, func(b span, ns int64) int {
		return byStart(b, span{start: ns})
	})
	ops := t.ops[t.stepThread]
	for _, b := range t.backward[at:] {
		if b.start >= s.end {
			break
		}
		end := min(b.end, s.end)
		n := len(out)
		if n > 0 {
			op, _ := slices.BinarySearch(ops, out[n-1].end)
			if op == len(ops) || ops[op] >= b.start {
				out[n-1].end = max(out[n-1].end, end)
				continue
			}
		}
		out = append(out, span{schemas.PhaseBackward, b.start, end})
	}
	return out
}

// covering returns the spans that name the phases of a step: backward for the passes of autograd's engine, forward for
// the time before a pass, and annotations under their own names.
func (t *trace) covering(s span, marks []span) (out []span) {
	// An annotation that began before the step surrounds it, and names the parts of the step that no other span names.
	around, _ := slices.BinarySearchFunc(marks, s.start, func(m span, ns int64) int { return cmp.Compare(m.start, ns) })
	named := func(marks []span) {
		for _, m := range marks {
			if m.start < s.end && m.end > s.start {
				out = append(out, span{m.name, max(m.start, s.start), min(m.end, s.end)})
			}
		}
	}
	named(marks[:around])
	from := s.start
	for _, p := range t.passes(s) {
		out = append(out, span{schemas.PhaseForward, from, p.start}, p)
		from = p.end
	}
	named(marks[around:])
	slices.SortStableFunc(out, byStart)
	return out
}

// cut divides a span by the spans inside it, which are in order. If several spans cover a moment, the span that began
// last names it.
func cut(whole span, inside []span) (out []span) {
	add := func(name string, start, end int64) {
		if n := len(out); n > 0 && out[n-1].name == name && out[n-1].end == start {
			out[n-1].end = end
		} else if end > start {
			out = append(out, span{name, start, end})
		}
	}
	var open []span
	now := whole.start
	until := func(ns int64) {
		for now < ns {
			for len(open) > 0 && open[len(open)-1].end <= now {
				open = open[:len(open)-1]
			}
			name, end := schemas.PhaseBetween, ns
			if n := len(open); n > 0 {
				name, end = open[n-1].name, min(ns, open[n-1].end)
			}
			add(name, now, end)
			now = end
		}
	}
	for _, s := range inside {
		until(s.start)
		open = append(open, s)
	}
	until(whole.end)
	return out
}

// device returns the data in the trace about one device, and a note on its idle time.
func (t *trace) device(id int32, phases []stretch, numbers []int64) (Device, string) {
	d := Device{Rank: t.rank, Device: id, Why: "the highest that torch.profiler saw while it was on"}
	memory := t.memory[id]
	slices.SortStableFunc(memory, func(a, b counter) int { return byStart(span{start: a.ns}, span{start: b.ns}) })
	for i := range memory {
		d.Peak = higher(d.Peak, &memory[i].allocated)
		d.PeakReserved = higher(d.PeakReserved, &memory[i].reserved)
	}
	work, busy, idle := t.work(id, phases)
	for i, p := range phases {
		row := Phase{Name: p.name, Step: p.step, StartNS: p.start + t.base, EndNS: p.end + t.base,
			Begin: memoryAt(memory, p.start), End: memoryAt(memory, p.end), Peak: peakWithin(memory, p.span)}
		if len(t.kernels) > 0 {
			row.GPUNS = new(work[i])
		}
		d.Phases = append(d.Phases, row)
	}
	for i, s := range t.steps {
		d.Steps = append(d.Steps, Step{Number: numbers[i], StartNS: s.start + t.base, EndNS: s.end + t.base,
			Begin: memoryAt(memory, s.start), End: memoryAt(memory, s.end), Peak: peakWithin(memory, s)})
	}
	return d, idleNote(id, busy, idle)
}

// memoryAt returns the bytes allocated and reserved at a moment.
func memoryAt(memory []counter, ns int64) Memory {
	if len(memory) == 0 {
		return Memory{}
	}
	at, _ := slices.BinarySearchFunc(memory, ns, func(c counter, ns int64) int {
		if c.ns <= ns {
			return -1
		}
		return 1
	})
	if at == 0 {
		if before := memory[0].allocated - memory[0].change; before >= 0 {
			return Memory{Allocated: &before}
		}
		return Memory{}
	}
	return Memory{&memory[at-1].allocated, &memory[at-1].reserved}
}

// peakWithin returns the highest allocated in a stretch of time.
func peakWithin(memory []counter, s span) *int64 {
	peak := memoryAt(memory, s.start).Allocated
	at, _ := slices.BinarySearchFunc(memory, s.start, func(c counter, ns int64) int {
		return byStart(span{start: c.ns}, span{start: ns})
	})
	for i := at; i < len(memory) && memory[i].ns <= s.end; i++ {
		peak = higher(peak, &memory[i].allocated)
	}
	return peak
}

// work returns how long the device computed for each phase, counting overlapping kernels once. busy is the sum over all
// phases. idle has, by phase, the time that the device was idle before a kernel of that phase.
func (t *trace) work(id int32, phases []stretch) (work []int64, busy int64, idle map[string]int64) {
	work, idle = make([]int64, len(phases)), map[string]int64{}
	type job struct {
		span
		phase int
	}
	var jobs []job
	for i := range t.kernels {
		k := &t.kernels[i]
		if k.device != id || k.end <= k.start {
			continue
		}
		at, ok := t.calls[k.call]
		if !ok {
			at = k.start
		}
		p, found := slices.BinarySearchFunc(phases, at, func(p stretch, ns int64) int {
			switch {
			case p.end <= ns:
				return -1
			case p.start > ns:
				return 1
			}
			return 0
		})
		if found {
			jobs = append(jobs, job{k.span, p})
		}
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return byStart(a.span, b.span) })
	last, step := int64(math.MinInt64), int64(math.MinInt64)
	for _, j := range jobs {
		p := &phases[j.phase]
		if p.step != step {
			step, last = p.step, max(last, p.start)
		}
		if j.start > last && last > math.MinInt64 {
			idle[p.name] += j.start - last
		}
		if from := max(j.start, last); j.end > from {
			work[j.phase] += j.end - from
			busy += j.end - from
			last = j.end
		}
	}
	return work, busy, idle
}

// idleNote returns a note on how long a device waited for work, and before which phases.
func idleNote(id int32, busy int64, idle map[string]int64) string {
	var names []string
	var sum int64
	for name, ns := range idle {
		names, sum = append(names, name), sum+ns
	}
	if busy == 0 {
		return ""
	}
	slices.SortFunc(names, func(a, b string) int {
		if idle[a] != idle[b] {
			return int(min(max(idle[b]-idle[a], -1), 1))
		}
		return strings.Compare(a, b)
	})
	text := fmt.Sprintf("device %d computed for %.3f ms and was idle for %.3f ms between", id, float64(busy)/1e6,
		float64(sum)/1e6)
	for i, name := range names[:min(len(names), 4)] {
		sep := ", "
		if i == 0 {
			sep = ": before work of "
		}
		text += fmt.Sprintf("%s%s %.3f ms", sep, name, float64(idle[name])/1e6)
	}
	return text
}
