package collect

import (
	"sync"
	"time"

	"github.com/dpsight/dpsight/collect/host"
	"github.com/dpsight/dpsight/collect/nvml"
)

// runProcesses distinguishes a run's processes from others by their ancestors, and remembers the result, since NVML
// lists the same few processes a hundred times a second.
type runProcesses struct {
	root int // process id of the supervisor

	mu     sync.Mutex
	known  map[int]verdict
	before map[int]bool // processes that were seen on a device before the run
}

type verdict struct {
	ours  bool
	until time.Time // zero means forever
}

// otherFor is how long a process counts as not belonging to the run before it is checked again, since a process id can
// be used again.
const otherFor = time.Second

func newRunProcesses(root int, before []int) *runProcesses {
	r := &runProcesses{root: root, known: map[int]verdict{}, before: map[int]bool{}}
	for _, pid := range before {
		r.before[pid] = true
	}
	return r
}

// Ours reports whether a process belongs to the run. Ours also claims a process that this /proc does not show and that
// was not on the device before the run: in a container NVML may return the host's process ids.
func (r *runProcesses) Ours(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if v, ok := r.known[pid]; ok && (v.until.IsZero() || now.Before(v.until)) {
		return v.ours
	}
	v := verdict{}
	p, visible := host.Read(pid)
	if visible {
		v.ours = descends(p, r.root)
	} else {
		v.ours = !r.before[pid]
	}
	if !v.ours || !visible {
		v.until = now.Add(otherFor)
	}
	r.known[pid] = v
	return v.ours
}

func descends(p host.Process, root int) bool {
	for range 64 { // deeper than any launcher; bounded because the tree may change meanwhile
		if p.Parent == root {
			return true
		}
		var ok bool
		if p, ok = host.Read(p.Parent); !ok {
			return false
		}
	}
	return false
}

// computing lists the processes that now compute on the devices.
func computing(devices []nvml.Device) []int {
	var out []int
	for _, d := range devices {
		list, err := d.Processes()
		if err != nil {
			continue
		}
		for _, p := range list {
			out = append(out, p.PID)
		}
	}
	return out
}
