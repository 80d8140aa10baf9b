package livetest_test

import (
	"bufio"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/host"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas/spool"
)

// A moment is when to kill: so long after the script has come to a stage, or while it writes down its n-th drain from
// there.
type moment struct {
	// "launch": in the collector; "start": of the experiment; "setup", "steps", "exit": as the script reports; its
	// "end"
	stage string
	delay time.Duration
	drain int
}

// momentOf spreads the i-th kill over the stages of a run; the seed makes it the same each time, as far as a clock can.
func momentOf(r *rand.Rand, i int) moment {
	stages := []moment{
		{stage: "start", delay: 1500 * time.Millisecond}, {stage: "setup", delay: 400 * time.Millisecond},
		{stage: "steps", delay: 1200 * time.Millisecond}, {stage: "steps", drain: 30},
		{stage: "exit", delay: 500 * time.Millisecond},
	}
	m := stages[i%len(stages)]
	if m.drain > 0 {
		m.drain = 1 + r.IntN(m.drain)
	} else {
		m.delay = time.Duration(r.Int64N(int64(m.delay)))
	}
	return m
}

// A subject is a collector in a process of its own, with its experiment.
type subject struct {
	store, scratch string
	collector      *exec.Cmd
	said           map[string]chan struct{} // closed when the script has said so
	ended          chan struct{}            // closed when the collector's output has ended
}

// start starts a collector whose experiment is the victim.
func start(t *testing.T, python string, steps int, with []string) *subject {
	t.Helper()
	s := &subject{store: t.TempDir(), scratch: t.TempDir(), ended: make(chan struct{}),
		said: map[string]chan struct{}{"setup": make(chan struct{}), "steps": make(chan struct{}),
			"exit": make(chan struct{})}}
	command := append([]string{python, script(t, "victim.py"), strconv.Itoa(steps)}, with...)
	request, err := json.Marshal(collectRequest{s.store, s.scratch, command})
	if err != nil {
		t.Fatal(err)
	}
	s.collector = exec.Command("/proc/self/exe")
	s.collector.Env = append(os.Environ(), collectVariable+"="+string(request), "TMPDIR="+s.scratch)
	var stderr output
	s.collector.Stderr = &stderr
	stdout, err := s.collector.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.collector.Start(); err != nil {
		t.Fatal(err)
	}
	go s.read(stdout)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the collector's stderr:\n%s", tail(stderr.String()))
		}
	})
	return s
}

func (s *subject) read(stdout io.Reader) {
	defer close(s.ended)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if c, ok := s.said[lines.Text()]; ok {
			close(c)
		}
	}
}

// dir is the run's folder, "" until it exists.
func (s *subject) dir() string {
	runs, _ := os.ReadDir(s.store)
	if len(runs) == 0 {
		return ""
	}
	return filepath.Join(s.store, runs[0].Name())
}

// experiment is the process id of the experiment's first process, 0 until it exists.
func (s *subject) experiment() int {
	if s.dir() == "" {
		return 0
	}
	pids := testkit.Processes(filepath.Base(s.dir()))
	for _, pid := range pids {
		parent := 0
		if p, ok := host.Read(pid); ok {
			parent = p.Parent
		}
		ours := false
		for _, other := range pids {
			ours = ours || other == parent
		}
		if !ours && strings.Contains(host.Command(pid), "victim.py") {
			return pid
		}
	}
	return 0
}

// wait waits for the moment, or for the end of the collector.
func (s *subject) wait(t *testing.T, m moment) {
	t.Helper()
	switch m.stage {
	case "launch":
	case "start":
		testkit.Eventually(t, "the experiment", func() bool { return s.experiment() != 0 || s.over() })
	case "end":
		s.wait(t, moment{stage: "exit"})
		testkit.Eventually(t, "the end of the experiment", func() bool { return s.experiment() == 0 })
	default:
		select {
		case <-s.said[m.stage]:
		case <-s.ended:
		case <-time.After(hangLimit):
			t.Fatalf("the script never came to %s", m.stage)
		}
	}
	if m.drain > 0 {
		s.waitForDrain(m.drain)
	}
	select {
	case <-s.ended:
	case <-time.After(m.delay):
	}
}

// over reports whether the collector's output has ended.
func (s *subject) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// waitForDrain returns as soon as the journal has grown n times: mostly in the middle of a drain, for each writes
// several frames.
func (s *subject) waitForDrain(n int) {
	var path string
	size := int64(-1)
	for deadline := time.Now().Add(20 * time.Second); n > 0 && time.Now().Before(deadline); {
		if path == "" {
			found, _ := filepath.Glob(filepath.Join(s.dir(), spool.Dir, "*.frames"))
			if len(found) > 0 {
				path = found[0]
			}
		}
		if st, err := os.Stat(path); err == nil && st.Size() != size {
			if size >= 0 {
				n--
			}
			size = st.Size()
		}
		time.Sleep(20 * time.Microsecond)
	}
}

// copies are the journals of a run as they lay on the disk right after a kill.
type copies []struct{ marks, frames []byte }

// hold opens every existing journal: sealing removes the files, but open files stay readable.
func hold(dir string) (held [][2]*os.File) {
	paths, _ := spool.LiveJournals(filepath.Join(dir, spool.Dir))
	for _, p := range paths {
		marks, err := os.Open(p)
		if err != nil {
			continue
		}
		frames, _ := os.Open(strings.TrimSuffix(p, ".marks") + ".frames") // may not be there yet
		held = append(held, [2]*os.File{marks, frames})
	}
	return held
}

func readHeld(t *testing.T, held [][2]*os.File) (out copies) {
	t.Helper()
	for _, files := range held {
		var b [2][]byte
		for i, f := range files {
			if f == nil {
				continue
			}
			var err error
			if b[i], err = io.ReadAll(f); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		out = append(out, struct{ marks, frames []byte }{b[0], b[1]})
	}
	return out
}
