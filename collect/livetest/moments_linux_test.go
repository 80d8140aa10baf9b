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

// A moment says when a test kills: a delay after the script has reached a stage, or while the agent writes the
// script's n-th drain from that stage on.
type moment struct {
	// "launch": the collector starts; "start": the experiment starts; "setup", "steps" and "exit": the script has
	// printed this word; "end": the experiment has ended
	stage string
	delay time.Duration
	drain int
}

// momentOf chooses the moment of the i-th kill, so that the kills cover all stages of a run. With the same seed, r
// gives the same moments.
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

// A subject is a collector process and its experiment, which a test kills.
type subject struct {
	store, scratch string
	collector      *exec.Cmd
	said           map[string]chan struct{} // by stage; closed when the script has printed the stage
	ended          chan struct{}            // closed when the collector's output has ended
}

// start starts a collector that records testdata/victim.py.
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

// dir returns the run's folder, or "" if it does not exist yet.
func (s *subject) dir() string {
	runs, _ := os.ReadDir(s.store)
	if len(runs) == 0 {
		return ""
	}
	return filepath.Join(s.store, runs[0].Name())
}

// experiment returns the PID of the experiment's first process, or 0 if that process does not exist.
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

// wait returns at the moment m, or earlier if the collector ends.
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

// waitForDrain returns as soon as the journal has grown n times. That is mostly in the middle of a drain, since each
// drain writes several frames.
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

// copies are the contents of a run's journals right after a kill.
type copies []struct{ marks, frames []byte }

// hold opens all journals of a run. Sealing removes their files, but open files stay readable.
func hold(dir string) (held [][2]*os.File) {
	paths, _ := spool.LiveJournals(filepath.Join(dir, spool.Dir))
	for _, p := range paths {
		marks, err := os.Open(p)
		if err != nil {
			continue
		}
		frames, _ := os.Open(strings.TrimSuffix(p, ".marks") + ".frames") // the frames file may not exist yet
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
