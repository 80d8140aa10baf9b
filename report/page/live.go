package page

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A Live is the state of a run that is being recorded, as the page shows it. Times are Unix times in ns. Memory is in
// bytes.
type Live struct {
	RunID     string `json:"run_id"`
	Name      string `json:"name"`
	Predicted bool   `json:"predicted"`
	Bare      bool   `json:"bare"`
	StartNS   int64  `json:"start_ns"`
	NowNS     int64  `json:"now_ns"` // when this state was read: nothing later is known
	// Ended is true when the run is no longer recorded. Status is then the status in the run's manifest.
	Ended  bool   `json:"ended"`
	Status string `json:"status"`
	// Planned is the number of steps that the run will have, or 0 if unknown.
	Planned int64 `json:"planned"`
	// LimitBytes is the memory of the run's smallest device, or 0 if unknown.
	LimitBytes int64         `json:"limit_bytes"`
	GPU        string        `json:"gpu"`
	Processes  []LiveProcess `json:"processes"`
	Findings   []LiveFinding `json:"findings"` // findings, the newest first
	Trouble    string        `json:"trouble"`  // error of the last read

	// Samples are the device's memory in use as NVML reported it. The collector writes samples now and then.
	Samples []LiveSample `json:"-"`
	Host    []LiveSample `json:"-"` // samples of the host's memory
}

// A LiveProcess is one process of the run.
type LiveProcess struct {
	Rank        int32        `json:"rank"`
	PID         int64        `json:"pid"`
	Steps       int64        `json:"steps"` // number of steps that have ended
	Phase       string       `json:"phase"` // phase that the last mark stands in
	MarkNS      int64        `json:"mark_ns"`
	DrainNS     int64        `json:"drain_ns"` // wall time that the agent's drains have taken
	Drains      int64        `json:"drains"`
	DrainSpent  int64        `json:"drain_spent_ns"`
	Events      int64        `json:"events"`
	Recording   bool         `json:"recording"` // allocator events are recorded, and not only counters
	MedianNS    int64        `json:"median_step_ns"`
	LastNS      int64        `json:"last_step_ns"`
	Devices     []LiveDevice `json:"devices"`
	Times       []LiveStep   `json:"-"`
	FailedBytes int64        `json:"failed_bytes"` // bytes of the last request that failed, 0 = none failed
	FailedStep  int64        `json:"failed_step"`
}

// A LiveDevice is one device of a process.
type LiveDevice struct {
	Device        int32       `json:"device"`
	Allocated     int64       `json:"allocated_bytes"`
	Reserved      int64       `json:"reserved_bytes"`
	PeakAllocated int64       `json:"peak_allocated_bytes"`
	PeakReserved  int64       `json:"peak_reserved_bytes"`
	PeakStep      int64       `json:"peak_step"` // step of the peak; -1 = before the first
	Points        []LivePoint `json:"-"`
}

// A LivePoint is a stretch of time: its highest allocated, and the reserved bytes at that moment.
type LivePoint struct {
	FromNS, TimeNS, ToNS     int64
	Step                     int64
	Allocated, Reserved, Low int64
	Counters                 bool // the values come from torch's own counters, since no event of the stretch was recorded
}

// A LiveStep is a step that has ended, in the host's time.
type LiveStep struct {
	Step, EndNS, WallNS int64
	Recorded            bool
}

// A LiveSample is one sampled value.
type LiveSample struct {
	TimeNS, Bytes int64
}

// The kinds of findings that are possible without ingest.
const (
	LiveReservedGrows  = "reserved_grows"  // reserved grows from step to step, while allocated does not
	LiveAllocatedGrows = "allocated_grows" // allocated at the ends of steps grows
	LiveSlower         = "slower"          // the last step took longer than the median step
	LiveNearLimit      = "near_limit"
	LiveFailed         = "failed"
)

// A LiveFinding is a problem found while the run is still being recorded.
type LiveFinding struct {
	Kind string `json:"kind"`
	Step int64  `json:"step"` // the last step in which the finding was seen
	From int64  `json:"from"` // the value before, in bytes or ns
	To   int64  `json:"to"`
}

// LiveStreams returns the Arrow streams of a run that is being recorded. The first stream contains JSON with the values
// that are no tables.
func LiveStreams(l *Live) ([]byte, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	t := &writer{w: &out}
	t.table("run", texts("json", []string{string(text)}))
	ms := func(ns int64) float64 { return float64(ns-l.StartNS) / 1e6 }
	for p := range l.Processes {
		steps := l.Processes[p].Times
		t.table(fmt.Sprintf("steps %d", p),
			each("step", steps, func(s *LiveStep) int32 { return int32(s.Step) }),
			each("end_ms", steps, func(s *LiveStep) float64 { return ms(s.EndNS) }),
			each("wall_ms", steps, func(s *LiveStep) float64 { return float64(s.WallNS) / 1e6 }),
			each("recorded", steps, func(s *LiveStep) uint8 { return bit(s.Recorded) }))
		for d := range l.Processes[p].Devices {
			points := l.Processes[p].Devices[d].Points
			t.table(fmt.Sprintf("points %d %d", p, d),
				each("from_ms", points, func(q *LivePoint) float64 { return ms(q.FromNS) }),
				each("ms", points, func(q *LivePoint) float64 { return ms(q.TimeNS) }),
				each("to_ms", points, func(q *LivePoint) float64 { return ms(q.ToNS) }),
				each("step", points, func(q *LivePoint) int32 { return int32(q.Step) }),
				each("allocated", points, func(q *LivePoint) float64 { return float64(q.Allocated) }),
				each("low", points, func(q *LivePoint) float64 { return float64(q.Low) }),
				each("reserved", points, func(q *LivePoint) float64 { return float64(q.Reserved) }),
				each("counters", points, func(q *LivePoint) uint8 { return bit(q.Counters) }))
		}
	}
	for name, rows := range map[string][]LiveSample{"samples": l.Samples, "host": l.Host} {
		t.table(name,
			each("ms", rows, func(s *LiveSample) float64 { return ms(s.TimeNS) }),
			each("bytes", rows, func(s *LiveSample) float64 { return float64(s.Bytes) }))
	}
	return out.Bytes(), t.err
}
