package collect

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dpsight/dpsight/collect/host"
	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/schemas/spool"
)

// A torchWatch finds processes of the run that load torch without the agent, so that the user learns of them. Possible
// causes are python -I or -S, a cleaned environment, and a separate container.
type torchWatch struct {
	mu   sync.Mutex
	seen map[int]*watched
}

type watched struct {
	command   string
	ancestors []int
	torch     bool
	gpu       bool // whether the process has a GPU open
	looks     int
	skip      int // number of searches until the next look
}

// maxSkip is the most searches between two looks at a process, since reading a process's memory map takes a
// millisecond.
const maxSkip = 8

func newTorchWatch() *torchWatch { return &torchWatch{seen: map[int]*watched{}} }

// look is called for each living process at each search of the tree.
func (t *torchWatch) look(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.seen[pid]
	if w == nil {
		w = &watched{command: host.Command(pid), ancestors: ancestors(pid)}
		t.seen[pid] = w
	}
	if w.gpu || w.skip > 0 {
		w.skip--
		return
	}
	w.looks++
	w.skip = min(w.looks/4, maxSkip)
	if !w.torch && host.LoadedTorch(pid) {
		w.torch = true
		w.command = host.Command(pid) // an exec may have changed the command
	}
	if w.torch {
		w.gpu = host.OpenedGPU(pid)
	}
}

func ancestors(pid int) []int {
	var out []int
	for range 64 {
		p, ok := host.Read(pid)
		if !ok || p.Parent <= 1 {
			break
		}
		out = append(out, p.Parent)
		pid = p.Parent
	}
	return out
}

// uninjected names the processes that used torch without the agent. Launchers import torch too, and workers of data
// loaders inherit it, but neither need the agent. So a process counts only if there is no journal at all, or if it
// opened a GPU itself.
func (t *torchWatch) uninjected(journals []*spool.Journal, secrets *mask.Secrets) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	recorded := map[int]bool{}
	for _, j := range journals {
		recorded[int(j.Header.PID)] = true
	}
	out := []string{}
	for pid, w := range t.seen {
		if w.torch && !recorded[pid] && (len(journals) == 0 || w.gpu && !t.related(pid, recorded)) {
			out = append(out, fmt.Sprintf("%s (pid %d)", shorten(secrets.String(w.command)), pid))
		}
	}
	slices.Sort(out)
	return out
}

// shorten shortens a command so that it fits into a sentence. The command must be masked first. Otherwise the beginning
// of a secret could remain.
func shorten(command string) string {
	const limit = 120
	if len(command) <= limit {
		return command
	}
	return strings.ToValidUTF8(command[:limit], "") + "…"
}

// related reports whether a process is an ancestor or a descendant of a process that was recorded.
func (t *torchWatch) related(pid int, recorded map[int]bool) bool {
	if slices.ContainsFunc(t.seen[pid].ancestors, func(a int) bool { return recorded[a] }) {
		return true
	}
	for r := range recorded {
		if w := t.seen[r]; w != nil && slices.Contains(w.ancestors, pid) {
			return true
		}
	}
	return false
}
