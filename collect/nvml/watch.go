package nvml

import (
	"sync/atomic"
	"time"
)

// A Reading is a device's memory at one moment. OK is false if it could not be read.
type Reading struct {
	TimeNS int64 // in Unix time
	Memory
	OK bool
}

// A Watch reads the memory of devices at a fixed interval. For a real library it reads in C, many readings per call: a
// Go program that wakes a hundred times a second spends more time in its scheduler than on the readings.
type Watch struct {
	devices  []Device
	interval time.Duration
	next     time.Time
	stopped  atomic.Int32
	native   func(ticks int, stopped *atomic.Int32) []Reading // nil means that readings are made in Go
}

// NewWatch starts a Watch, whose first tick is now.
func NewWatch(devices []Device, interval time.Duration) *Watch {
	w := &Watch{devices: devices, interval: interval, next: time.Now()}
	w.native = native(devices, interval)
	return w
}

// Stop makes a [Watch.Read] in progress, and each later one, return at its next tick. Any goroutine may call Stop.
func (w *Watch) Stop() { w.stopped.Store(1) }

// Read waits for a number of ticks and returns the readings of each tick, in the order of the devices. A tick that
// comes too late is skipped, and not made up for.
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
