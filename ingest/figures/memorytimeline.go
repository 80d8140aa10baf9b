package figures

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dpsight/dpsight/schemas"
)

// timelineWhy explains the peak of a memory timeline.
const timelineWhy = "the highest sum of the tensors that torch.profiler saw, which is not what the allocator had"

// mostTimes is the largest number of times of a memory timeline that are kept, at 8 bytes each.
const mostTimes = 16 << 20

// readMemoryTimeline reads a file that torch.profiler's export_memory_timeline wrote for one device. A .raw.json file
// is a list of [time in ns, action, change in bytes, category]. A .json file is a pair: the times in µs, and the sizes
// by category at these times.
func readMemoryTimeline(r io.Reader, name string) ([]Run, error) {
	d := decoderOf(r, maxDocument)
	if err := openList(d); err != nil {
		return nil, err
	}
	if !d.More() {
		return nil, errors.New("it is no memory timeline")
	}
	line := timeline{first: math.MaxInt64}
	first, err := numbers(d)
	if err == nil && len(first) == 4 && first[1] <= 1000 { // the first entry is an action of the timeline
		err = line.changes(d, first)
	} else if err == nil {
		err = line.levels(d, first)
	}
	if err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("it is no memory timeline")
	}
	if _, err := d.Token(); err != nil {
		return nil, err
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

// trimRaw removes the ending of a raw timeline's file name.
func trimRaw(name string) string {
	const suffix = ".raw.json"
	if n := len(name) - len(suffix); n > 0 && name[n:] == suffix {
		return name[:n]
	}
	return name
}

// openList reads the beginning of a JSON list.
func openList(d *json.Decoder) error {
	t, err := d.Token()
	if err == nil && t != json.Delim('[') {
		err = errors.New("it is no list")
	}
	return err
}

// numbers reads a JSON list of numbers one by one, since the list may be long.
func numbers(d *json.Decoder) (out []float64, err error) {
	if err := openList(d); err != nil {
		return nil, err
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		number, ok := t.(float64)
		if !ok {
			return nil, fmt.Errorf("at byte %d is no number", d.InputOffset())
		}
		if out = append(out, number); len(out) > mostTimes {
			return nil, fmt.Errorf("it has more than %d times", mostTimes)
		}
	}
	_, err = d.Token()
	return out, err
}

// A timeline has the first, the highest and the present sum of the tensors in a memory timeline, with its times.
type timeline struct {
	begin, now, peak float64 // bytes
	first, last      int64   // ns
}

// changes reads the events of a raw timeline. The caller has already read the first event. Tensors that existed before
// the profiler began have the time -1.
func (l *timeline) changes(d *json.Decoder, event []float64) error {
	for row := 1; ; row++ {
		if len(event) != 4 {
			return fmt.Errorf("row %d is no event of a memory timeline", row)
		}
		if l.now += event[2]; l.now > l.peak {
			l.peak = l.now
		}
		if ns := nanoseconds(&event[0], 1); ns > 0 {
			l.first, l.last = min(l.first, ns), max(l.last, ns)
		} else {
			l.begin = l.now
		}
		if !d.More() {
			return nil
		}
		if err := d.Decode(&event); err != nil {
			return err
		}
	}
}

// levels reads the sizes by category at each time. The first size at each time is always 0.
func (l *timeline) levels(d *json.Decoder, times []float64) error {
	if err := openList(d); err != nil {
		return err
	}
	n := 0
	for ; d.More(); n++ {
		var sizes []float64
		if n == len(times) {
			return fmt.Errorf("it has %d times and more sizes", len(times))
		}
		if err := d.Decode(&sizes); err != nil {
			return err
		}
		l.now = 0
		for _, v := range sizes {
			l.now += v
		}
		if n == 0 {
			l.begin = l.now
		}
		l.peak = max(l.peak, l.now)
		if ns := nanoseconds(&times[n], 1e3); ns > 0 {
			l.first, l.last = min(l.first, ns), max(l.last, ns)
		}
	}
	if n < len(times) {
		return fmt.Errorf("it has %d times and %d sizes", len(times), n)
	}
	_, err := d.Token()
	return err
}
