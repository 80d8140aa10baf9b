package collect

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// startCollector starts this test binary in another process, as a collector that records the command.
func startCollector(t *testing.T, store, device string, command ...string) *exec.Cmd {
	t.Helper()
	request, err := json.Marshal(collectRequest{store, device, command})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), collectVariable+"="+string(request), "TMPDIR="+t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestKilledCollector(t *testing.T) {
	for i := range 6 {
		store, pids := t.TempDir(), t.TempDir()
		script := `setsid sh -c 'echo $$ > "$0/session"; exec sleep 1000' "$1" &
			(setsid sh -c 'sleep 1000 & echo $! > "$0/double"' "$1" &)
			echo $$ > "$1/main"
			while :; do sleep 0.05; done`
		cmd := startCollector(t, store, "", "sh", "-c", script, "sh", pids)
		if i > 0 { // a random moment, while the collector starts or later
			time.Sleep(rand.N(600 * time.Millisecond))
		} else {
			testkit.Eventually(t, "the experiment", func() bool {
				return readPID(pids+"/main") > 0 && readPID(pids+"/session") > 0 && readPID(pids+"/double") > 0
			})
		}
		cmd.Process.Kill()
		cmd.Wait()
		runs, _ := os.ReadDir(store)
		if len(runs) == 0 {
			continue // the collector had made no run yet
		}
		dir := filepath.Join(store, runs[0].Name())
		testkit.Eventually(t, "the end of the run", func() bool { return !Running(dir) })
		testkit.Eventually(t, "the end of its processes", func() bool {
			return len(testkit.Processes(runs[0].Name())) == 0
		})
		for _, name := range []string{"main", "session", "double"} {
			if pid := readPID(pids + "/" + name); pid > 0 && testkit.Alive(pid) {
				t.Errorf("%s is alive", name)
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		m, err := schemas.ReadManifest(dir)
		if err != nil {
			// The collector was killed after it made the run's folder and before it wrote the manifest.
			continue
		}
		if m.Status != schemas.StatusPartial {
			t.Errorf("status %s", m.Status)
		}
		if err := MergeSegments(dir); err != nil {
			t.Errorf("merging: %v", err)
		}
	}
}

// A collector that receives SIGQUIT first ends its run. If a collector is killed, its supervisor cleans up. In both
// cases nothing is left in the temporary folder.
func TestTemporaryFolderOfEndedCollectors(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL} {
		store, pids := t.TempDir(), t.TempDir()
		cmd := startCollector(t, store, "", "sh", "-c", `echo $$ > "$0/main"; exec sleep 1000`, pids)
		testkit.Eventually(t, "the experiment", func() bool { return readPID(pids+"/main") > 0 })
		temporary := ""
		for _, entry := range cmd.Env {
			if dir, ok := strings.CutPrefix(entry, "TMPDIR="); ok {
				temporary = dir
			}
		}
		if left, _ := os.ReadDir(temporary); len(left) == 0 {
			t.Errorf("%v: nothing was there to be left", signal)
		}
		cmd.Process.Signal(signal)
		cmd.Wait()
		testkit.Eventually(t, "an empty temporary folder", func() bool {
			left, err := os.ReadDir(temporary)
			return err == nil && len(left) == 0
		})
	}
}

func TestKilledSupervisor(t *testing.T) {
	pids := t.TempDir()
	e := experiment(t, "")
	e.Command = []string{"sh", "-c",
		`setsid sleep 1000 & echo $! > "$1/session"; echo $PPID > "$1/supervisor"; echo ready; sleep 1000`, "sh", pids}
	ready := make(writes, 16)
	e.Stdout = ready
	go func() {
		<-ready
		syscall.Kill(readPID(pids+"/supervisor"), syscall.SIGKILL)
	}()
	r, err := Run(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	testkit.ExpectGone(t, r.Manifest.RunID)
	if r.Manifest.Status != schemas.StatusKilled {
		t.Errorf("status %s (%s)", r.Manifest.Status, r.Manifest.Reason)
	}
}

func TestSignalledCollector(t *testing.T) {
	store, pids := t.TempDir(), t.TempDir()
	cmd := startCollector(t, store, "", "sh", "-c", `echo $$ > "$1/main"; exec sleep 1000`, "sh", pids)
	testkit.Eventually(t, "the experiment", func() bool { return readPID(pids+"/main") > 0 })
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the collector: %v", err)
	}
	runs, _ := os.ReadDir(store)
	m, err := schemas.ReadManifest(filepath.Join(store, runs[0].Name()))
	if err != nil || m.Status != schemas.StatusKilled || m.Reason != "interrupted by SIGTERM" {
		t.Errorf("%+v, %v", m, err)
	}
	testkit.ExpectGone(t, runs[0].Name())
}
