package figures

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dpsight/dpsight/schemas"
)

// timelineWhy says what the peak of a memory timeline is.
const timelineWhy = "the highest sum of the tensors that torch.profiler saw, which is not what the allocator had"

// maxLevels bounds a memory timeline's list of all sizes, in bytes: two million times.
const maxLevels = 256 << 20

// readMemoryTimeline reads what torch.profiler's export_memory_timeline writes of one device: as .raw.json a list of
// [time in ns, action, change in bytes, category], as .json the pair of times in µs and of the sizes by category then.
func readMemoryTimeline(r io.Reader, name string) ([]Run, error) {
	d := decoderOf(r, maxLevels)
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, errors.Join(err, errors.New("it is no list"))
	}
	line := timeline{first: math.MaxInt64}
	var rows int
	for ; d.More(); rows++ {
		var row json.RawMessage
		if err := d.Decode(&row); err != nil {
			return nil, err
		}
		var event []float64
		err := json.Unmarshal(row, &event)
		switch {
		case err != nil && rows == 1 && line.times != nil:
			if err := line.levels(row); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		case rows == 0 && (len(event) != 4 || event[1] > 1000): // no action
			line.times = event
		case rows == 1 && line.times != nil || len(event) != 4:
			return nil, fmt.Errorf("row %d is no event of a memory timeline", rows+1)
		default:
			line.change(event)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if rows == 0 || line.times != nil && rows != 2 {
		return nil, errors.New("it is no memory timeline")
	}
	dev := Device{Peak: bytesOf(new(line.peak), 1), Why: timelineWhy}
	run := Run{Name: traceName(trimRaw(name)), Params: map[string]any{}, Status: schemas.StatusOK,
		Notes: []string{"the peak is " + timelineWhy}}
	if line.first < line.last {
		run.StartNS, run.EndNS = line.first, line.last
		dev.Phases = []Phase{{Name: "profiled", Step: -1, StartNS: line.first, EndNS: line.last,
			Begin: Memory{Allocated: bytesOf(new(line.begin), 1)}, End: Memory{Allocated: bytesOf(new(line.now), 1)},
			Peak: dev.Peak}}
	}
	run.Devices = []Device{dev}
	return []Run{run}, nil
}

// trimRaw takes off what tells a raw timeline's name.
func trimRaw(name string) string {
	const suffix = ".raw.json"
	if n := len(name) - len(suffix); n > 0 && name[n:] == suffix {
		return name[:n]
	}
	return name
}

// A timeline sums a memory timeline up.
type timeline struct {
	times            []float64 // µs
	begin, now, peak float64   // bytes
	first, last      int64     // ns
}

// change takes an event. What was there before the profiler has the time -1.
func (l *timeline) change(event []float64) {
	if l.now += event[2]; l.now > l.peak {
		l.peak = l.now
	}
	if ns := nanoseconds(&event[0], 1); ns > 0 {
		l.first, l.last = min(l.first, ns), max(l.last, ns)
	} else {
		l.begin = l.now
	}
}

// levels takes the sizes by category at each time, of which the first is always 0.
func (l *timeline) levels(row []byte) error {
	var sizes [][]float64
	if err := json.Unmarshal(row, &sizes); err != nil {
		return err
	}
	if len(sizes) != len(l.times) {
		return fmt.Errorf("it has %d times and %d sizes", len(l.times), len(sizes))
	}
	for i, at := range sizes {
		l.now = 0
		for _, v := range at {
			l.now += v
		}
		if i == 0 {
			l.begin = l.now
		}
		l.peak = max(l.peak, l.now)
		if ns := nanoseconds(&l.times[i], 1e3); ns > 0 {
			l.first, l.last = min(l.first, ns), max(l.last, ns)
		}
	}
	return nil
}
