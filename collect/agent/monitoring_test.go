package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// sys.monitoring, by which lines are followed from Python 3.12 on, tells of exceptions, generators and coroutines in
// the order that the agent relies on. The tests' own Python may be older, so each that is found is tried.
func TestMonitoring(t *testing.T) {
	for _, python := range monitored(t) {
		t.Run(python, func(t *testing.T) {
			cmd := exec.Command(python, filepath.Join("tests", "monitoring.py"))
			cmd.Env = append(os.Environ(), "PYTHONPATH=python", "PYTHONDONTWRITEBYTECODE=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// monitored lists the Pythons on this machine that have sys.monitoring.
func monitored(t *testing.T) (found []string) {
	t.Helper()
	home, _ := os.UserHomeDir()
	kept, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", "3.*", "bin", "python"))
	for _, name := range append(kept, "python3.14", "python3.13", "python3.12", "python3",
		os.Getenv("DPSIGHT_TEST_PYTHON")) {
		python, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if exec.Command(python, "-c", "import sys; sys.monitoring").Run() == nil {
			found = append(found, python)
		}
	}
	if len(found) == 0 {
		t.Skip("no Python from 3.12 on is installed")
	}
	return found
}
