package collect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

const (
	isolationLimit = 60 * time.Second
	isolationPoll  = 50 * time.Millisecond
	// idleTolerance is how far the memory in use may be above the lowest level seen before: drivers keep a few MiB more
	// after use.
	idleTolerance = 32 << 20
)

// waitIdle waits until no process computes on the visible devices, their memory is back at the lowest level seen on
// this machine, and their clocks are not throttled. waitIdle returns what it found. A fixed sleep would not do: the
// context of an ended process may disappear at once, or only after seconds. If the devices are free at the first look,
// waitIdle does not wait.
func (m *Machine) waitIdle(ctx context.Context, limit time.Duration, stop <-chan struct{}) *schemas.Isolation {
	switch {
	case m.Predicted:
		return &schemas.Isolation{Reason: "each process has a phantom GPU of its own, which has no clocks"}
	case m.library == nil:
		return &schemas.Isolation{Reason: m.nvmlReason}
	}
	begin := time.Now()
	iso := &schemas.Isolation{}
	last := int64(-1)
	for {
		l := m.load()
		iso.WaitedNS = int64(time.Since(begin))
		iso.OtherProcesses, iso.ThrottleReasons = l.processes, l.throttle
		if l.known {
			iso.IdleBytes = &l.used
		}
		busy := l.busy
		if busy == "" && last >= 0 && l.used != last {
			busy = "the GPU's memory in use still changes"
		}
		last = l.used
		if busy == "" {
			m.rememberIdle(l)
		}
		throttled := l.throttled()
		patience := limit
		if busy == "" && m.throttledFor == throttled {
			// Throttling has already lasted for a whole earlier wait: it is this machine's normal state, and waiting
			// will not end it.
			patience = 0
		}
		iso.Reason = busy
		if iso.Reason == "" {
			iso.Reason = throttled
		}
		if iso.Reason == "" {
			if iso.Reason = l.unsaid(); iso.Reason == "" {
				iso.Verified = true
			}
			m.throttledFor = ""
			return iso
		}
		if time.Since(begin) >= patience {
			if busy == "" {
				m.throttledFor = throttled
			}
			return iso
		}
		iso.Polls++
		if !pause(ctx, isolationPoll, stop) {
			return iso
		}
	}
}

// cool waits for a while after the device was found free. The phantom GPU needs no cooling.
func (m *Machine) cool(ctx context.Context, d time.Duration, iso *schemas.Isolation, stop <-chan struct{}) {
	if m.Predicted || d <= 0 {
		return
	}
	begin := time.Now()
	pause(ctx, d, stop)
	iso.CooldownNS = int64(time.Since(begin))
}

// pause sleeps, and returns false if the sleep was interrupted.
func pause(ctx context.Context, d time.Duration, stop <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-stop:
	case <-timer.C:
		return true
	}
	return false
}

// load is the state of the visible devices at one look.
type load struct {
	used      int64 // memory in use on all devices together
	known     bool  // whether used is known
	processes *int
	throttle  *int64
	busy      string // why the devices are not free; "" if they are
	idle      map[string]int64
}

func (m *Machine) load() load {
	l := load{known: true, idle: map[string]int64{}}
	count, mask := 0, int64(0)
	l.processes, l.throttle = &count, &mask
	for _, d := range m.devices() {
		info := d.Info()
		if reasons := d.Gauges().ThrottleReasons; reasons == nil {
			l.throttle = nil
		} else {
			mask |= *reasons
		}
		mem, err := d.Memory()
		if err != nil {
			l.known, l.busy = false, err.Error()
			continue
		}
		l.used += mem.Used
		l.idle[info.UUID] = mem.Used
		processes, err := d.Processes()
		count += len(processes)
		switch idle, known := m.idle[info.UUID]; {
		case err != nil:
			l.processes, l.busy = nil, err.Error()
		case len(processes) > 0:
			l.busy = fmt.Sprintf("%s on device %d", units.Plural(len(processes), "compute process", "compute processes"),
				info.Index)
		case known && mem.Used > idle+idleTolerance:
			l.busy = fmt.Sprintf("device %d has %d MiB in use, %d MiB when idle", info.Index, mem.Used>>20, idle>>20)
		}
	}
	return l
}

// throttled returns why the clocks are throttled, or "" if they are not, as far as is known.
func (l *load) throttled() string {
	if l.throttle == nil || *l.throttle&schemas.Throttled == 0 {
		return ""
	}
	return "the clocks are throttled: " + strings.Join(schemas.ThrottleNames(*l.throttle), ", ")
}

// unsaid lists what could not be checked.
func (l *load) unsaid() string {
	if l.throttle == nil {
		return "the driver does not report whether the clocks are throttled"
	}
	return ""
}

func (m *Machine) rememberIdle(l load) {
	for uuid, used := range l.idle {
		if idle, known := m.idle[uuid]; !known || used < idle {
			m.idle[uuid] = used
		}
	}
}
