// Package testkit has helpers with which tests of several packages run experiments and observe how these end.
package testkit

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/host"
)

// hangLimit is longer than anything that a test waits for can take, even on a busy machine.
const hangLimit = 2 * time.Minute

// Python returns the interpreter that DPSIGHT_TEST_PYTHON names, which has a CUDA build of torch and Opacus. If the
// variable is unset, it skips the test.
func Python(t testing.TB) string {
	t.Helper()
	p := os.Getenv("DPSIGHT_TEST_PYTHON")
	if p == "" {
		t.Skip("SKIPPED: DPSIGHT_TEST_PYTHON names no Python with a CUDA build of torch")
	}
	return p
}

// Alive reports whether a process has not ended. A zombie counts as ended.
func Alive(pid int) bool {
	p, ok := host.Read(pid)
	return ok && p.State != 'Z' && p.State != 'X'
}

// Processes lists the living processes that carry a run's id in their environment.
func Processes(runID string) []int {
	var out []int
	for _, pid := range host.PIDs() {
		if id, ok := host.Environ(pid, "DPSIGHT_RUN_ID"); ok && id == runID && Alive(pid) {
			out = append(out, pid)
		}
	}
	return out
}

// ExpectGone fails the test for each process of a run that is still running, and ends the process.
func ExpectGone(t testing.TB, runID string) {
	t.Helper()
	for _, pid := range Processes(runID) {
		t.Errorf("process %d of run %s is left: %s", pid, runID, host.Command(pid))
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Signal(syscall.SIGKILL)
		}
	}
}

// Eventually waits until ok returns true. Eventually fails the test if ok stays false for longer than two minutes.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(hangLimit); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}
