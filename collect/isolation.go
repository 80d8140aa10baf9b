package collect

import (
	"context"
	"fmt"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

const (
	isolationLimit = 60 * time.Second
	isolationPoll  = 100 * time.Millisecond
	// idleTolerance is how far memory in use may lie above the lowest level seen before: drivers keep a few MiB more after use.
	idleTolerance = 32 << 20
)

// waitIdle waits until no process computes on the visible devices and their memory is back at the lowest level that this
// machine has shown, then says what it found. To sleep instead was rejected: a context can take seconds to
// go away, or none.
func (m *Machine) waitIdle(ctx context.Context, limit time.Duration, stop <-chan struct{}) *schemas.Isolation {
	if m.Predicted {
		return nil
	}
	if m.library == nil {
		return &schemas.Isolation{Reason: m.nvmlReason}
	}
	begin := time.Now()
	iso := &schemas.Isolation{}
	last := int64(-1)
	for {
		used, busy := m.load()
		iso.WaitedNS = int64(time.Since(begin))
		settled := used == last || last < 0
		last = used
		if busy == "" && settled {
			iso.Verified, iso.IdleBytes, iso.Reason = true, &used, ""
			m.rememberIdle()
			return iso
		}
		if busy == "" {
			busy = "its memory in use still changes"
		}
		if iso.Reason = busy; time.Since(begin) >= limit {
			return iso
		}
		select {
		case <-ctx.Done():
			return iso
		case <-stop:
			return iso
		case <-time.After(isolationPoll):
		}
	}
}

// load is the memory in use on the visible devices, and why they are not free ("" if they are).
func (m *Machine) load() (used int64, busy string) {
	for _, d := range m.devices() {
		info := d.Info()
		mem, err := d.Memory()
		if err != nil {
			return used, err.Error()
		}
		used += mem.Used
		processes, err := d.Processes()
		switch idle, known := m.idle[info.UUID]; {
		case err != nil:
			busy = err.Error()
		case len(processes) > 0:
			busy = fmt.Sprintf("%s on device %d", plural(len(processes), "compute process", "compute processes"), info.Index)
		case known && mem.Used > idle+idleTolerance:
			busy = fmt.Sprintf("device %d has %d MiB in use, %d MiB when idle", info.Index, mem.Used>>20, idle>>20)
		}
	}
	return used, busy
}

func (m *Machine) rememberIdle() {
	for _, d := range m.devices() {
		if mem, err := d.Memory(); err == nil {
			uuid := d.Info().UUID
			if idle, known := m.idle[uuid]; !known || mem.Used < idle {
				m.idle[uuid] = mem.Used
			}
		}
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
