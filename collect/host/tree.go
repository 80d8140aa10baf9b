package host

import (
	"sync"
	"time"
)

// A Tree measures the processes below a root process, which itself does not belong to the run. Walking /proc at each
// reading would take 10 µs for each process on the machine. So known processes are read each time, and new ones are
// searched for at intervals. The search for new processes takes at most searchShare of a core. On a loaded machine,
// where the search takes long, it still runs every longestInterval, so that short processes are noticed.
type Tree struct {
	root int

	mu         sync.Mutex
	known      []int
	nextSearch time.Time
	found      func(pid int)
}

const (
	searchShare     = 0.001
	searchInterval  = time.Second
	longestInterval = 3 * time.Second
	// The first searches follow one another closely, since a run begins by starting processes.
	firstInterval = 100 * time.Millisecond
)

// NewTree returns a Tree of the descendants of root. found, if not nil, is called for each living process at each
// search.
func NewTree(root int, found func(pid int)) *Tree { return &Tree{root: root, found: found} }

// Usage is the sum of what the living processes of a tree use.
type Usage struct {
	RSSBytes  int64 // a page shared between processes counts once for each
	CPUNS     int64
	Processes int
}

// Read measures the tree.
func (t *Tree) Read(now time.Time) Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !now.Before(t.nextSearch) {
		t.search(now)
	}
	var u Usage
	living := t.known[:0]
	for _, pid := range t.known {
		p, ok := Read(pid)
		if !ok || p.State == 'Z' {
			continue
		}
		living = append(living, pid)
		u.RSSBytes += RSSBytes(pid)
		u.CPUNS += p.CPUNS
		u.Processes++
	}
	t.known = living
	return u
}

func (t *Tree) search(now time.Time) {
	begin := time.Now()
	first := t.nextSearch.IsZero() || len(t.known) == 0
	t.known = t.known[:0]
	for _, p := range Descendants(t.root) {
		if p.State == 'Z' {
			continue
		}
		t.known = append(t.known, p.PID)
		if t.found != nil {
			t.found(p.PID)
		}
	}
	cost := time.Since(begin)
	wait := min(max(searchInterval, time.Duration(float64(cost)/searchShare)), longestInterval)
	if first {
		wait = firstInterval
	}
	t.nextSearch = now.Add(wait)
}
