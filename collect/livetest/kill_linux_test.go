package livetest_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// recovered counts, over all kills of a test, what the kills left. So a test fails if its kills left too little to
// recover.
type recovered struct{ kills, journals, events, torn atomic.Int64 }

func (r *recovered) expectSome(t *testing.T) {
	t.Helper()
	t.Logf("%d kills: %d left a journal, %d allocator events, %d a torn frame", r.kills.Load(), r.journals.Load(),
		r.events.Load(), r.torn.Load())
	if n := r.kills.Load(); !t.Failed() && n > 1 && (r.journals.Load() < n/2 || r.events.Load() < n/3) {
		t.Error("too few kills came at a moment with something to lose")
	}
}

// seed determines the moments of the kills. $DPSIGHT_TEST_SEED overrides it.
func seed() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("DPSIGHT_TEST_SEED"), 10, 64); err == nil {
		return n
	}
	return 20261121
}

// kills returns how many times each of the kill tests kills. rest includes the cases that `make test` leaves out.
func kills(rest bool) int {
	switch {
	case long():
		return 50
	case rest:
		return 5
	}
	return 3
}

// scene returns what the i-th kill of a test needs: its moment, and the number of steps and the arguments of the
// script.
func scene(i int, salt uint64) (m moment, steps int, with []string) {
	r := rand.New(rand.NewPCG(seed(), salt<<32|uint64(i)))
	m = momentOf(r, i)
	steps = 4000
	if m.stage == "exit" {
		steps = 8
	}
	if i%2 == 1 {
		with = append(with, "worker")
	}
	if i%3 == 0 {
		with = append(with, "children")
	}
	return m, steps, with
}

func name(i int, m moment) string {
	if m.drain > 0 {
		return fmt.Sprintf("%d at drain %d", i, m.drain)
	}
	return fmt.Sprintf("%d %s after %s", i, m.stage, m.delay.Round(time.Millisecond))
}

// If SIGKILL ends the experiment at any moment, everything that it had written is kept, and no other process of the
// run survives.
func TestKilledExperiment(t *testing.T) {
	python := testkit.Python(t)
	var total recovered
	t.Cleanup(func() { total.expectSome(t) }) // after all kills
	for i := range kills(testkit.WithRest()) {
		m, steps, with := scene(i, 1)
		t.Run(name(i, m), func(t *testing.T) {
			t.Parallel()
			takeSlot(t)
			s := start(t, python, steps, with)
			pid := 0
			testkit.Eventually(t, "the experiment", func() bool { pid = s.experiment(); return pid != 0 || s.over() })
			s.wait(t, m)
			syscall.Kill(pid, syscall.SIGKILL)
			held := hold(s.dir())
			testkit.Eventually(t, "the end of the experiment", func() bool { return !testkit.Alive(pid) })
			before := readHeld(t, held)
			s.expectCollectorEnds(t)
			manifest := s.manifest(t)
			switch {
			case manifest.Status == schemas.StatusKilled && manifest.Signal != nil && *manifest.Signal == "SIGKILL":
			case manifest.Status == schemas.StatusOK && m.stage == "exit" && *manifest.ExitCode == 0:
				// The experiment had ended before the kill.
			default:
				t.Errorf("status %s (%s)", manifest.Status, manifest.Reason)
			}
			s.expectRecovered(t, before, &total)
		})
	}
}

// If SIGKILL ends the collector at any moment, the supervisor ends the run, and ingest makes tables of what was
// recorded.
func TestKilledCollector(t *testing.T) {
	python := testkit.Python(t)
	var total recovered
	t.Cleanup(func() { total.expectSome(t) })
	for i := range kills(testkit.WithRest()) {
		m, steps, with := scene(i, 2)
		switch {
		case m.stage == "start" && i%2 == 0: // while the collector prepares the run
			m.stage = "launch"
		case m.stage == "exit" && i%2 == 0: // while it seals, merges and ingests
			m.stage = "end"
		}
		t.Run(name(i, m), func(t *testing.T) {
			t.Parallel()
			takeSlot(t)
			s := start(t, python, steps, with)
			s.wait(t, m)
			finished := s.over()
			s.collector.Process.Kill()
			held := hold(s.dir())
			s.collector.Wait()
			before := readHeld(t, held)
			if s.dir() == "" {
				return // the collector had not made the run's folder yet
			}
			testkit.Eventually(t, "the end of the run", func() bool { return !collect.Running(s.dir()) })
			if !s.hasManifest() {
				// The run had not begun. The folder of such a run may only have half-written files, which nothing
				// reads.
				whole := files(t, s.dir(), func(name string) bool { return !strings.HasSuffix(name, schemas.PartialSuffix) })
				if len(whole) > 0 {
					t.Errorf("a run without a manifest holds %q", whole)
				}
				return
			}
			manifest := s.manifest(t)
			switch {
			case manifest.Status == schemas.StatusPartial && manifest.End == nil:
			case manifest.Status == schemas.StatusOK && manifest.End != nil && (finished || m.stage == "exit" ||
				m.stage == "end"):
				// The collector had finished the run. The kill came during ingest or later.
			default:
				t.Errorf("status %s (%s), end %v", manifest.Status, manifest.Reason, manifest.End)
			}
			s.expectRecovered(t, before, &total)
		})
	}
}

func (s *subject) hasManifest() bool {
	_, err := os.Stat(filepath.Join(s.dir(), schemas.ManifestFile))
	return err == nil
}

func (s *subject) manifest(t *testing.T) *schemas.Manifest {
	t.Helper()
	m, err := schemas.ReadManifest(s.dir())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *subject) expectCollectorEnds(t *testing.T) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(hangLimit):
		s.collector.Process.Kill()
		t.Error("the collector hangs")
	}
	if err := s.collector.Wait(); err != nil {
		t.Errorf("the collector: %v", err)
	}
}

// expectRecovered ingests the killed run, and checks that the result has everything that the journals had right after
// the kill.
func (s *subject) expectRecovered(t *testing.T, before copies, total *recovered) {
	t.Helper()
	dir := s.dir()
	testkit.ExpectGone(t, filepath.Base(dir))
	s.expectNoScratch(t, before)
	if err := collect.MergeSegments(dir); err != nil {
		t.Errorf("merging the samples: %v", err)
	}
	report, err := ingest.Run(dir, ingest.Options{Version: "test"})
	if err != nil {
		t.Fatalf("ingest: %v", err)
	}
	expectNoPartial(t, dir)
	s.expectSealed(t, before)
	expectConserved(t, dir, report)
	total.kills.Add(1)
	for _, v := range report.Ranks {
		total.journals.Add(1)
		if v.Torn {
			total.torn.Add(1)
		}
	}
	for _, v := range report.Devices {
		if v.Events > 0 {
			total.events.Add(1)
		}
		if v.Events == 0 && v.Verdict != schemas.Unverifiable {
			t.Errorf("a device without events is %s", v.Verdict)
		}
	}
	first := digests(t, dir)
	if _, err := ingest.Run(dir, ingest.Options{Version: "test"}); err != nil {
		t.Fatalf("ingest again: %v", err)
	}
	if again := digests(t, dir); !slices.Equal(first, again) {
		t.Errorf("ingest is not repeatable:\n%s\n%s", first, again)
	}
	expectNoPartial(t, dir)
}

// expectNoScratch checks that the run left no temporary folder behind. A collector that is killed before it starts the
// supervisor leaves one: no process holds its lock, so the next collector deletes it.
func (s *subject) expectNoScratch(t *testing.T, before copies) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(s.scratch, "dpsight-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range left {
		lock, err := schemas.TryLockPath(dir)
		if err != nil || len(before) > 0 {
			t.Errorf("left in the temporary folder: %s, %v", dir, err)
		}
		if err == nil {
			lock.Unlock()
		}
	}
}

// expectSealed checks that the whole frames and the marks of each journal before sealing are in a sealed journal, byte
// for byte and in order. expectSealed also checks that the one recorded process has at most one sealed journal.
func (s *subject) expectSealed(t *testing.T, before copies) {
	t.Helper()
	folder := filepath.Join(s.dir(), spool.Dir)
	if live := files(t, folder, func(n string) bool { return !strings.HasSuffix(n, ".dps.zst") }); len(live) > 0 {
		t.Errorf("left in the spool: %q", live)
	}
	sealed, err := spool.SealedJournals(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(sealed) > 1 {
		t.Errorf("one process recorded, %d journals are sealed", len(sealed))
	}
	for _, c := range before {
		header, marks, err := spool.ScanMarks(c.marks)
		if err != nil {
			continue // the agent was just creating this journal, so it has no records
		}
		frames := wholeFrames(t, c.frames)
		found := false
		for _, path := range sealed {
			sealedMarks, sealedFrames, err := spool.Unpack(path)
			if err != nil {
				t.Fatal(err)
			}
			h, kept, err := spool.ScanMarks(sealedMarks)
			if err != nil {
				t.Fatal(err)
			}
			if h != header {
				continue
			}
			found = true
			if len(kept) < len(marks) || !slices.Equal(kept[:len(marks)], marks) {
				t.Errorf("%d marks were written, %d are kept", len(marks), len(kept))
			}
			if !bytes.HasPrefix(sealedFrames, frames) {
				t.Errorf("%d bytes of whole frames were written, they are not what begins the %d sealed", len(frames),
					len(sealedFrames))
			}
		}
		if !found {
			t.Errorf("the journal of process %d is lost: %d marks, %d bytes of frames", header.PID, len(marks),
				len(frames))
		}
	}
}

// wholeFrames returns a frames file's bytes up to the end of its last whole frame.
func wholeFrames(t *testing.T, b []byte) []byte {
	t.Helper()
	_, err := spool.ScanFrames(b)
	var torn *spool.TornError
	switch {
	case errors.As(err, &torn):
		return b[:torn.Offset]
	case err != nil:
		t.Fatal(err)
	}
	return b
}

// digests returns the name of every table of a run and of the ingest report, each with a hash of the file's bytes.
func digests(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	for _, f := range files(t, dir, func(n string) bool {
		return strings.HasSuffix(n, ".parquet") || n == schemas.IngestReportFile
	}) {
		b, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %x", f, sha256.Sum256(b)))
	}
	return out
}
