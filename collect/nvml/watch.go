package nvml

import (
	"sync/atomic"
	"time"
)

// A Reading is a device's memory at a moment. OK is false if it could not be read.
type Reading struct {
	TimeNS int64 // Unix time
	Memory
	OK bool
}

// A Watch reads the memory of devices at a fixed interval. For a real library a Watch reads in C, many readings per
// call: a Go program that wakes a hundred times a second spends more on its scheduler than on the readings.
type Watch struct {
	devices  []Device
	interval time.Duration
	next     time.Time
	stopped  atomic.Int32
	native   func(ticks int, stopped *atomic.Int32) []Reading // nil: read in Go
}

// NewWatch begins a rhythm: the first tick is now.
func NewWatch(devices []Device, interval time.Duration) *Watch {
	w := &Watch{devices: devices, interval: interval, next: time.Now()}
	w.native = native(devices, interval)
	return w
}

// Stop makes a [Watch.Read] in progress, and each one after it, end with its next tick. Any goroutine may call it.
func (w *Watch) Stop() { w.stopped.Store(1) }

// Read waits for a number of ticks and gives the readings of each tick, in the order of the devices. A tick that came
// too late is left out of the rhythm, not made up for.
func (w *Watch) Read(ticks int) []Reading {
	if w.native != nil {
		return w.native(ticks, &w.stopped)
	}
	out := make([]Reading, 0, ticks*len(w.devices))
	for range ticks {
		time.Sleep(time.Until(w.next))
		for _, d := range w.devices {
			now := time.Now()
			m, err := d.Memory()
			out = append(out, Reading{now.UnixNano(), m, err == nil})
		}
		w.next = w.next.Add(w.interval)
		if late := time.Since(w.next); late > 0 {
			w.next = w.next.Add((late/w.interval + 1) * w.interval)
		}
		if w.stopped.Load() != 0 {
			break
		}
	}
	return out
}
