package collect

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// longTraining trains until it is killed.
const longTraining = `
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).cuda()
optimizer = torch.optim.Adam(model.parameters())
print("ready", flush=True)
while True:
    optimizer.zero_grad()
    model(torch.randn(32, 64).cuda()).sum().backward()
    optimizer.step()
`

// kills is how many times each kill test kills; $DPSIGHT_TEST_KILLS of them in the long tests.
func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("DPSIGHT_TEST_KILLS")
	if text == "" {
		return 3
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("DPSIGHT_TEST_KILLS is no number: %q", text)
	}
	return n
}

func trainingScript(t *testing.T) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(longTraining), 0o600); err != nil {
		t.Fatal(err)
	}
	return script
}

// journalOf reads the one journal of a run folder whose process was killed.
func journalOf(t *testing.T, dir string) *spool.Journal {
	t.Helper()
	journals, err := spool.ReadDir(filepath.Join(dir, spool.Dir))
	if err != nil {
		t.Fatalf("the journals: %v", err)
	}
	if len(journals) != 1 {
		t.Fatalf("%d journals", len(journals))
	}
	if j := journals[0]; len(j.Damaged) > 0 || len(j.Marks) == 0 {
		t.Errorf("%d damaged frames, %d marks", len(j.Damaged), len(j.Marks))
	}
	return journals[0]
}

func TestKilledExperimentOnThePhantom(t *testing.T) {
	python, script := testPython(t), trainingScript(t)
	for range kills(t) {
		e := phantomExperiment(t, python, script)
		ready := make(writes, 1)
		e.Stdout = ready
		var runID string
		e.Progress = func(p Progress) { runID = p.RunID }
		done := make(chan struct{})
		go func() {
			defer close(done)
			<-ready
			time.Sleep(rand.N(1500 * time.Millisecond))
			runs, _ := os.ReadDir(e.Store)
			for _, pid := range runProcessesAlive(runs[0].Name()) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}()
		r := run(t, e)
		<-done
		m := r.Manifest
		if m.Status != schemas.StatusKilled || m.Signal == nil || *m.Signal != "SIGKILL" || runID != m.RunID {
			t.Errorf("status %s (%s), signal %v", m.Status, m.Reason, m.Signal)
		}
		if m.Collector.SealedJournals != 1 {
			t.Errorf("%d journals sealed", m.Collector.SealedJournals)
		}
		journalOf(t, r.Dir)
	}
}

func TestKilledCollectorOnThePhantom(t *testing.T) {
	python, script := testPython(t), trainingScript(t)
	for range kills(t) {
		store := t.TempDir()
		cmd := startCollector(t, store, "phantom", python, script)
		var dir string
		eventually(t, "the first mark", func() bool {
			runs, _ := os.ReadDir(store)
			if len(runs) == 0 {
				return false
			}
			dir = filepath.Join(store, runs[0].Name())
			return newStepCounter(filepath.Join(dir, spool.Dir)).read() > 0
		})
		time.Sleep(rand.N(1500 * time.Millisecond))
		if !Running(dir) {
			t.Error("the run does not count as running")
		}
		cmd.Process.Kill()
		cmd.Wait()
		eventually(t, "the end of the run", func() bool { return !Running(dir) })
		expectGone(t, filepath.Base(dir))
		m, err := schemas.ReadManifest(dir)
		if err != nil || m.Status != schemas.StatusPartial {
			t.Errorf("%+v, %v", m, err)
		}
		if j := journalOf(t, dir); len(j.Chunks) == 0 {
			t.Error("no drain was kept")
		}
		if err := MergeSegments(dir); err != nil {
			t.Error(err)
		}
		if rows, err := schemas.HostSamples.ReadOptional(dir); err != nil || len(rows) == 0 && time.Since(m.Start) > 10*time.Second {
			t.Errorf("%d host samples, %v", len(rows), err)
		}
	}
}
